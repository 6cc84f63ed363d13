package tree

import (
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
	yaml "go.yaml.in/yaml/v4"
)

// yamlBuilder converts the YAML library's tree, and finds the bytes of each value.
type yamlBuilder struct {
	d     *Doc
	text  string
	limit limits
	diags ir.Diags
	alias int // levels of aliases around the value
}

func (d *Doc) parseYAML() ir.Diags {
	var diags ir.Diags
	if leastValues(d.text, maxNodes) > maxNodes {
		addTooLarge(d.Root.Pos, maxNodes, &diags)
		return diags
	}
	var y yaml.Node
	err := yaml.Load([]byte(d.text), &y)
	if err != nil {
		return ir.Diags{strict.LoadDiag(d.File, d.text, err)}
	}
	isOdd := strings.Contains(strings.ReplaceAll(d.text, "\r\n", "\n"), "\r")
	if isOdd || strings.ContainsAny(d.text, "\u0085\u2028\u2029") {
		d.locked = "the file has line breaks other than \\n and \\r\\n"
	}
	b := &yamlBuilder{d: d, text: d.text, limit: limits{limit: maxNodes}}
	if len(y.Content) == 0 {
		b.diags.Addf(d.Root.Pos, strict.Empty, "the file is empty")
		return b.diags
	}
	root := b.node(y.Content[0], 0, 0)
	if root.Kind == strict.Null {
		b.diags.Addf(d.Root.Pos, strict.Empty, "the file is empty")
		return b.diags
	}
	d.Root = root
	return b.diags
}

// offset returns the byte of a position of the library.
func (b *yamlBuilder) offset(y *yaml.Node) int { return b.d.index.offset(y.Line, y.Column) }

func (b *yamlBuilder) pos(y *yaml.Node) ir.Pos {
	return ir.Pos{File: b.d.File, Line: max(y.Line, 1), Column: max(y.Column, 1)}
}

// node converts a value. after is where the value may start, if it is not written.
func (b *yamlBuilder) node(y *yaml.Node, after, depth int) *Node {
	n := &Node{Pos: b.pos(y), Start: b.offset(y), alias: b.alias > 0}
	n.End = n.Start
	if b.limit.full || b.limit.exceeded(n.Pos, depth, &b.diags) {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return b.aliased(y, n, depth)
	case yaml.ScalarNode:
		b.scalar(y, n, after)
	case yaml.SequenceNode:
		b.list(y, n, depth)
	case yaml.MappingNode:
		b.mapping(y, n, depth)
	}
	n.Start, n.End = min(n.Start, len(b.text)), min(n.End, len(b.text))
	return n
}

// aliased returns the value that an alias stands for, with the bytes of the alias.
func (b *yamlBuilder) aliased(y *yaml.Node, n *Node, depth int) *Node {
	b.d.anchored = true
	b.alias++
	value := b.node(y.Alias, 0, depth+1)
	b.alias--
	value.Pos, value.Start, value.layout = n.Pos, n.Start, flow
	value.alias = b.alias > 0
	value.End = n.Start + len("*") + len(y.Value)
	return value
}

// written are the styles of scalars that have a text even if their value is empty.
const written = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// scalar sets the text and the end of a scalar.
func (b *yamlBuilder) scalar(y *yaml.Node, n *Node, after int) {
	n.Kind, n.Text = b.scalarKind(y), y.Value
	if n.Kind == strict.Null {
		n.Text = ""
	}
	if n.Kind == strict.Int || n.Kind == strict.Float {
		n.Text = strings.ReplaceAll(y.Value, "_", "")
	}
	at := skipProperties(b.text, n.Start)
	switch {
	case y.Value == "" && y.Style&written == 0:
		n.Start, n.End = after, after
	case y.Style&yaml.DoubleQuotedStyle != 0:
		n.quote, n.End = '"', endOfQuoted(b.text, at, '"')
	case y.Style&yaml.SingleQuotedStyle != 0:
		n.quote, n.End = '\'', endOfQuoted(b.text, at, '\'')
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		n.layout = block
		n.End = endOfBlockScalar(b.text, at)
	default:
		n.End = endOfPlain(b.text, at, y.Value)
	}
}

// words11 are the booleans of YAML 1.1 that PyYAML reads, which trainers use.
var words11 = map[string]bool{
	"yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"no": true, "No": true, "NO": true, "off": true, "Off": true, "OFF": true,
}

