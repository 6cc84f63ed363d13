package shell

import "strings"

// glob reports whether a text matches a pattern with *, ? and [a-z].
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
	end := 1 + strings.IndexByte(pattern[min(len(pattern), 2):], ']') // "]" in first place is in the class
	if pattern[0] != '[' || end == 0 {
		return pattern[0] == '?' || pattern[0] == c, 1
	}
	class := pattern[1 : end+1]
	negated := class[0] == '!' || class[0] == '^'
	if negated {
		class = class[1:]
	}
	for i := 0; i < len(class); i++ {
		last := i
		if i+2 < len(class) && class[i+1] == '-' {
			last = i + 2
		}
		matches = matches || class[i] <= c && c <= class[last]
		i = last
	}
	return matches != negated, end + 2
}
