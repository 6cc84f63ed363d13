package shell

import (
	"bytes"
	"slices"
)

// scanner reads bytes, blanks and names.
type scanner struct {
	script   *Script
	src      []byte
	pos      int
	heredocs []*heredoc // whose text follows the current line
	depth    int        // of what is being read
	isHere   bool       // the text of a here-document is being read
}

// wordParser reads words.
type wordParser struct{ *scanner }

// parser reads commands. It never fails: what it does not understand it skips.
type parser struct {
	wordParser
	buffer []word // memory for the words of the command that is read
}

// newParser returns a parser of a script's text from a position up to an end.
func newParser(s *Script, from, end int) *parser {
	return &parser{wordParser: wordParser{&scanner{script: s, src: s.source[:end], pos: from}}}
}

// heredoc is a <<WORD with its text, once that has been read.
type heredoc struct {
	end   []byte
	tabs  bool // <<-
	plain bool // the word is quoted: nothing is expanded
	inner bool // in $(...): a line that starts with the delimiter and a ) ends it, too
	text  word
}

// maxDepth bounds nesting, so that no script exhausts the stack.
const maxDepth = 200

// parse returns the commands of one of the script's files.
func parse(s *Script, file int) []node {
	f := s.files[file]
	if wrong := LineEnds(f.name, s.source[f.start:f.end]); wrong != nil {
		s.Diags = append(s.Diags, wrong...)
		return nil
	}
	p := newParser(s, f.start, f.end)
	var list []node
	for p.pos < len(p.src) {
		list = append(list, p.list()...)
		if p.pos < len(p.src) { // a stray "}" or "done"
			p.pos = max(p.pos+1, p.wordEnd())
		}
	}
	return list
}

// peek returns the byte at the position plus an offset, 0 at the end.
func (p *scanner) peek(offset int) byte {
	if p.pos+offset >= len(p.src) {
		return 0
	}
	return p.src[p.pos+offset]
}

// startsWith reports whether the rest of the source starts with a text.
func (p *scanner) startsWith(text string) bool { return bytes.HasPrefix(p.src[p.pos:], []byte(text)) }

// spaces skips blanks and continuation lines, but no line ends.
func (p *scanner) spaces() {
	for {
		switch c := p.peek(0); {
		case c == ' ' || c == '\t':
			p.pos++
		case c == '\\' && p.peek(1) == '\n':
			p.pos += 2
		default:
			return
		}
	}
}

// comment skips a comment up to the line's end, if one starts here.
func (p *scanner) comment() {
	if p.peek(0) != '#' {
		return
	}
	for p.pos < len(p.src) && p.src[p.pos] != '\n' {
		p.pos++
	}
}

// blanks skips everything between commands: blanks, line ends, comments and semicolons.
func (p *scanner) blanks() {
	for {
		p.spaces()
		p.comment()
		switch p.peek(0) {
		case '\n':
			p.newline()
		case ';':
			if p.peek(1) == ';' { // the end of a case's arm
				return
			}
			p.pos++
		case '&':
			p.pos++
		default:
			return
		}
	}
}

// newline passes a line's end, and the text of here-documents after it.
func (p *scanner) newline() {
	p.pos++
	for _, h := range p.heredocs {
		start, end := p.pos, p.pos
		for p.pos < len(p.src) {
			from, line := p.pos, p.src[p.pos:]
			if end := bytes.IndexByte(line, '\n'); end >= 0 {
				line = line[:end+1]
			}
			p.pos += len(line)
			line = bytes.TrimSuffix(line, []byte("\n"))
			if h.tabs {
				line = bytes.TrimLeft(line, "\t")
			}
			if bytes.Equal(line, h.end) {
				break
			}
			if h.inner && bytes.HasPrefix(line, append(h.end[:len(h.end):len(h.end)], ')')) {
				p.pos = from + bytes.Index(p.src[from:], h.end) + len(h.end)
				break
			}
			end = p.pos
		}
		h.text = p.heredocText(h, Span{start, end})
	}
	p.heredocs = p.heredocs[:0]
}

