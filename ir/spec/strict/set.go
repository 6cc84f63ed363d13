package strict

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/ir"
	yaml "go.yaml.in/yaml/v4"
)

// Override is a change of one field by the command line.
type Override struct {
	Key   string // dotted path
	Value string // a YAML scalar, flow list or flow mapping, which replaces the field's value; null removes the field
	Shown string // the flag as the user wrote it, for messages: "--set train.steps=5", "--nodes 4"
	plain bool   // the argument of --set has no =
}

// SetFlag returns the override of the argument of `--set KEY=VALUE`.
func SetFlag(arg string) Override {
	k, v, ok := strings.Cut(arg, "=")
	return Override{Key: k, Value: v, Shown: "--set " + arg, plain: !ok}
}

// IsFlag reports whether a position is a flag of the command line instead of a file.
func IsFlag(p ir.Pos) bool { return p.Line == 0 && strings.HasPrefix(p.File, "--") }

// Set applies an override. If the override sets a field of a value that has a short form, such as nodes of
// "4xdgx-h100", expand returns the mapping that the short form abbreviates, nil if there is none.
func (d *Doc) Set(o Override, expand func(path string, n *Node) *Node) ir.Diags {
	var diags ir.Diags
	pos := ir.Pos{File: o.Shown}
	keys := strings.Split(o.Key, ".")
	for _, k := range keys {
		if k == "" || o.plain || strings.TrimSpace(k) != k {
			diags.Addf(pos, BadSet, "use KEY=VALUE with a dotted key, such as train.steps=100")
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
				diags.Addf(pos, BadSet, "%s is %s, which has no field %s", path, n.describe(), k)
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

// child returns the value of key k in n, which it creates if absent. pos is the position of k.
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

// value parses the value of an override.
func value(o Override, pos ir.Pos) (*Node, ir.Diags) {
	var diags ir.Diags
	var y yaml.Node
	if err := yaml.Load([]byte(o.Value), &y); err != nil || len(y.Content) == 0 {
		if strings.TrimSpace(o.Value) == "" {
			diags.Addf(pos, BadSet, "the value is empty; use null to remove a field")
			return nil, diags
		}
		diags.Addf(pos, BadSet, "%q must be a YAML scalar, flow list or flow mapping", clip(o.Value))
		return nil, diags
	}
	b := builder{file: o.Shown, flag: true, diags: &diags}
	n := b.node(y.Content[0], 0)
	// a text with ": " is most likely not meant to be a mapping
	if n.Kind == Map && y.Content[0].Style&yaml.FlowStyle == 0 {
		diags = append(diags, ir.Diag{Code: BadSet, Fix: "{" + o.Value + "}",
			Msg: fmt.Sprintf("%q is a mapping without braces", clip(o.Value))})
	}
	n.Move(pos)
	for i := range diags {
		diags[i].Pos = pos
	}
	return n, diags
}

// Move sets the position of a node and of all nodes in it.
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
