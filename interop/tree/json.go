package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// jsonParser reads JSON with comments and trailing commas, or Hjson.
type jsonParser struct {
	d       *Doc
	text    string
	at      int
	limit   limits
	diags   ir.Diags
	isHjson bool
	lineEnd int // Hjson: the end of the line of the last value without quotes
	// swallowed is a text without quotes that contains a closing bracket; nil if there is none.
	swallowed *Node
}

// stop ends parsing at the first syntax error. Its value is the error.
type stop struct{ diag ir.Diag }

func (d *Doc) parseJSON() (diags ir.Diags) {
	p := &jsonParser{d: d, text: d.text, isHjson: d.Syntax == Hjson,
		limit: limits{limit: maxNodes}}
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		s, ok := r.(stop)
		if !ok {
			panic(r)
		}
		diags = append(p.diags, s.diag)
	}()
	p.space()
	if p.at == len(p.text) {
		p.fail(0, strict.Empty, "the file is empty")
	}
	if p.isBare() {
		d.Root = p.bareObject()
	} else {
		d.Root = p.value(0)
	}
	p.space()
	if p.at < len(p.text) {
		p.fail(p.at, strict.Syntax, "%s follows the end of the value; the file must hold one value", p.found())
	}
	return p.diags
}

func (p *jsonParser) fail(at int, code ir.Code, format string, args ...any) {
	panic(stop{ir.Diag{Pos: p.d.pos(at), Code: code, Msg: fmt.Sprintf(format, args...)}})
}

// found describes the character at the parser's position.
func (p *jsonParser) found() string {
	if p.at >= len(p.text) {
		return "the end of the file"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Sprintf("%q", r)
}

// space skips white space and comments.
func (p *jsonParser) space() { p.at = skipSpace(p.text, p.at, JSON) }

// skipSpace returns the offset of the next character that is neither white space nor part of a comment.
func skipSpace(text string, at int, s Syntax) int {
	for at < len(text) {
		rest := text[at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			at++
		case rest[0] == '#' || s.isJSON() && strings.HasPrefix(rest, "//"):
			at += lineLength(rest)
		case s.isJSON() && strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return at
			}
			at += end + 4
		default:
			return at
		}
	}
	return at
}

// lineLength returns the length of the text up to the end of its first line.
func lineLength(text string) int {
	i := strings.IndexByte(text, '\n')
	if i < 0 {
		return len(text)
	}
	return i
}

// peek reports whether the next character is c.
func (p *jsonParser) peek(c byte) bool { return p.at < len(p.text) && p.text[p.at] == c }

func (p *jsonParser) value(depth int) *Node {
	n := &Node{Pos: p.d.pos(p.at), Start: p.at}
	if p.limit.exceeded(n.Pos, depth, &p.diags) {
		d := p.diags[len(p.diags)-1]
		p.diags = p.diags[:len(p.diags)-1]
		panic(stop{d})
	}
	switch {
	case p.peek('{'):
		p.object(n, depth)
	case p.peek('['):
		p.array(n, depth)
	case p.peek('"'):
		n.Kind, n.quote = strict.String, '"'
		n.Text = p.quoted()
	case p.isHjson:
		p.hjsonText(n)
	default:
		p.word(n)
	}
	n.End = p.at
	return n
}

func (p *jsonParser) object(n *Node, depth int) {
	n.Kind = strict.Map
	seen := map[string]*Field{}
	for p.more(n, '}', "object") {
		p.field(n, depth, seen)
	}
}

// field reads a key with its value.
func (p *jsonParser) field(n *Node, depth int, seen map[string]*Field) {
	f := &Field{Pos: p.d.pos(p.at), Start: p.at}
	switch {
	case p.peek('"'):
		f.Key = p.quoted()
	case !p.isHjson:
		p.fail(p.at, strict.Syntax, "%s must be a key: write keys in double quotes", p.found())
	case p.peek('\''):
		f.Key = p.quotedBy('\'')
	default:
		f.Key = p.bareKey()
	}
	f.End = p.at
	p.space()
	if !p.peek(':') {
		p.fail(p.at, strict.Syntax, "':' is missing after key %s", f.Key)
	}
	p.at++
	p.space()
	f.Value = p.value(depth + 1)
	n.addField(f, seen, &p.diags)
}

