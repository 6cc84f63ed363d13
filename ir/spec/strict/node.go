package strict

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
	yaml "go.yaml.in/yaml/v4"
)

// Kind is the kind of a node.
type Kind uint8

// Kinds of nodes.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	Map
	List
)

var kindNames = [...]string{"null", "true or false", "an integer", "a number", "text", "a mapping", "a list"}

func (k Kind) String() string { return kindNames[k] }

// Node is a value of a file with its position.
type Node struct {
	Kind   Kind
	Text   string // of a scalar, without quotes
	Pos    ir.Pos
	Dir    string  // folder at which relative paths in the value start
	Fields []Field // of a Map, in the file's order
	Items  []*Node // of a List
	// for a Map that an override created: the position of the enclosing mapping
	around *ir.Pos
}

// Field is a key of a mapping and its value.
type Field struct {
	Key   string
	Pos   ir.Pos // of the key
	Value *Node
}

// Get returns the value of a key, nil if it is absent or null.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Key == key && f.Value.Kind != Null {
			return f.Value
		}
	}
	return nil
}

// Put replaces the value of a key, or adds the key.
func (n *Node) Put(f Field) {
	i := slices.IndexFunc(n.Fields, func(g Field) bool { return g.Key == f.Key })
	if i < 0 {
		n.Fields = append(n.Fields, f)
		return
	}
	n.Fields[i] = f
}

// Clone returns a deep copy.
func (n *Node) Clone() *Node {
	c := *n
	c.Fields = slices.Clone(n.Fields)
	for i := range c.Fields {
		c.Fields[i].Value = c.Fields[i].Value.Clone()
	}
	c.Items = slices.Clone(n.Items)
	for i := range c.Items {
		c.Items[i] = c.Items[i].Clone()
	}
	return &c
}

// describe returns the node as messages name it.
func (n *Node) describe() string {
	switch n.Kind {
	case Map, List, Null:
		return n.Kind.String()
	case String:
		return fmt.Sprintf("text %q", clip(n.Text))
	}
	return clip(n.Text)
}

// clip shortens a long text for messages.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

const (
	maxDepth = 60     // levels of nesting
	maxNodes = 50_000 // values, after aliases are expanded
)

// builder converts the YAML library's tree to a tree of Node.
type builder struct {
	file, dir string
	count     int
	full      bool // a limit was exceeded and reported
	flag      bool // the text is the value of a flag, which has no lines
	diags     *ir.Diags
}

func (b *builder) pos(y *yaml.Node) ir.Pos {
	return ir.Pos{File: b.file, Line: y.Line, Column: y.Column}
}

func (b *builder) node(y *yaml.Node, depth int) *Node {
	n := &Node{Pos: b.pos(y), Dir: b.dir}
	b.count++
	if b.full || depth > maxDepth || b.count > maxNodes {
		if !b.full {
			b.diags.Addf(n.Pos, TooLarge, "the file contains more than %d values or %d levels, with aliases "+
				"expanded",
				maxNodes, maxDepth)
		}
		b.full = true
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		at := n.Pos
		n = b.node(y.Alias, depth+1)
		n.Pos = at
	case yaml.ScalarNode:
		n.Kind, n.Text = b.scalarKind(y), y.Value
	case yaml.SequenceNode:
		n.Kind = List
		for _, c := range y.Content {
			n.Items = append(n.Items, b.node(c, depth+1))
		}
	case yaml.MappingNode:
		n.Kind = Map
		b.fields(n, y, depth)
	}
	return n
}

func (b *builder) fields(n *Node, y *yaml.Node, depth int) {
	first := map[string]ir.Pos{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, at := y.Content[i], b.pos(y.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			b.diags.Addf(at, Syntax, "a key must be a word, not a mapping, list or alias")
			continue
		case key.ShortTag() == "!!merge":
			b.diags.Addf(at, Syntax, "merge keys (<<) are not supported: write the fields out")
			continue
		}
		if p, dup := first[key.Value]; dup {
			if b.flag {
				b.diags.Addf(at, DuplicateKey, "key %s is given twice", key.Value)
			} else {
				b.diags.Addf(at, DuplicateKey, "key %s is given twice, first on line %d", key.Value, p.Line)
			}
			continue
		}
		first[key.Value] = at
		n.Fields = append(n.Fields, Field{key.Value, at, b.node(y.Content[i+1], depth+1)})
	}
}

func (b *builder) scalarKind(y *yaml.Node) Kind {
	switch y.ShortTag() {
	case "!!null":
		return Null
	case "!!bool":
		return Bool
	case "!!int":
		return Int
	case "!!float":
		return Float
	case "!!str", "!!timestamp":
		return String
	}
	b.diags.Addf(b.pos(y), Syntax, "tag %s is not supported: write the value without it", y.Tag)
	return Null
}
