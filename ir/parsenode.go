package ir

import (
	"fmt"
	"strings"
)

// nodeLine reads "results = op operands {attributes} : types !region <- origin at places".
func (r *funcReader) nodeLine(line string) error {
	n, err := r.node(line)
	if err != nil {
		return r.errorf("%v", err)
	}
	for _, o := range n.Outs {
		if n.Op == OpFused { // the body defines its results
			break
		}
		if err := r.define(o); err != nil {
			return err
		}
	}
	r.f.Nodes = append(r.f.Nodes, n)
	return nil
}

// bodyLine reads one op of the last fused node. An op that defines a result of that node gets the result's value.
func (r *funcReader) bodyLine(line string) error {
	if len(r.f.Nodes) == 0 || r.f.Nodes[len(r.f.Nodes)-1].Op != OpFused {
		return r.errorf("a body line must follow a fused op")
	}
	fused := r.f.Nodes[len(r.f.Nodes)-1]
	n, err := r.node(line)
	if err != nil {
		return r.errorf("%v", err)
	}
	for i, o := range n.Outs {
		for _, result := range fused.Outs {
			if result.Name == o.Name {
				n.Outs[i] = result
			}
		}
		if err := r.define(n.Outs[i]); err != nil {
			return err
		}
	}
	fused.Body = append(fused.Body, n)
	return nil
}

// node reads a line without defining its results.
func (r *funcReader) node(line string) (*Node, error) {
	n := &Node{}
	results, rest, ok := strings.Cut(line, " = ")
	if !ok || strings.ContainsAny(results, "{:") {
		results, rest = "", line
	}
	head, tail, hasTypes := strings.Cut(rest, " : ")
	if !hasTypes { // an effect has no types: region and origin follow the attributes
		if i := strings.Index(rest, " !"); i >= 0 {
			head, tail = rest[:i], rest[i:]
		}
	}
	if err := r.call(n, head); err != nil {
		return nil, err
	}
	var err error
	if results != "" {
		tail, err = r.results(n, results, tail)
		if err != nil {
			return nil, err
		}
	}
	if err := n.tail(tail); err != nil {
		return nil, err
	}
	if n.String() != line {
		return nil, fmt.Errorf("must be %q", n.String())
	}
	return n, nil
}

// call reads "op operands {attributes}".
func (r *funcReader) call(n *Node, s string) error {
	s, attrs, ok := strings.Cut(s, " {")
	var err error
	if ok {
		n.Attr, err = parseAttr(strings.TrimSuffix(attrs, "}"))
		if err != nil {
			return err
		}
	}
	name, args, _ := strings.Cut(s, " ")
	n.Op, ok = ParseOp(name)
	if !ok {
		return fmt.Errorf("unknown op %q", name)
	}
	n.Args, err = r.lookup(args)
	return err
}

// results reads the types of the results, and returns the text that follows them.
func (r *funcReader) results(n *Node, names, s string) (string, error) {
	for i, name := range strings.Split(names, ", ") {
		if i > 0 {
			var ok bool
			s, ok = strings.CutPrefix(s, ", ")
			if !ok {
				return "", fmt.Errorf("%s has no type", name)
			}
		}
		t, rest, err := cutType(s)
		if err != nil {
			return "", err
		}
		n.Outs = append(n.Outs, &Value{Name: name, Type: t, Def: n})
		s = rest
	}
	return s, nil
}

// tail reads " !region <- origin at place, place".
func (n *Node) tail(s string) error {
	s, places, placed := strings.Cut(s, " at ")
	if placed {
		for i, p := range strings.Split(places, ", ") {
			if i >= len(n.Outs) {
				return fmt.Errorf("more places than results")
			}
			var err error
			n.Outs[i].Place, err = parsePlace(p)
			if err != nil {
				return err
			}
		}
	}
	s, n.From, _ = strings.Cut(s, " <- ")
	if region, ok := strings.CutPrefix(s, " !"); ok {
		n.Region = Region(region)
		return checkName(region)
	}
	return nil
}