func (p *jsonParser) array(n *Node, depth int) {
	n.Kind = strict.List
	for p.more(n, ']', "array") {
		n.Items = append(n.Items, p.value(depth+1))
	}
}

// more steps over the opening bracket or a comma. It reports whether another element follows, and steps over the
// closing bracket if none does.
func (p *jsonParser) more(n *Node, end byte, what string) bool {
	first := p.at == n.Start
	if first {
		p.at++
	}
	p.space()
	comma := p.peek(',')
	if comma && !first {
		p.at++
		p.space()
	}
	switch {
	case p.peek(end):
		p.at++
		return false
	case p.at >= len(p.text) && p.swallowed != nil:
		p.fail(p.swallowed.Start, strict.Syntax, "text without quotes ends with its line, so that %q is one text: "+
			"write text in double quotes, and ',' between values", shorten(p.swallowed.Text))
	case p.at >= len(p.text):
		p.fail(p.at, strict.Syntax, "the %s that starts on line %d is not closed: add %q", what, n.Pos.Line, end)
	case !first && !comma && !p.isHjson:
		p.fail(p.at, strict.Syntax, "',' is missing before %s", p.found())
	case p.peek(','):
		p.fail(p.at, strict.Syntax, "there is nothing before this ','")
	}
	return true
}

// quoted reads a string in double quotes.
func (p *jsonParser) quoted() string { return p.quotedBy('"') }

// quotedBy reads a string in quotes of one kind.
func (p *jsonParser) quotedBy(quote byte) string {
	start := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\\':
			p.at++
		case '\n':
			p.fail(start, strict.Syntax, "the text that starts here is not closed: add %q", quote)
		case quote:
			p.at++
			s, err := p.unquote(p.text[start:p.at])
			if err != nil {
				p.fail(start, strict.Syntax, "the text that starts here is no JSON string: %s", err)
			}
			return s
		}
	}
	p.at = len(p.text)
	p.fail(start, strict.Syntax, "the text that starts here is not closed: add %q", quote)
	return ""
}

// word reads a number, true, false or null.
func (p *jsonParser) word(n *Node) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}:\"[{#/", p.text[p.at]) < 0 {
		p.at++
	}
	word := p.text[start:p.at]
	kind, ok := literalKind(word)
	if ok {
		n.Kind, n.Text = kind, word
		if kind == strict.Null {
			n.Text = ""
		}
		return
	}
	p.at = start
	switch lower := strings.ToLower(word); {
	case word == "":
		p.fail(start, strict.Syntax, "a value is missing before %s", p.found())
	case lower == "true" || lower == "false":
		p.fail(start, strict.Syntax, "%s is not JSON: write %s", word, lower)
	case lower == "none":
		p.fail(start, strict.Syntax, "%s is not JSON: write null", word)
	}
	p.fail(start, strict.Syntax, "%s is neither a number nor true, false or null: write text in double quotes",
		shorten(word))
}

// literalKind returns the kind of a word of JSON that has no quotes. ok is false for other words.
func literalKind(word string) (kind strict.Kind, ok bool) {
	switch {
	case word == "null":
		return strict.Null, true
	case word == "true" || word == "false":
		return strict.Bool, true
	case word == "" || !json.Valid([]byte(word)) || strings.TrimSpace(word) != word:
		return 0, false
	case word[0] != '-' && (word[0] < '0' || word[0] > '9'):
		return 0, false
	case strings.ContainsAny(word, ".eE"):
		return strict.Float, true
	}
	return strict.Int, true
}

// shorten returns the start of a long text, for messages.
func shorten(s string) string {
	r := []rune(s)
	if len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
