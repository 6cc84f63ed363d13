package tree

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Node is a value of a file.
type Node struct {
	Kind strict.Kind
	// Text is a scalar's text without quotes, escapes and digit separators; "" for null, maps and lists.
	Text string
	Pos  ir.Pos
	// Start and End are the value's bytes in the file. They are equal for a YAML value that is not written.
	Start, End int
	Fields     []*Field // of a map, in the order of the file
	Items      []*Node  // of a list

	quote  byte // of a quoted scalar: " or '
	bare   bool // Hjson: text without quotes, which ends with its line
	layout layout
	alias  bool // written as *name, or merged with <<: the value's own bytes are elsewhere
	body   int  // TOML: the end of the header line of the table; 0 if the table has none
}

// layout is how a map or list is written.
type layout uint8

const (
	flow  layout = iota // between brackets
	block               // YAML: one key a line
	table               // TOML: under a header, or by dotted keys
)

// Field is a key of a map with its value.
type Field struct {
	Key string
	Pos ir.Pos // of the key
	// Start and End are the key's bytes. A dotted key of TOML starts at its first part.
	Start, End int
	Value      *Node

	dotted string // TOML: the parts before the last, as written: "a.b."
	header bool   // TOML: the field is a table that headers define
}

// Field returns a field of a map, nil if it is absent.
func (n *Node) Field(key string) *Field {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.Fields, func(f *Field) bool { return f.Key == key })
	if i < 0 {
		return nil
	}
	return n.Fields[i]
}

// Get returns the value of a key, nil if it is absent. A null is a value.
func (n *Node) Get(key string) *Node {
	f := n.Field(key)
	if f == nil {
		return nil
	}
	return f.Value
}

// Find returns the value at a dotted path, nil if it is absent. Items of lists have numbers from 0. A key may contain
// dots itself.
func (n *Node) Find(path string) *Node {
	p := place{at: n, rest: path}.walk()
	if p.rest != "" {
		return nil
	}
	return p.at
}

// Nearest returns the position of the value at a dotted path. If the value is absent, it is the position of the nearest
// map or list above it: for a top-level key, that of the file's opening brace or first key.
func (n *Node) Nearest(path string) ir.Pos {
	for {
		if at := n.Find(path); at != nil && at.Pos.Line > 0 {
			return at.Pos
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return n.Pos
		}
		path = path[:i]
	}
}

// KeyPos returns the position of the key at a dotted path, or that of Nearest if it is absent.
func (n *Node) KeyPos(path string) ir.Pos {
	above, key, at := "", path, n
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		above, key = path[:i], path[i+1:]
		at = n.Find(above)
	}
	if f := at.Field(key); f != nil {
		return f.Pos
	}
	return n.Nearest(path)
}

// place is how far a tree has a path.
type place struct {
	at     *Node
	parent *Node  // the map that has field
	field  *Field // the field whose value is at; nil at the top and for items of lists
	rest   string // of the path, which the tree does not have
}

// walk follows the rest of a path until the tree has no such key.
func (p place) walk() place {
	if p.at == nil || p.rest == "" {
		return p
	}
	best := p
	for _, f := range p.at.Fields {
		below, ok := strings.CutPrefix(p.rest, f.Key)
		if !ok || below != "" && below[0] != '.' {
			continue
		}
		deep := place{f.Value, p.at, f, strings.TrimPrefix(below, ".")}.walk()
		if len(deep.rest) < len(best.rest) {
			best = deep
		}
	}
	if p.at.Kind != strict.List {
		return best
	}
	word, below, _ := strings.Cut(p.rest, ".")
	i, err := strconv.Atoi(word)
	if err != nil || i < 0 || i >= len(p.at.Items) || strconv.Itoa(i) != word {
		return best
	}
	return place{at: p.at.Items[i], rest: below}.walk()
}

// Walk calls visit for every field whose value is not a map, with its dotted path, in the order of the file. A field
// with an empty map counts too.
func (n *Node) Walk(visit func(path string, f *Field)) { n.visit("", visit) }

func (n *Node) visit(prefix string, visit func(path string, f *Field)) {
	for _, f := range n.Fields {
		if f.Value.Kind == strict.Map && len(f.Value.Fields) > 0 {
			f.Value.visit(prefix+f.Key+".", visit)
			continue
		}
		visit(prefix+f.Key, f)
	}
}

// Bool returns a value that is true or false. ok is false for other values.
func (n *Node) Bool() (value, ok bool) {
	if n == nil || n.Kind != strict.Bool {
		return false, false
	}
	switch strings.ToLower(n.Text) {
	case "true", "yes", "on":
		return true, true
	}
	return false, true
}

// Int returns a whole number. A float without a fraction counts: DeepSpeed's files have 5e8. ok is false for other
// values.
func (n *Node) Int() (value int, ok bool) {
	if n == nil || n.Kind != strict.Int && n.Kind != strict.Float {
		return 0, false
	}
	if v, err := strconv.ParseInt(n.Text, 0, 64); err == nil {
		return int(v), true
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
		return 0, false
	}
	return int(f), true
}

// Float returns a number. ok is false for other values.
func (n *Node) Float() (value float64, ok bool) {
	if n == nil || n.Kind != strict.Int && n.Kind != strict.Float {
		return 0, false
	}
	value, err := strconv.ParseFloat(n.Text, 64)
	return value, err == nil
}

// Flow returns the value in one line: a scalar's text, or a list or map as JSON.
func (n *Node) Flow() string {
	if n.Kind != strict.Map && n.Kind != strict.List {
		return n.Text
	}
	var b strings.Builder
	n.WriteJSON(&b)
	return b.String()
}

// WriteJSON writes the value as JSON in one line.
func (n *Node) WriteJSON(b *strings.Builder) {
	switch n.Kind {
	case strict.Map:
		b.WriteByte('{')
		for i, f := range n.Fields {
			comma(b, i)
			b.WriteString(quoteJSON(f.Key) + ": ")
			f.Value.WriteJSON(b)
		}
		b.WriteByte('}')
	case strict.List:
		b.WriteByte('[')
		for i, item := range n.Items {
			comma(b, i)
			item.WriteJSON(b)
		}
		b.WriteByte(']')
	case strict.String:
		b.WriteString(quoteJSON(n.Text))
	case strict.Null:
		b.WriteString("null")
	default:
		b.WriteString(n.Text)
	}
}

func comma(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteString(", ")
	}
}

// quoteJSON returns a string of JSON. It does not escape <, > and &.
func quoteJSON(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}
