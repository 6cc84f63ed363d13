package shell

import "strings"

// glob reports whether a text matches a pattern with *, ? and [a-z]. A backslash quotes the byte after it.
func glob(pattern, text string) bool {
	const limit = 1 << 24 // comparisons
	if len(pattern)*len(text) > limit {
		return pattern == text
	}
	star, retry := -1, 0
	i, j := 0, 0
	for j < len(text) {
		matches, n := matchByte(pattern[i:], text[j])
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, retry = i, j
			i++
		case matches:
			i += n
			j++
		case star >= 0:
			retry++
			i, j = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// matchByte matches a byte with the start of a pattern, and returns the length of what it matches.
func matchByte(pattern string, c byte) (matches bool, n int) {
	if pattern == "" {
		return false, 0
	}
	if pattern[0] == '\\' && len(pattern) > 1 {
		return pattern[1] == c, 2
	}
	end := classEnd(pattern)
	if end == 0 {
		return pattern[0] == '?' || pattern[0] == c, 1
	}
	class := pattern[1:end]
	negated := class[0] == '!' || class[0] == '^'
	if negated {
		class = class[1:]
	}
	for class != "" {
		var first, last byte
		first, class = firstOf(class)
		last = first
		if len(class) > 1 && class[0] == '-' {
			last, class = firstOf(class[1:])
		}
		matches = matches || first <= c && c <= last
	}
	return matches != negated, end + 1
}

// firstOf returns the first byte of a class, without a backslash that quotes it, and the rest.
func firstOf(class string) (c byte, rest string) {
	if class[0] == '\\' && len(class) > 1 {
		class = class[1:]
	}
	return class[0], class[1:]
}

// classEnd returns the index of the "]" of a class at the start of a pattern; 0 if there is none. A "]" in first place
// is in the class.
func classEnd(pattern string) int {
	if pattern[0] != '[' {
		return 0
	}
	first := 1
	if len(pattern) > 1 && (pattern[1] == '!' || pattern[1] == '^') {
		first = 2
	}
	for i := first; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case pattern[i] == ']' && i > first:
			return i
		}
	}
	return 0
}

// pattern returns a word as a pattern, in which a backslash precedes each special byte that is quoted.
func (w *Word) pattern() string {
	var b strings.Builder
	for i := range w.Pieces {
		p := &w.Pieces[i]
		isQuoted := p.quoted
		if p.via != nil {
			isQuoted = p.via.quoted
		}
		for j := range len(p.Text) {
			if isQuoted && strings.IndexByte(`*?[]\-!^`, p.Text[j]) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(p.Text[j])
		}
	}
	return b.String()
}
