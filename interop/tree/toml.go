package tree

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// tomlBuilder converts the expressions of the TOML library to one tree.
type tomlBuilder struct {
	d       *Doc
	p       unstable.Parser
	limit   limits
	diags   ir.Diags
	seen    map[*Node]map[string]*Field
	current *Node            // the table of the last header
	defined map[*Node]ir.Pos // tables that have had a header
}

func (d *Doc) parseTOML() ir.Diags {
	b := &tomlBuilder{d: d, limit: limits{limit: maxTOML}, current: d.Root}
	b.seen, b.defined = map[*Node]map[string]*Field{}, map[*Node]ir.Pos{}
	b.p.Reset([]byte(d.text))
	for b.p.NextExpression() && !b.limit.full {
		b.expression(b.p.Expression())
	}
	if err := b.p.Error(); err != nil {
		b.diags = append(b.diags, b.syntax(err))
	}
	if len(b.diags) > 0 {
		return b.diags
	}
	if len(d.Root.Fields) == 0 {
		b.diags.Addf(d.Root.Pos, strict.Empty, "the file is empty")
		return b.diags
	}
	var all map[string]any
	var bad *toml.DecodeError
	if err := toml.Unmarshal([]byte(d.text), &all); errors.As(err, &bad) {
		line, column := bad.Position()
		b.diags.Addf(ir.Pos{File: d.File, Line: line, Column: column}, strict.Syntax, "%s",
			strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return b.diags
}

// syntax converts an error of the library.
func (b *tomlBuilder) syntax(err error) ir.Diag {
	pos := ir.Pos{File: b.d.File, Line: 1, Column: 1}
	var bad *unstable.ParserError
	if errors.As(err, &bad) && bad.Highlight != nil {
		pos = b.d.pos(int(b.p.Range(bad.Highlight).Offset))
	}
	return ir.Diag{Pos: pos, Code: strict.Syntax, Msg: "this is not TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
}

func (b *tomlBuilder) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.KeyValue:
		b.keyValue(b.current, e, 0)
	case unstable.Table, unstable.ArrayTable:
		b.header(e)
	}
}

// keys returns the parts of a key, and their bytes.
func keys(e *unstable.Node) (parts []string, ranges []unstable.Range) {
	for it := e.Key(); it.Next(); {
		parts = append(parts, string(it.Node().Data))
		ranges = append(ranges, it.Node().Raw)
	}
	return parts, ranges
}

// header makes the table of a header the current one.
func (b *tomlBuilder) header(e *unstable.Node) {
	parts, ranges := keys(e)
	first, last := int(ranges[0].Offset), ranges[len(ranges)-1]
	start := strings.LastIndexByte(b.d.text[:first], '[')
	if e.Kind == unstable.ArrayTable {
		start--
	}
	pos := b.d.pos(start)
	if b.limit.exceeded(pos, len(parts), &b.diags) {
		return
	}
	at := b.d.Root
	for i, part := range parts {
		at = b.child(at, part, start, first, int(last.Offset+last.Length))
		if at == nil {
			return
		}
		isLast := i == len(parts)-1
		switch {
		case isLast && e.Kind == unstable.ArrayTable:
			at = b.item(at, pos)
		case at.Kind == strict.List && len(at.Items) > 0 && !isLast:
			at = at.Items[len(at.Items)-1]
		}
		if at == nil || at.Kind != strict.Map {
			b.diags.Addf(pos, strict.DuplicateKey, "key %s is not a table", strings.Join(parts[:i+1], "."))
			return
		}
	}
	if earlier, ok := b.defined[at]; ok {
		b.diags.Addf(pos, strict.DuplicateKey, "table [%s] is given twice, first on line %d", strings.Join(parts, "."),
			earlier.Line)
		return
	}
	b.defined[at] = pos
	at.Pos, at.Start = pos, start
	at.body = start + lineLength(b.d.text[start:])
	at.End = at.body
	b.current = at
}

// child returns the table of a key of a header, and adds it if it is absent.
func (b *tomlBuilder) child(at *Node, key string, start, keyStart, keyEnd int) *Node {
	if n := b.valueOf(at, key); n != nil {
		return n
	}
	n := &Node{Kind: strict.Map, layout: table, Pos: b.d.pos(start), Start: start, End: start}
	f := &Field{Key: key, Pos: b.d.pos(keyStart), Start: keyStart, End: keyEnd, Value: n, header: true}
	at.addField(f, b.seenOf(at), &b.diags)
	return n
}

// item adds a table to a list of tables.
func (b *tomlBuilder) item(list *Node, pos ir.Pos) *Node {
	if list.Kind == strict.Map && len(list.Fields) == 0 && list.layout == table {
		list.Kind = strict.List
	}
	if list.Kind != strict.List || list.layout != table {
		return nil
	}
	n := &Node{Kind: strict.Map, layout: table, Pos: pos}
	list.Items = append(list.Items, n)
	return n
}

func (b *tomlBuilder) seenOf(n *Node) map[string]*Field {
	if b.seen[n] == nil {
		b.seen[n] = map[string]*Field{}
	}
	return b.seen[n]
}

// valueOf returns the value of a key of a table, nil if it is absent.
func (b *tomlBuilder) valueOf(at *Node, key string) *Node {
	f := b.seenOf(at)[key]
	if f == nil {
		return nil
	}
	return f.Value
}

// keyValue adds a key to a table.
func (b *tomlBuilder) keyValue(at *Node, e *unstable.Node, depth int) {
	parts, ranges := keys(e)
	start := int(ranges[0].Offset)
	last := ranges[len(ranges)-1]
	f := &Field{Key: parts[len(parts)-1], Pos: b.d.pos(start), Start: start, End: int(last.Offset + last.Length)}
	f.dotted = b.d.text[start:last.Offset]
	for i, part := range parts[:len(parts)-1] {
		next := b.valueOf(at, part)
		if next == nil && b.limit.exceeded(f.Pos, depth+i, &b.diags) {
			return
		}
		if next == nil {
			next = &Node{Kind: strict.Map, layout: table, Pos: f.Pos, Start: start, End: start}
			at.addField(&Field{Key: part, Pos: f.Pos, Start: start, End: f.End, Value: next}, b.seenOf(at), &b.diags)
		}
		if next.Kind != strict.Map {
			b.diags.Addf(f.Pos, strict.DuplicateKey, "key %s is not a table", part)
			return
		}
		at = next
	}
	equals := f.End + strings.IndexByte(b.d.text[f.End:], '=') + 1
	f.Value = b.value(e.Value(), equals, depth+len(parts))
	at.addField(f, b.seenOf(at), &b.diags)
	at.End = max(at.End, f.Value.End)
}

// value converts a value that starts after an offset.
func (b *tomlBuilder) value(v *unstable.Node, after, depth int) *Node {
	start := skipSpace(b.d.text, after, TOML)
	n := &Node{Pos: b.d.pos(start), Start: start}
	if b.limit.full || b.limit.exceeded(n.Pos, depth, &b.diags) {
		return n
	}
	n.End = start + int(v.Raw.Length)
	switch v.Kind {
	case unstable.Array:
		b.array(n, v, depth)
		return n
	case unstable.InlineTable:
		b.inline(n, v, depth)
		return n
	case unstable.Bool:
		n.Kind = strict.Bool
	case unstable.Integer:
		n.Kind = strict.Int
	case unstable.Float:
		n.Kind = strict.Float
	case unstable.String:
		n.Kind, n.quote = strict.String, b.d.text[start]
	default:
		n.Kind = strict.String // a date
	}
	n.Text = string(v.Data)
	if n.Kind == strict.Int || n.Kind == strict.Float {
		n.Text = strings.ReplaceAll(n.Text, "_", "")
	}
	return n
}

func (b *tomlBuilder) array(n *Node, v *unstable.Node, depth int) {
	n.Kind, n.End = strict.List, n.Start+1
	for it := v.Children(); !b.limit.full && it.Next(); {
		n.End = skipComma(b.d.text, n.End)
		item := b.value(it.Node(), n.End, depth+1)
		n.Items = append(n.Items, item)
		n.End = item.End
	}
	n.End = endOfFlow(b.d.text, n.End, ']')
}

func (b *tomlBuilder) inline(n *Node, v *unstable.Node, depth int) {
	n.Kind, n.End = strict.Map, n.Start+1
	for it := v.Children(); !b.limit.full && it.Next(); {
		b.keyValue(n, it.Node(), depth)
		n.End = int(it.Node().Raw.Offset + it.Node().Raw.Length)
	}
	n.End = endOfFlow(b.d.text, n.End, '}')
}

// skipComma returns the offset after a comma, if one follows.
func skipComma(text string, at int) int {
	i := skipSpace(text, at, TOML)
	if i < len(text) && text[i] == ',' {
		return i + 1
	}
	return at
}
