package shell

import (
	"bytes"
	"slices"
	"strings"
)

// Edits of a script in place. A word stands in a frame: the command itself, or the value of a variable that the command
// expands, or of a variable in that value. A Depth says which frame an edit changes.

// Depth is how far an edit of a word goes into the variables that have its text.
type Depth uint8

// The depths of edits.
const (
	// AtUse is the command itself.
	AtUse Depth = iota
	// OwnVariable is the innermost variable that only this word depends on.
	OwnVariable
	// SharedVariable is the innermost variable, also if others use it: conditions, or other words.
	SharedVariable
)

// Depths lists all depths, the deepest first.
var Depths = []Depth{SharedVariable, OwnVariable, AtUse}

// Edit is a change of a script: the text of a span is replaced.
type Edit struct {
	Span
	Text string
}

// Apply returns a text with edits, which must not overlap.
func Apply(source []byte, edits ...Edit) []byte {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.Start - b.Start })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(out, source[at:e.Start]...)
		out = append(out, e.Text...)
		at = e.End
	}
	return append(out, source[at:]...)
}

// place is where a word stands in one frame.
type place struct {
	Span
	quoted bool
	frames []Span // references that lead to the frame, the outermost first
}

// place returns where a word stands at a depth. ok is false if it does not stand in the script.
func (s *Script) place(w *Word, depth Depth) (p place, ok bool) {
	if len(w.Pieces) == 0 {
		return p, false
	}
	chain := make([]*reference, len(w.Pieces))
	for i := range w.Pieces {
		chain[i] = w.Pieces[i].via
	}
	isDefined := !w.hasSource() // the innermost variable has a definition by the user: only its use can be changed
	for depth > AtUse && s.canEnter(chain, depth) && !(isDefined && chain[0].inner == nil) {
		p.frames = append(p.frames, chain[0].span)
		for i := range chain {
			chain[i] = chain[i].inner
		}
	}
	frames := p.frames
	p, ok = s.within(w, frames)
	p.frames = frames
	return p, ok
}

// canEnter reports whether all pieces of a word come from one variable, which only this word may depend on unless the
// depth allows others.
func (s *Script) canEnter(chain []*reference, depth Depth) bool {
	first := chain[0]
	if first == nil || depth == OwnVariable && first.scalar && s.uses[first.name] > 1 {
		return false
	}
	return !slices.ContainsFunc(chain, func(r *reference) bool { return r == nil || r.span != first.span })
}

// hasSource reports whether the text of a word's frame is in the script, and not a definition by the user.
func (w *Word) hasSource() bool {
	return !slices.ContainsFunc(w.Pieces, func(p Piece) bool { return p.Span == (Span{}) })
}

// Replace returns the edit that gives a word another text at a depth. ok is false if the word does not stand in the
// script.
func (s *Script) Replace(w *Word, text string, depth Depth) (Edit, bool) {
	p, ok := s.place(w, depth)
	if !ok {
		return Edit{}, false
	}
	return Edit{p.Span, quote(text, p.quoted)}, true
}