// heredocText reads the text of a here-document.
func (p *scanner) heredocText(h *heredoc, sp Span) word {
	w := word{span: sp}
	if h.plain {
		w.parts = append(w.parts, part{kind: literal, span: sp, quoted: true})
		p.stripTabs(h, &w)
		return w
	}
	r := newParser(p.script, sp.Start, sp.End)
	r.depth, r.isHere = p.depth, true
	for r.pos < sp.End {
		if c := r.src[r.pos]; c == '"' {
			w.parts = append(w.parts, part{kind: literal, span: Span{r.pos, r.pos + 1}, quoted: true})
			r.pos++
			continue
		}
		r.part(&w, "", true)
	}
	p.stripTabs(h, &w)
	return w
}

// stripTabs removes the tabs at the start of lines from the literal parts of a text, if <<- began it.
func (p *scanner) stripTabs(h *heredoc, w *word) {
	if !h.tabs {
		return
	}
	var out []part
	for _, x := range w.parts {
		if x.kind != literal {
			out = append(out, x)
			continue
		}
		end := x.span.End
		for from := x.span.Start; from < end; {
			for from < end && p.src[from] == '\t' && p.startsLine(w.span.Start, from) {
				from++
			}
			to := end
			if n := bytes.IndexByte(p.src[from:end], '\n'); n >= 0 {
				to = from + n + 1
			}
			if from < to {
				x.span = Span{from, to}
				out = append(out, x)
			}
			from = to
		}
	}
	w.parts = out
}

// startsLine reports whether there are only tabs between a position of a text and the start of its line.
func (p *scanner) startsLine(text, pos int) bool {
	for pos > text && p.src[pos-1] == '\t' {
		pos--
	}
	return pos == text || p.src[pos-1] == '\n'
}

// wordEnd returns where the bare word at the position ends.
func (p *scanner) wordEnd() int {
	end := p.pos
	for end < len(p.src) && !isMeta(p.src[end]) {
		end++
	}
	return end
}

// bareWord returns the bare word at the position.
func (p *scanner) bareWord() string { return string(p.src[p.pos:p.wordEnd()]) }

// isMeta reports whether a byte ends an unquoted word.
func isMeta(c byte) bool {
	switch c {
	case ' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')':
		return true
	}
	return false
}

// ends are the words that end a list of commands.
var ends = []string{"then", "elif", "else", "fi", "do", "done", "esac", "}"}

// list reads commands up to a word that ends a list, a ")" or ";;".
func (p *parser) list() (out []node) {
	p.depth++
	defer func() { p.depth-- }()
	for {
		p.blanks()
		if p.pos >= len(p.src) || p.peek(0) == ')' || p.peek(0) == ';' || p.depth > maxDepth {
			return out
		}
		if slices.Contains(ends, p.bareWord()) {
			return out
		}
		before := p.pos
		out = append(out, p.andOr())
		if p.pos == before {
			p.pos++
		}
	}
}

// andOr reads pipelines that are joined by && and ||.
func (p *parser) andOr() node {
	out := &andOr{first: p.pipeline()}
	for {
		p.spaces()
		isOr := p.startsWith("||")
		if !isOr && !p.startsWith("&&") {
			break
		}
		p.pos += 2
		p.lines()
		out.rest = append(out.rest, joined{isOr, p.pipeline()})
	}
	if len(out.rest) == 0 {
		return out.first
	}
	return out
}

// lines skips blanks, comments and line ends.
func (p *scanner) lines() {
	for {
		p.spaces()
		p.comment()
		if p.peek(0) != '\n' {
			return
		}
		p.newline()
	}
}

// pipeline reads commands that are joined by |.
func (p *parser) pipeline() node {
	out := &pipeline{}
	p.spaces()
	for p.peek(0) == '!' && isMeta(p.peek(1)) {
		out.negated = !out.negated
		p.pos++
		p.spaces()
	}
	for {
		out.parts = append(out.parts, p.command())
		p.spaces()
		if p.peek(0) != '|' || p.peek(1) == '|' {
			break
		}
		p.pos++
		if p.peek(0) == '&' {
			p.pos++
		}
		p.lines()
	}
	if len(out.parts) == 1 && !out.negated {
		return out.parts[0]
	}
	return out
}

