package tree

import (
	"encoding/json"
	"strings"

	"github.com/planc-dev/planc/ir/spec/strict"
)

// This file reads what Hjson adds to JSON: keys and text without quotes, single quotes, text of several lines, and line
// breaks instead of commas. It follows hjson 3.1.0 for Python, with which DeepSpeed reads its files.

// isBare reports whether the top level is a map without braces.
func (p *jsonParser) isBare() bool {
	return p.isHjson && !p.peek('{') && !p.peek('[')
}

// bareObject reads a map without braces. A text in which no key stands is read as one value.
func (p *jsonParser) bareObject() *Node {
	n := &Node{Kind: strict.Map, Pos: p.d.pos(p.at), Start: p.at}
	seen := map[string]*Field{}
	for p.at < len(p.text) {
		p.field(n, 0, seen)
		n.End = p.at
		p.space()
		if p.peek(',') {
			p.at++
			p.space()
		}
	}
	return n
}

// bareKey reads a key without quotes.
func (p *jsonParser) bareKey() string {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n:{}[],", p.text[p.at]) < 0 {
		p.at++
	}
	key := p.text[start:p.at]
	end := p.at
	p.space()
	switch {
	case key == "":
		p.fail(start, strict.Syntax, "%s stands in the place of a key", p.found())
	case !p.peek(':'):
		p.fail(start, strict.Syntax, "':' is missing after key %s", shorten(key))
	}
	p.at = end
	return key
}

// hjsonText reads text in single quotes, in three of them, or without quotes. Numbers, true, false and null have no
// quotes either.
func (p *jsonParser) hjsonText(n *Node) {
	switch rest := p.text[p.at:]; {
	case strings.HasPrefix(rest, "'''"):
		n.Kind, n.Text = strict.String, p.tripleQuoted()
	case p.peek('\''):
		n.Kind, n.quote = strict.String, '\''
		n.Text = p.quotedBy('\'')
	case rest == "" || strings.IndexByte("}],:", rest[0]) >= 0:
		p.fail(p.at, strict.Syntax, "a value is missing before %s", p.found())
	default:
		p.bareText(n)
	}
}

// bareText reads a value without quotes. Text ends with its line: commas, brackets and comments are part of it. A
// number, true, false or null ends before them.
func (p *jsonParser) bareText(n *Node) {
	line := p.text[p.at:p.endOfLine()]
	word := line
	if i := strings.IndexAny(line, ",}]#/"); i >= 0 && (line[i] != '/' || isComment(line[i:])) {
		word = line[:i]
	}
	word = strings.TrimRight(word, " \t")
	if kind, ok := literalKind(word); ok {
		n.Kind, n.Text = kind, word
		if kind == strict.Null {
			n.Text = ""
		}
		p.at += len(word)
		return
	}
	n.Kind, n.Text, n.bare = strict.String, strings.TrimSpace(line), true
	p.at += len(n.Text)
	if strings.ContainsAny(n.Text, "}]") {
		p.swallowed = n
	}
}

// endOfLine returns the offset of the next line break. It searches each line once, because a line may have all values
// of the file.
func (p *jsonParser) endOfLine() int {
	if p.at < p.lineEnd {
		return p.lineEnd
	}
	p.lineEnd = len(p.text)
	if i := strings.IndexAny(p.text[p.at:], "\r\n"); i >= 0 {
		p.lineEnd = p.at + i
	}
	return p.lineEnd
}

// isComment reports whether a text starts with a comment of two characters.
func isComment(text string) bool {
	return strings.HasPrefix(text, "//") || strings.HasPrefix(text, "/*")
}

// tripleQuoted reads text of several lines in three single quotes. Its lines lose the indentation of the quotes.
func (p *jsonParser) tripleQuoted() string {
	start := p.at
	indent := p.d.index.column(start)
	const quotes = "'''"
	body := p.text[start+len(quotes):]
	end := strings.Index(body, quotes)
	if end < 0 {
		p.fail(start, strict.Syntax, "the text that starts here is not closed: add \"'''\"")
	}
	p.at = start + end + 2*len(quotes)
	lines := strings.Split(strings.ReplaceAll(body[:end], "\r", ""), "\n")
	lines[0] = strings.TrimLeft(lines[0], " \t")
	for i := 1; i < len(lines); i++ {
		blank := len(lines[i]) - len(strings.TrimLeft(lines[i], " \t"))
		lines[i] = lines[i][min(indent, blank):]
	}
	if lines[0] == "" && len(lines) > 1 {
		lines = lines[1:]
	}
	return strings.TrimSuffix(strings.Join(lines, "\n"), "\n")
}

// plainQuotes returns a text with its quotes as JSON writes it: in double quotes.
func plainQuotes(text string) string {
	if text[0] == '"' {
		return strings.ReplaceAll(text, `\'`, `'`)
	}
	inner := strings.ReplaceAll(text[1:len(text)-1], `\'`, `'`)
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == '\\' && i+1 < len(inner):
			b.WriteByte(inner[i])
			i++
		case inner[i] == '"':
			b.WriteByte('\\')
		}
		b.WriteByte(inner[i])
	}
	return `"` + b.String() + `"`
}

// unquote returns the text of a string in quotes.
func (p *jsonParser) unquote(quoted string) (s string, err error) {
	if p.isHjson {
		quoted = plainQuotes(quoted)
	}
	err = json.Unmarshal([]byte(quoted), &s)
	return s, err
}
