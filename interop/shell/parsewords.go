package shell

import (
	"bytes"
	"slices"
	"strings"
)

// Words: simple commands, quotes, expansions.

// simple reads a command of words.
func (p *parser) simple() node {
	out, words := &simple{}, p.buffer[:0]
	start := p.pos
	before := len(p.heredocs)
	declares, isEnv := false, false // export, declare, env: further words may be assignments
	for {
		p.spaces()
		if p.redirection() {
			continue
		}
		if c := p.peek(0); p.pos >= len(p.src) || c == '#' || isMeta(c) {
			break
		}
		if len(words) == 0 || declares {
			a, ok := p.assignment()
			if ok {
				out.assigns = append(out.assigns, a)
				continue
			}
		}
		w := p.word()
		if len(words) == 1 && isEnv && p.src[w.span.Start] != '-' {
			declares = false // further words are arguments of the command that env runs
		}
		if len(words) == 0 {
			name := string(p.src[w.span.Start:w.span.End])
			p.spaces()
			if p.startsWith("()") || p.startsWith("( )") {
				return p.function(name)
			}
			declares = isDeclaration(name)
			isEnv = name == "env"
		}
		words = append(words, w)
	}
	p.buffer, out.words = words, slices.Clone(words)
	if n := len(p.heredocs); n > before {
		out.heredoc = p.heredocs[n-1]
	}
	out.span = Span{start, p.pos}
	return out
}

// isDeclaration reports whether a command takes assignments as arguments.
func isDeclaration(name string) bool {
	switch name {
	case "export", "declare", "typeset", "local", "readonly", "env":
		return true
	}
	return false
}

// assignment reads NAME=..., if it comes next. Otherwise it leaves the position.
func (p *parser) assignment() (assign, bool) {
	start := p.pos
	name := p.name()
	if name == "" {
		return assign{}, false
	}
	a := assign{name: name, start: start}
	if p.peek(0) == '[' {
		end := p.indexEnd()
		if end < 0 {
			p.pos = start
			return assign{}, false
		}
		index := word{span: Span{p.pos + 1, p.pos + end}}
		index.parts = []part{{kind: literal, span: index.span}}
		a.index = &index
		p.pos += end + 1
	}
	if p.startsWith("+=") {
		a.appends = true
		p.pos++
	}
	if p.peek(0) != '=' {
		p.pos = start
		return assign{}, false
	}
	p.pos++
	uses := p.script.uses[name]
	if p.peek(0) == '(' {
		p.pos++
		a.isArray = true
		a.values = p.elements()
	} else {
		a.value = p.word()
	}
	p.script.uses[name] = uses // X=${X:-4} is no further use of X
	return a, true
}

// indexEnd returns how far the "]" of an array's index is; -1 if it is not on this line.
func (p *scanner) indexEnd() int {
	const longest = 1000
	rest := p.src[p.pos:min(len(p.src), p.pos+longest)]
	end := bytes.IndexAny(rest, "]\n")
	if end < 0 || rest[end] == '\n' {
		return -1
	}
	return end
}

// name reads an identifier; "" if none comes next.
func (p *scanner) name() string {
	end := p.pos
	for end < len(p.src) && isNameByte(p.src[end], end == p.pos) {
		end++
	}
	name := string(p.src[p.pos:end])
	p.pos = end
	return name
}

// isNameByte reports whether a byte can be in a variable's name.
func isNameByte(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}

// elements reads the words of an array up to its ")".
func (p *parser) elements() (out []word) {
	for {
		p.lines()
		c := p.peek(0)
		if p.pos >= len(p.src) {
			return out
		}
		if c == ')' {
			p.pos++
			return out
		}
		if isMeta(c) {
			p.pos++
			continue
		}
		out = append(out, p.word())
	}
}

// words reads the words up to the end of a command.
func (p *parser) words() (out []word) {
	for {
		p.spaces()
		if c := p.peek(0); p.pos >= len(p.src) || isMeta(c) || c == '#' {
			return out
		}
		out = append(out, p.word())
	}
}

// redirections skips redirections.
func (p *parser) redirections() {
	for {
		p.spaces()
		if !p.redirection() {
			return
		}
	}
}