// command reads one command, simple or compound.
func (p *parser) command() node {
	switch {
	case p.startsWith("(("):
		return p.arithmeticCommand()
	case p.peek(0) == '(':
		p.pos++
		body := p.list()
		p.accept(")")
		return &group{body: body, subshell: true}
	}
	switch p.bareWord() {
	case "if":
		return p.conditional()
	case "for", "select":
		return p.forLoop()
	case "while", "until":
		return p.whileLoop()
	case "case":
		return p.choice()
	case "function":
		p.pos += len("function")
		p.spaces()
		return p.function(p.takeBare())
	case "{":
		p.pos++
		body := p.list()
		p.accept("}")
		return &group{body: body}
	case "[[":
		return p.test()
	}
	return p.simple()
}

// takeBare reads a bare word.
func (p *scanner) takeBare() string {
	w := p.bareWord()
	p.pos += len(w)
	return w
}

// accept passes a word if it comes next.
func (p *scanner) accept(text string) bool {
	p.blanks()
	if p.startsWith(text) {
		p.pos += len(text)
		return true
	}
	return false
}

// conditional reads an if.
func (p *parser) conditional() node {
	out := &conditional{}
	for _, word := range []string{"if", "elif"} {
		for p.accept(word) {
			start := p.pos
			b := branch{condition: p.list()}
			b.span = p.trimmed(start, p.pos)
			p.accept("then")
			b.body = p.list()
			out.branches = append(out.branches, b)
			if word == "if" {
				break
			}
		}
	}
	if p.accept("else") {
		out.branches = append(out.branches, branch{body: p.list()})
	}
	p.accept("fi")
	return out
}

// trimmed returns a span without blanks and semicolons at its ends.
func (p *scanner) trimmed(start, end int) Span {
	const blank = " \t\n;"
	for start < end && bytes.IndexByte([]byte(blank), p.src[start]) >= 0 {
		start++
	}
	for start < end && bytes.IndexByte([]byte(blank), p.src[end-1]) >= 0 {
		end--
	}
	return Span{start, end}
}

// forLoop reads for NAME in words; do list; done, and for ((...)).
func (p *parser) forLoop() node {
	start := p.pos
	p.takeBare()
	p.spaces()
	out := &loop{}
	if p.startsWith("((") {
		p.arithmeticCommand()
	} else {
		out.variable = p.takeBare()
		p.lines()
		if p.bareWord() == "in" {
			p.takeBare()
			p.words()
		}
	}
	out.span = p.trimmed(start, p.pos)
	p.accept("do")
	out.body = p.list()
	p.accept("done")
	p.redirections()
	return out
}

// whileLoop reads while list; do list; done.
func (p *parser) whileLoop() node {
	start := p.pos
	out := &loop{until: p.takeBare() == "until"}
	out.condition = p.list()
	out.span = p.trimmed(start, p.pos)
	p.accept("do")
	out.body = p.list()
	p.accept("done")
	p.redirections()
	return out
}

// choice reads a case.
func (p *parser) choice() node {
	start := p.pos
	p.takeBare()
	p.spaces()
	out := &choice{subject: p.word()}
	out.span = p.trimmed(start, p.pos)
	p.lines()
	if p.bareWord() == "in" {
		p.takeBare()
	}
	for {
		p.lines()
		if p.pos >= len(p.src) || p.bareWord() == "esac" {
			break
		}
		before := p.pos
		out.arms = append(out.arms, p.arm())
		if p.pos == before {
			p.pos++
		}
	}
	p.accept("esac")
	return out
}

// arm reads pattern|pattern) list ;;
func (p *parser) arm() (a arm) {
	if p.peek(0) == '(' {
		p.pos++
	}
	for {
		p.spaces()
		a.patterns = append(a.patterns, p.word())
		p.spaces()
		if p.peek(0) != '|' {
			break
		}
		p.pos++
	}
	if p.peek(0) == ')' {
		p.pos++
	}
	a.body = p.list()
	for p.peek(0) == ';' || p.peek(0) == '&' {
		p.pos++
	}
	return a
}

// function reads the rest of a definition.
func (p *parser) function(name string) node {
	p.spaces()
	if p.startsWith("(") {
		p.pos++
		p.spaces()
		p.accept(")")
	}
	p.lines()
	f := &function{name: name}
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return f
	}
	if g, ok := p.command().(*group); ok {
		f.body = g.body
	}
	return f
}