func (b *yamlBuilder) scalarKind(y *yaml.Node) strict.Kind {
	switch y.ShortTag() {
	case "!!null":
		return strict.Null
	case "!!bool":
		return strict.Bool
	case "!!int":
		return strict.Int
	case "!!float":
		return strict.Float
	}
	if y.Style == 0 && words11[y.Value] {
		return strict.Bool
	}
	return strict.String
}

func (b *yamlBuilder) list(y *yaml.Node, n *Node, depth int) {
	n.Kind = strict.List
	isFlow := y.Style&yaml.FlowStyle != 0
	at := skipProperties(b.text, n.Start)
	if !isFlow {
		n.layout = block
	}
	end := at + 1
	for _, c := range y.Content {
		after := end
		if !isFlow {
			after = skipSpace(b.text, end, YAML) + 1 // the dash
		}
		item := b.node(c, min(after, len(b.text)), depth+1)
		n.Items = append(n.Items, item)
		end = item.End
	}
	n.End = end
	if isFlow {
		n.End = endOfFlow(b.text, end, ']')
	}
}

func (b *yamlBuilder) mapping(y *yaml.Node, n *Node, depth int) {
	n.Kind = strict.Map
	isFlow := y.Style&yaml.FlowStyle != 0
	at := skipProperties(b.text, n.Start)
	if !isFlow {
		n.layout = block
	}
	end := at + 1
	seen := map[string]*Field{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			b.diags.Addf(b.pos(key), strict.Syntax, "a key must be a word, not a mapping, list or alias")
			continue
		}
		name := b.node(key, end, depth+1)
		f := &Field{Key: key.Value, Pos: name.Pos, Start: name.Start, End: name.End}
		f.Value = b.node(value, endOfColon(b.text, name.End), depth+1)
		end = max(end, f.End, f.Value.End)
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		n.addField(f, seen, &b.diags)
	}
	b.merge(n, merged, seen, depth)
	n.End = end
	if isFlow {
		n.End = endOfFlow(b.text, end, '}')
	}
}

// merge adds the fields of merge keys (<<) that a map does not have itself.
func (b *yamlBuilder) merge(n *Node, merged []*yaml.Node, seen map[string]*Field, depth int) {
	b.alias++
	defer func() { b.alias-- }()
	for _, y := range merged {
		b.d.anchored = true
		value := b.node(y, 0, depth+1)
		maps := []*Node{value}
		if value.Kind == strict.List {
			maps = value.Items
		}
		for _, m := range maps {
			for _, f := range m.Fields {
				if _, ok := seen[f.Key]; !ok {
					seen[f.Key] = f
					n.Fields = append(n.Fields, f)
				}
			}
		}
	}
}

// skipProperties returns the offset after an anchor and a tag.
func skipProperties(text string, at int) int {
	for at < len(text) && (text[at] == '&' || text[at] == '!') {
		for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) < 0 {
			at++
		}
		at = skipSpace(text, at, YAML)
	}
	return at
}

// endOfColon returns the offset after the colon that follows a key.
func endOfColon(text string, at int) int {
	i := skipSpace(text, at, YAML)
	if i < len(text) && text[i] == ':' {
		return i + 1
	}
	return at
}

// endOfQuoted returns the offset after a text in quotes that starts at an offset.
func endOfQuoted(text string, at int, quote byte) int {
	for i := at + 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(text)
}

// endOfPlain returns the offset after a plain scalar, whose line breaks are spaces of the value.
func endOfPlain(text string, at int, value string) int {
	for i := 0; i < len(value); i++ {
		if strings.IndexByte(" \t\n", value[i]) < 0 {
			at++
			continue
		}
		for i+1 < len(value) && strings.IndexByte(" \t\n", value[i+1]) >= 0 {
			i++
		}
		for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
			at++
		}
	}
	return min(at, len(text))
}

// endOfBlockScalar returns the offset after the last line of a block scalar whose header starts at an offset, without
// empty lines that follow it.
func endOfBlockScalar(text string, at int) int {
	end := at + lineLength(text[at:])
	indent := -1
	for start := end + 1; start < len(text); {
		length := lineLength(text[start:])
		line := strings.TrimRight(text[start:start+length], "\r")
		content := strings.TrimLeft(line, " ")
		if content != "" {
			width := len(line) - len(content)
			if indent < 0 {
				indent = width
			}
			if width < indent || width == 0 {
				break
			}
			end = start + len(line)
		}
		start += length + 1
	}
	return end
}

// endOfFlow returns the offset after the bracket that closes a flow map or list.
func endOfFlow(text string, at int, closing byte) int {
	for {
		at = skipSpace(text, at, YAML)
		switch {
		case at >= len(text):
			return at
		case text[at] == closing:
			return at + 1
		}
		at++ // a comma
	}
}
