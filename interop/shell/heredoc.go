package shell

import "strings"

// readHeredoc evaluates a read without a delimiter: it reads the whole text of a here-document into a variable. It
// returns false for other forms of read.
func (e *evaluator) readHeredoc(n *simple, words []Word) bool {
	isWhole := false
	var names []string
	for i := 0; i < len(words); i++ {
		text := words[i].Text()
		switch {
		case !strings.HasPrefix(text, "-"):
			names = append(names, text)
		case strings.HasSuffix(text, "d") && i+1 < len(words):
			i++
			isWhole = words[i].Text() == ""
		}
	}
	if !isWhole || len(names) != 1 || !isName(names[0]) {
		return false
	}
	pieces := e.text(&n.heredoc.text)
	e.vars[names[0]] = &value{elems: [][]Piece{trimBlanks(pieces)}}
	return true
}

// trimBlanks returns pieces without blanks at their start and end.
func trimBlanks(pieces []Piece) []Piece {
	const blanks = " \t\n"
	for len(pieces) > 0 && pieces[0].Unknown == nil {
		first := &pieces[0]
		at := len(first.Text) - len(strings.TrimLeft(first.Text, blanks))
		if at < len(first.Text) {
			pieces[0] = first.cut(at, len(first.Text))
			break
		}
		pieces = pieces[1:]
	}
	for len(pieces) > 0 && pieces[len(pieces)-1].Unknown == nil {
		last := &pieces[len(pieces)-1]
		if end := len(strings.TrimRight(last.Text, blanks)); end > 0 {
			*last = last.cut(0, end)
			break
		}
		pieces = pieces[:len(pieces)-1]
	}
	return pieces
}