// redirection skips one redirection, if it comes next: 2>&1, >> file, <<EOF.
func (p *parser) redirection() bool {
	start := p.pos
	for p.peek(0) >= '0' && p.peek(0) <= '9' {
		p.pos++
	}
	if p.pos == start && p.peek(0) == '&' && p.peek(1) == '>' {
		p.pos++
	}
	c := p.peek(0)
	if c != '<' && c != '>' || (c == '<' || c == '>') && p.peek(1) == '(' {
		p.pos = start
		return false
	}
	if p.startsWith("<<") && p.peek(2) != '<' {
		p.pos += 2
		h := &heredoc{}
		if p.peek(0) == '-' {
			h.tabs = true
			p.pos++
		}
		p.spaces()
		w := p.word()
		for _, part := range w.parts {
			h.plain = h.plain || part.quoted
			h.end = append(h.end, p.src[part.span.Start:part.span.End]...)
		}
		p.heredocs = append(p.heredocs, h)
		return true
	}
	for c := p.peek(0); c == '<' || c == '>' || c == '&' || c == '|'; c = p.peek(0) {
		p.pos++
	}
	p.spaces()
	if c := p.peek(0); p.pos < len(p.src) && !isMeta(c) {
		p.word()
	}
	return true
}

// word reads a word up to an unquoted blank or operator.
func (p *wordParser) word() word {
	w := word{span: Span{p.pos, p.pos}}
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if (c == '<' || c == '>') && p.peek(1) == '(' { // <(...)
			p.pos++
			w.parts = append(w.parts, p.commandOutput(false))
			continue
		}
		if isMeta(c) {
			break
		}
		p.part(&w, "", false)
	}
	w.span.End = p.pos
	return w
}

// part reads one part of a word. Bytes of stop end literals, too.
func (p *wordParser) part(w *word, stop string, quoted bool) {
	switch c := p.src[p.pos]; {
	case c == '\\':
		p.escape(w, quoted)
	case c == '\'' && !quoted:
		p.singleQuotes(w)
	case c == '"':
		p.doubleQuotes(w)
	case c == '$':
		p.dollar(w, quoted)
	case c == '`':
		start := p.pos
		end := bytes.IndexByte(p.src[p.pos+1:], '`')
		if end < 0 {
			p.unterminated(start, "`")
			return
		}
		p.pos += end + 2
		w.parts = append(w.parts, part{kind: substitution, span: Span{start, p.pos}, quoted: quoted})
	default:
		p.literal(w, stop, quoted)
	}
}

// literal reads plain text.
func (p *wordParser) literal(w *word, stop string, quoted bool) {
	start := p.pos
	p.pos++
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if c == '\\' || c == '"' || c == '$' || c == '`' || !quoted && (c == '\'' || isMeta(c)) ||
			bytes.IndexByte([]byte(stop), c) >= 0 {
			break
		}
		p.pos++
	}
	w.parts = append(w.parts, part{kind: literal, span: Span{start, p.pos}, quoted: quoted})
}

// escape reads a backslash and what it quotes. A backslash at the end of a line joins lines.
func (p *wordParser) escape(w *word, quoted bool) {
	p.pos++
	c := p.peek(0)
	switch {
	case p.pos >= len(p.src):
		return
	case c == '\n':
		p.pos++
		return
	case quoted && bytes.IndexByte([]byte(`"\$`+"`"), c) < 0:
		w.parts = append(w.parts, part{kind: literal, span: Span{p.pos - 1, p.pos}, quoted: true})
		return // the backslash stays
	}
	p.pos++
	w.parts = append(w.parts, part{kind: literal, span: Span{p.pos - 1, p.pos}, quoted: true})
}

// singleQuotes reads '...'.
func (p *wordParser) singleQuotes(w *word) {
	start := p.pos
	end := bytes.IndexByte(p.src[p.pos+1:], '\'')
	if end < 0 {
		p.unterminated(start, "'")
		return
	}
	p.pos += end + 2
	w.parts = append(w.parts, part{kind: literal, span: Span{start + 1, p.pos - 1}, quoted: true})
}

// doubleQuotes reads "...".
func (p *wordParser) doubleQuotes(w *word) {
	start := p.pos
	p.pos++
	before := len(w.parts)
	for p.peek(0) != '"' {
		if p.pos >= len(p.src) {
			p.unterminated(start, `"`)
			return
		}
		p.part(w, "", true)
	}
	if len(w.parts) == before { // "" is a word, too
		w.parts = append(w.parts, part{kind: literal, span: Span{p.pos, p.pos}, quoted: true})
	}
	p.pos++
}

// unterminated reports a quote or a parenthesis without an end, and ends the script.
func (p *scanner) unterminated(start int, quote string) {
	p.script.Diags.Addf(p.script.At(start), BadScript, "the %s here has no end: add the closing %s", quote,
		strings.ReplaceAll(quote, "(", ")"))
	p.pos = len(p.src)
}