// quote returns a word as it is written in a script: in single quotes, unless it is plain or inside quotes.
func quote(text string, quoted bool) string {
	if quoted || text != "" && strings.IndexFunc(text, isSpecial) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// isSpecial reports whether a character has a meaning in bash.
func isSpecial(r rune) bool { return strings.ContainsRune(" \t\n|&;<>()$`\\\"'*?[]#~!{}", r) }

// argument is an option with its values in one frame.
type argument struct {
	Span
	quoted bool
	whole  bool // all words stand in this frame
}

// argument returns where an option and its values stand: in the innermost frame that has the option.
func (s *Script) argument(words []Word) (a argument, ok bool) {
	p, ok := s.place(&words[0], OwnVariable)
	if !ok {
		return a, false
	}
	a = argument{Span: s.withQuotes(p), quoted: p.quoted, whole: true}
	for i := range words[1:] {
		at, found := s.within(&words[1+i], p.frames)
		if !found || at.Start < a.End {
			a.whole = false
			break
		}
		a.End = s.withQuotes(at).End
	}
	return a, true
}

// within returns where a word stands in a frame.
func (s *Script) within(w *Word, frames []Span) (p place, ok bool) {
	if len(w.Pieces) == 0 {
		return p, false
	}
	p.Span = Span{-1, -1}
	for i := range w.Pieces {
		r := w.Pieces[i].via
		for _, f := range frames {
			if r == nil || r.span != f {
				return p, false
			}
			r = r.inner
		}
		at, quoted := w.Pieces[i].Span, w.Pieces[i].quoted
		if r != nil {
			at, quoted = r.span, r.quoted
		}
		if at == (Span{}) || at.End > len(s.main()) {
			return p, false
		}
		if p.Start < 0 {
			p.Span, p.quoted = at, quoted
		}
		p.Start, p.End = min(p.Start, at.Start), max(p.End, at.End)
	}
	return p, true
}

// withQuotes returns a word's span with the quotes around it, if they belong to this word alone.
func (s *Script) withQuotes(p place) Span {
	sp := p.Span
	if !p.quoted || sp.Start == 0 || sp.End >= len(s.main()) {
		return sp
	}
	open := s.main()[sp.Start-1]
	isQuoted := (open == '"' || open == '\'') && s.main()[sp.End] == open
	isValue := sp.Start > 1 && s.main()[sp.Start-2] == '=' // the whole value of a variable
	if isQuoted && !isValue {
		return Span{sp.Start - 1, sp.End + 1}
	}
	return sp
}

// line returns the line that contains a span, without its end.
func (s *Script) line(sp Span) Span {
	start := bytes.LastIndexByte(s.main()[:sp.Start], '\n') + 1
	end := bytes.IndexByte(s.main()[sp.End:], '\n')
	if end < 0 {
		return Span{start, len(s.main())}
	}
	return Span{start, sp.End + end}
}

// rest returns what follows a span on its line, without blanks: "", a backslash or a comment if the span is the last.
func (s *Script) rest(sp, line Span) string {
	return strings.TrimSpace(string(s.main()[sp.End:line.End]))
}

// isAlone reports whether a span has its line for itself, apart from a comment and a continuation.
func (s *Script) isAlone(sp, line Span) bool {
	rest := s.rest(sp, line)
	return strings.TrimSpace(string(s.main()[line.Start:sp.Start])) == "" &&
		(rest == "" || rest == `\` || strings.HasPrefix(rest, "#"))
}

// isContinued reports whether the line before a position ends in a backslash.
func (s *Script) isContinued(lineStart int) bool {
	before := bytes.TrimRight(s.main()[:lineStart], "\n")
	if lineStart-len(before) > len("\n") {
		return false // an empty line
	}
	return bytes.HasSuffix(before, []byte(`\`))
}

// Insert returns the edit that adds words next to an option and its values, in the style of its line.
func (s *Script) Insert(next []Word, words []string) (Edit, bool) {
	a, ok := s.argument(next)
	if !ok {
		return Edit{}, false
	}
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, quote(w, a.quoted && s.withinText(a.Span)))
	}
	text := strings.Join(quoted, " ")
	if !a.whole {
		return Edit{Span{a.Start, a.Start}, text + " "}, true
	}
	line := s.line(a.Span)
	if !s.isAlone(a.Span, line) {
		return Edit{Span{a.End, a.End}, " " + text}, true
	}
	indent := string(s.main()[line.Start:a.Start])
	continuation := s.rest(a.Span, line) == `\`
	isLast := line.End >= len(s.main())
	switch {
	case continuation && !isLast:
		at := line.End + 1
		return Edit{Span{at, at}, indent + text + " \\\n"}, true
	case s.isContinued(line.Start):
		return Edit{Span{line.Start, line.Start}, indent + text + " \\\n"}, true
	case isLast:
		return Edit{Span{line.Start, line.Start}, indent + text + "\n"}, true
	}
	at := line.End + 1
	return Edit{Span{at, at}, indent + text + "\n"}, true
}

// withinText reports whether a span is a part of a longer quoted text, so that words next to it are quoted, too.
func (s *Script) withinText(sp Span) bool {
	return sp.Start == 0 || s.main()[sp.Start] != '"' && s.main()[sp.Start] != '\''
}

// Remove returns the edits that delete an option and its values, with their line if nothing else is on it.
func (s *Script) Remove(words []Word) (edits []Edit, ok bool) {
	a, ok := s.argument(words)
	if !ok {
		return nil, false
	}
	edits = s.delete(a.Span)
	if a.whole {
		return edits, true
	}
	for i := range words[1:] { // the values stand elsewhere
		p, found := s.place(&words[1+i], AtUse)
		if !found {
			return nil, false
		}
		if p.Start >= a.End || p.End <= a.Start {
			edits = append(edits, s.delete(s.withQuotes(p))...)
		}
	}
	return edits, true
}

// delete returns the edits that delete a span, with its line if it is alone on it. A comment keeps its line.
func (s *Script) delete(sp Span) []Edit {
	line := s.line(sp)
	first := s.line(Span{sp.Start, sp.Start})
	if !s.isAlone(sp, Span{first.Start, line.End}) {
		switch {
		case sp.Start > 0 && isBlank(s.main()[sp.Start-1]) && s.main()[sp.Start-1] != '\n':
			sp.Start--
		case sp.End < len(s.main()) && s.main()[sp.End] == ' ':
			sp.End++
		}
		return []Edit{{sp, ""}}
	}
	if rest := s.rest(sp, line); strings.HasPrefix(rest, "#") {
		return []Edit{{Span{sp.Start, sp.End + bytes.IndexByte(s.main()[sp.End:], '#')}, ""}}
	}
	edits := []Edit{{Span{first.Start, min(line.End+1, len(s.main()))}, ""}}
	if s.rest(sp, line) == `\` || !s.isContinued(first.Start) {
		return edits
	}
	at := bytes.LastIndexByte(s.main()[:first.Start], '\\') // the line before now ends the command
	end := at + 1
	for at > 0 && (s.main()[at-1] == ' ' || s.main()[at-1] == '\t') {
		at--
	}
	return append(edits, Edit{Span{at, end}, ""})
}

// RemoveAssignment returns edits that delete the assignment of a variable to a value, the best first: its line, or
// NAME=value alone in front of a command.
func (s *Script) RemoveAssignment(name string, value *Word) (edits []Edit) {
	p, ok := s.place(value, AtUse)
	if !ok {
		return nil
	}
	line := s.line(p.Span)
	edits = append(edits, Edit{Span{line.Start, min(line.End+1, len(s.main()))}, ""})
	start := bytes.LastIndex(s.main()[line.Start:p.Start], []byte(name+"="))
	if start < 0 {
		return edits
	}
	end := p.End
	for end < len(s.main()) && !isMeta(s.main()[end]) { // closing quotes
		end++
	}
	if end < len(s.main()) && s.main()[end] == ' ' {
		end++
	}
	return append(edits, Edit{Span{line.Start + start, end}, ""})
}

// InsertLine returns the edit that adds a line in front of the one at an offset, with the same indentation. If a
// sourced file has the offset, the line precedes the command that reads the file.
func (s *Script) InsertLine(offset int, text string) Edit {
	if offset > len(s.main()) {
		i := slices.IndexFunc(s.Sources, func(c Source) bool { return c.File != "" && c.At.End <= len(s.main()) })
		offset = 0
		if i >= 0 {
			offset = s.Sources[i].At.Start
		}
	}
	line := s.line(Span{offset, offset})
	for s.isContinued(line.Start) && line.Start > 0 {
		line = s.line(Span{line.Start - 1, line.Start - 1})
	}
	indent := line.Start
	for indent < len(s.main()) && (s.main()[indent] == ' ' || s.main()[indent] == '\t') {
		indent++
	}
	return Edit{Span{line.Start, line.Start}, string(s.main()[line.Start:indent]) + text + "\n"}
}
