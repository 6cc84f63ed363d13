package shell

import (
	"bytes"
	"strings"
)

// Expansions: $NAME, ${...}, $((...)), $(...).

// dollar reads an expansion.
func (p *wordParser) dollar(w *word, quoted bool) {
	start := p.pos
	switch c := p.peek(1); {
	case p.startsWith("$(("):
		if p.calculation(w, quoted) {
			return
		}
		p.pos++
		w.parts = append(w.parts, p.commandOutput(quoted))
	case c == '(':
		p.pos++
		w.parts = append(w.parts, p.commandOutput(quoted))
	case c == '{':
		p.braces(w, quoted)
	case (c == '"' || c == '\'') && !quoted: // $"..." and $'...'
		p.pos++
	case isNameByte(c, true):
		p.pos++
		name := p.name()
		p.use(name)
		w.parts = append(w.parts, part{kind: variable, span: Span{start, p.pos}, quoted: quoted,
			expansion: &expansion{name: name}})
	case c >= '0' && c <= '9' || c != 0 && strings.IndexByte("@*#?$!-", c) >= 0:
		p.pos += 2
		w.parts = append(w.parts, special(string(c), Span{start, p.pos}, quoted))
	default:
		p.pos++
		w.parts = append(w.parts, part{kind: literal, span: Span{start, p.pos}, quoted: quoted})
	}
}

// special returns the part of $1, $@, $# and so on.
func special(name string, span Span, quoted bool) part {
	out := part{kind: variable, span: span, quoted: quoted, expansion: &expansion{name: name}}
	if name == "@" || name == "*" {
		out.index = name
		out.name = "@"
	}
	return out
}

// use counts a reference to a variable.
func (p *scanner) use(name string) { p.script.uses[name]++ }

// calculation reads $((...)). It returns false, and leaves the position, if that is not arithmetic.
func (p *wordParser) calculation(w *word, quoted bool) bool {
	end := closing(p.src, p.pos+3)
	if end < 0 || end+1 >= len(p.src) || p.src[end+1] != ')' {
		return false
	}
	inner := Span{p.pos + 3, end}
	p.countNames(inner)
	w.parts = append(w.parts, part{kind: calculation, span: Span{p.pos, end + 2}, quoted: quoted,
		expansion: &expansion{inner: inner}})
	p.pos = end + 2
	return true
}

// countNames counts the variables of an arithmetic expression.
func (p *scanner) countNames(sp Span) {
	for i := sp.Start; i < sp.End; i++ {
		if !isNameByte(p.src[i], true) {
			continue
		}
		start := i
		for i < sp.End && isNameByte(p.src[i], false) {
			i++
		}
		p.use(string(p.src[start:i]))
	}
}

// closing returns where the parenthesis closes whose text begins at a position; -1 if nowhere. Quotes hide
// parentheses.
func closing(src []byte, at int) int {
	depth := 0
	for i := at; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '\'', '"':
			end := bytes.IndexByte(src[i+1:], src[i])
			if end < 0 {
				return -1
			}
			i += end + 1
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// commandOutput reads the (...) of $(...), whose output is not known. The position is at the parenthesis.
func (p *wordParser) commandOutput(quoted bool) part {
	start := p.pos - 1
	if out, ok := p.catOutput(quoted); ok {
		return out
	}
	end := closing(p.src, p.pos+1)
	if end < 0 {
		p.unterminated(start, "(")
		return part{kind: substitution, span: Span{start, p.pos}, quoted: quoted}
	}
	p.countDollars(Span{p.pos, end})
	p.pos = end + 1
	return part{kind: substitution, span: Span{start, p.pos}, quoted: quoted}
}

// countDollars counts the variables that a command refers to as $NAME or ${NAME}.
func (p *scanner) countDollars(sp Span) {
	text := p.src[sp.Start:sp.End]
	for {
		i := bytes.IndexByte(text, '$')
		if i < 0 {
			return
		}
		text = bytes.TrimPrefix(text[i+1:], []byte("{"))
		n := 0
		for n < len(text) && isNameByte(text[n], n == 0) {
			n++
		}
		if n > 0 {
			p.use(string(text[:n]))
		}
		text = text[n:]
	}
}

// operators of ${NAME...}, the longer ones first.
var operators = []string{":-", ":=", ":+", ":?", "-", "=", "+", "?"}

// braces reads ${...}.
func (p *wordParser) braces(w *word, quoted bool) {
	start := p.pos
	p.pos += 2
	out := part{kind: variable, quoted: quoted, expansion: &expansion{}}
	if p.peek(0) == '#' && p.peek(1) != '}' {
		out.length = true
		p.pos++
	}
	out.name = p.name()
	if out.name == "" {
		out.name = p.specialName()
	}
	p.use(out.name)
	if out.name == "@" || out.name == "*" {
		out.name, out.index = "@", out.name
	}
	if p.peek(0) == '[' {
		if end := p.indexEnd(); end > 0 {
			out.index = string(p.src[p.pos+1 : p.pos+end])
			p.pos += end + 1
		}
	}
	if p.peek(0) != '}' {
		p.braceOperator(&out, quoted)
	}
	if p.peek(0) == '}' {
		p.pos++
	}
	out.span = Span{start, p.pos}
	w.parts = append(w.parts, out)
}

// specialName reads the name of a positional or special parameter in braces.
func (p *wordParser) specialName() string {
	start := p.pos
	for p.peek(0) >= '0' && p.peek(0) <= '9' {
		p.pos++
	}
	if p.pos == start && p.pos < len(p.src) && p.src[p.pos] != '}' {
		p.pos++
	}
	return string(p.src[start:p.pos])
}

// braceOperator reads what follows the name in ${NAME...}.
func (p *wordParser) braceOperator(out *part, quoted bool) {
	out.op = "other"
	for _, op := range operators {
		if p.startsWith(op) {
			out.op = op
			p.pos += len(op)
			break
		}
	}
	arg := word{span: Span{p.pos, p.pos}}
	out.arg = &arg
	p.depth++
	defer func() { p.depth-- }()
	for p.pos < len(p.src) && p.src[p.pos] != '}' {
		if p.depth > maxDepth {
			p.pos = len(p.src)
			return
		}
		if c := p.src[p.pos]; !quoted && isMeta(c) { // blanks are text here
			arg.parts = append(arg.parts, part{kind: literal, span: Span{p.pos, p.pos + 1}})
			p.pos++
			continue
		}
		p.part(&arg, "}", quoted)
	}
	arg.span.End = p.pos
}

// arithmeticCommand reads ((...)).
func (p *parser) arithmeticCommand() node {
	end := closing(p.src, p.pos+2)
	if end < 0 {
		p.unterminated(p.pos, "((")
		return &arithmetic{}
	}
	inner := Span{p.pos + 2, end}
	p.countNames(inner)
	p.pos = min(end+2, len(p.src))
	return &arithmetic{inner}
}

// test reads [[ ... ]].
func (p *parser) test() node {
	start := p.pos
	out := &test{}
	p.pos += 2
	for {
		p.lines()
		if p.pos >= len(p.src) {
			break
		}
		if p.startsWith("]]") {
			p.pos += 2
			break
		}
		if c := p.peek(0); isMeta(c) {
			end := p.pos + 1
			if p.peek(1) == c && (c == '&' || c == '|') {
				end++
			}
			operator := Span{p.pos, end}
			out.words = append(out.words, word{span: operator, parts: []part{{kind: literal, span: operator}}})
			p.pos = end
			continue
		}
		out.words = append(out.words, p.word())
	}
	out.span = Span{start, p.pos}
	return out
}
