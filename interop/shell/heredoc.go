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

// catOutput reads the (...) of $(cat <<EOF), whose output is the text of the here-document. It returns false, and
// leaves the position, for other commands. The position is at the parenthesis.
func (p *wordParser) catOutput(quoted bool) (out part, ok bool) {
	start := p.pos
	p.pos++
	p.spaces()
	isCat := p.bareWord() == "cat" && p.src[start-1] == '$' && len(p.heredocs) == 0 && !p.isHere
	if isCat {
		p.takeBare()
		p.spaces()
		isCat = p.startsWith("<<") && p.peek(2) != '<' && (&parser{wordParser: *p}).redirection()
		p.spaces()
	}
	if !isCat || p.peek(0) != '\n' {
		if isCat {
			p.heredocs = p.heredocs[:0]
		}
		p.pos = start
		return part{}, false
	}
	h := p.heredocs[0]
	h.inner = true
	p.newline()
	end := closing(p.src, p.pos)
	if end < 0 {
		p.script.Diags.Addf(p.script.At(start-1), BadScript, "the $( here has no end: end the text with a line %s, "+
			"and add the closing )", h.end)
		p.pos, end = len(p.src), len(p.src)-1
	}
	out = part{kind: hereText, quoted: quoted, expansion: &expansion{arg: &h.text}}
	if strings.TrimSpace(string(p.src[p.pos:max(p.pos, end)])) != "" {
		out = part{kind: substitution, quoted: quoted} // further commands follow
		p.countDollars(Span{p.pos, max(p.pos, end)})
	}
	p.pos = end + 1
	out.span = Span{start - 1, p.pos}
	return out, true
}

// withoutLastLineEnds returns pieces without line ends at their end, as $(...) returns the output of a command.
func withoutLastLineEnds(pieces []Piece) []Piece {
	for len(pieces) > 0 && pieces[len(pieces)-1].Unknown == nil {
		last := &pieces[len(pieces)-1]
		end := len(strings.TrimRight(last.Text, "\n"))
		if end > 0 {
			*last = last.cut(0, end)
			break
		}
		pieces = pieces[:len(pieces)-1]
	}
	return pieces
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
