package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// fuse joins chains of element-wise ops over one index space into one op, whose body is done element by element:
// what only the chain uses never reaches memory. An op joins the group of the op that makes one of its operands if
// both results have the same type and nobody outside the group uses that operand before the group's end.
func fuse(p *ir.Program) error {
	for _, s := range p.Model.Variants() {
		kept := map[*ir.Func]map[string]bool{s.Forward: savedNames(s), s.Backward: keptNames(s)}
		for _, f := range s.Funcs() {
			fu := &fuser{f: f, keep: kept[f], group: map[*ir.Node]*group{}}
			fu.run()
		}
	}
	return nil
}

// savedNames are the forward values that the segment's backward function takes, in one part or two.
func savedNames(s *ir.Segment) map[string]bool {
	names := map[string]bool{}
	for _, v := range s.Backward.Inputs {
		names[v.Name] = true
	}
	if s.Weights != nil {
		kept := keptNames(s)
		for _, v := range s.Weights.Inputs {
			names[v.Name] = names[v.Name] || !kept[v.Name]
		}
	}
	return names
}

// group is a chain in the order of the function.
type group struct{ nodes []*ir.Node }

// fuser rewrites one function.
type fuser struct {
	f     *ir.Func
	keep  map[string]bool // names that must survive though no op of the function uses them
	group map[*ir.Node]*group
	at    map[*ir.Node]int
}

func (fu *fuser) run() {
	fu.at = map[*ir.Node]int{}
	for i, n := range fu.f.Nodes {
		fu.at[n] = i
		if !n.Op.Element() || len(n.Outs) != 1 {
			continue
		}
		g := &group{nodes: []*ir.Node{n}}
		for _, a := range n.Args {
			if old := fu.group[a.Def]; a.Def != nil && old != nil && fu.joins(old, n, i) {
				g.nodes = append(g.nodes, old.nodes...)
				for _, m := range old.nodes {
					fu.group[m] = g
				}
			}
		}
		slices.SortFunc(g.nodes, func(a, b *ir.Node) int { return fu.at[a] - fu.at[b] })
		g.nodes = slices.Compact(g.nodes)
		for _, m := range g.nodes {
			fu.group[m] = g
		}
	}
	fu.rewrite()
}

// joins tells whether group old may move down to node n at index i.
func (fu *fuser) joins(old *group, n *ir.Node, i int) bool {
	for _, m := range old.nodes {
		if !m.Outs[0].Type.Equal(n.Outs[0].Type) || m.Attr.Round != n.Attr.Round {
			return false
		}
		for j := fu.at[m] + 1; j < i; j++ {
			if user := fu.f.Nodes[j]; slices.Contains(user.Args, m.Outs[0]) && fu.group[user] != old {
				return false
			}
		}
	}
	return true
}

// rewrite puts each group of two or more in the place of its last op.
func (fu *fuser) rewrite() {
	var out []*ir.Node
	for _, n := range fu.f.Nodes {
		g := fu.group[n]
		switch {
		case g == nil || len(g.nodes) == 1:
			out = append(out, n)
		case g.nodes[len(g.nodes)-1] == n:
			out = append(out, fu.fused(g))
		}
	}
	fu.f.Nodes = out
}

// fused is the group as one node. Its operands are what comes from outside, its results what is used outside.
func (fu *fuser) fused(g *group) *ir.Node {
	last := g.nodes[len(g.nodes)-1]
	n := &ir.Node{Op: ir.OpFused, Region: last.Region, From: last.From, Body: g.nodes, Attr: ir.Attr{Round: last.Attr.Round}}
	inside := map[*ir.Value]bool{}
	for _, m := range g.nodes {
		for _, a := range m.Args {
			if !inside[a] && !slices.Contains(n.Args, a) {
				n.Args = append(n.Args, a)
			}
		}
		inside[m.Outs[0]] = true
	}
	for _, m := range g.nodes {
		if o := m.Outs[0]; fu.usedOutside(g, o) {
			n.Outs = append(n.Outs, o)
			o.Def = n
		}
	}
	return n
}

func (fu *fuser) usedOutside(g *group, v *ir.Value) bool {
	if slices.Contains(fu.f.Outputs, v) || fu.keep[v.Name] {
		return true
	}
	return slices.ContainsFunc(fu.f.Nodes, func(n *ir.Node) bool {
		return fu.group[n] != g && slices.Contains(n.Args, v)
	})
}
