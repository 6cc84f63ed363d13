package strict

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/ir"
	yaml "go.yaml.in/yaml/v4"
)

// Override is one change that a command line asks for.
type Override struct {
	Key   string // dotted path
	Value string // YAML scalar, flow list or flow mapping, which replaces the field's; null removes
	Shown string // as the user wrote it, for messages: "--set train.steps=5", "--nodes 4"
	plain bool   // Shown says KEY=VALUE without =
}

// SetFlag is the override of one `--set KEY=VALUE`.
func SetFlag(arg string) Override {
	k, v, ok := strings.Cut(arg, "=")
	return Override{Key: k, Value: v, Shown: "--set " + arg, plain: !ok}
}

// IsFlag tells whether a place is a flag of the command line, not one in a file.
func IsFlag(p ir.Pos) bool { return p.Line == 0 && strings.HasPrefix(p.File, "--") }

// Set applies an override. expand gives the mapping that a scalar stands for, where fields of a short form
// are set ("4xdgx-h100", nodes); it returns nil if there is none.
func (d *Doc) Set(o Override, expand func(path string, n *Node) *Node) ir.Diags {
	var diags ir.Diags
	pos := ir.Pos{File: o.Shown}
	keys := strings.Split(o.Key, ".")
	for _, k := range keys {
		if k == "" || o.plain || strings.TrimSpace(k) != k {
			diags.Addf(pos, BadSet, "want KEY=VALUE with a dotted key, as in train.steps=100")
			return diags
		}
	}
	val, diags := value(o, pos)
	if len(diags) > 0 {
		return diags
	}
	n := d.Root
	for i, k := range keys {
		if n.Kind == Null {
			n.Kind, n.Text = Map, ""
		}
		path := strings.Join(keys[:i], ".")
		if n.Kind != Map {
			m := expand(path, n)
			if m == nil {
				diags.Addf(pos, BadSet, "%s is %s and has no %s", path, n.describe(), k)
				return diags
			}
			*n = *m
		}
		if i == len(keys)-1 {
			n.Put(Field{k, pos, val})
			break
		}
		n = child(n, k, pos)
	}
	return diags
}

// child is the value of key k of n, made if absent. pos is where k was written.
func child(n *Node, k string, pos ir.Pos) *Node {
	for _, f := range n.Fields {
		if f.Key == k {
			return f.Value
		}
	}
	c := &Node{Kind: Map, Pos: pos, around: &n.Pos}
	if n.around != nil {
		c.around = n.around
	}
	n.Fields = append(n.Fields, Field{k, pos, c})
	return c
}

// value reads an override's value.
func value(o Override, pos ir.Pos) (*Node, ir.Diags) {
	var diags ir.Diags
	var y yaml.Node
	if err := yaml.Load([]byte(o.Value), &y); err != nil || len(y.Content) == 0 {
		if strings.TrimSpace(o.Value) == "" {
			diags.Addf(pos, BadSet, "there is no value; null removes a field")
			return nil, diags
		}
		diags.Addf(pos, BadSet, "%q is not a YAML scalar, flow list or flow mapping", clip(o.Value))
		return nil, diags
	}
	b := builder{file: o.Shown, flag: true, diags: &diags}
	n := b.node(y.Content[0], 0)
	if n.Kind == Map && y.Content[0].Style&yaml.FlowStyle == 0 { // a: b, which a slip makes more often than a wish
		diags = append(diags, ir.Diag{Code: BadSet, Fix: "{" + o.Value + "}",
			Msg: fmt.Sprintf("%q is a mapping without braces", clip(o.Value))})
	}
	n.Move(pos)
	for i := range diags {
		diags[i].Pos = pos
	}
	return n, diags
}

// Move gives a node and all in it one place.
func (n *Node) Move(pos ir.Pos) {
	n.Pos = pos
	for i := range n.Fields {
		n.Fields[i].Pos = pos
		n.Fields[i].Value.Move(pos)
	}
	for _, c := range n.Items {
		c.Move(pos)
	}
}
