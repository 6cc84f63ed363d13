package strict

import (
	"bytes"

	yaml "go.yaml.in/yaml/v4"
)

// YAML returns the document as a file, including overrides but without comments.
func (d *Doc) YAML() []byte {
	var b bytes.Buffer
	dumper, err := yaml.NewDumper(&b, yaml.WithIndent(2))
	if err == nil {
		err = dumper.Dump(d.Root.yaml(0))
	}
	if err == nil {
		err = dumper.Close()
	}
	if err != nil {
		panic("strict: printing a tree that was parsed: " + err.Error())
	}
	return b.Bytes()
}

var tags = [...]string{Null: "!!null", Bool: "!!bool", Int: "!!int", Float: "!!float", String: "!!str"}

// yaml converts a node to the library's type. Mappings below the second level are printed on one line.
func (n *Node) yaml(depth int) *yaml.Node {
	y := &yaml.Node{}
	if depth > 1 {
		y.Style = yaml.FlowStyle
	}
	switch n.Kind {
	case Map:
		y.Kind = yaml.MappingNode
		for _, f := range n.Fields {
			if f.Value.Kind != Null {
				y.Content = append(y.Content, (&Node{Kind: String, Text: f.Key}).yaml(depth+1), f.Value.yaml(depth+1))
			}
		}
	case List:
		y.Kind, y.Style = yaml.SequenceNode, yaml.FlowStyle
		for _, c := range n.Items {
			y.Content = append(y.Content, c.yaml(depth+2))
		}
	default:
		y.Kind, y.Tag, y.Value, y.Style = yaml.ScalarNode, tags[n.Kind], n.Text, 0
	}
	return y
}
