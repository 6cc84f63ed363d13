package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// fuse joins ops over one index space into groups that run together, row by row of their results, so that what only the
// group uses never reaches memory. A group is a node, [ir.OpFused], whose body is its ops in order: printing, the
// checker, the memory pass and the cost model (bytes of operands and results alone, one launch) take it as one op, a
// target makes of it what it can: the CPU runs it strip by strip.
//
// What belongs together: chains of element-wise ops; ops on rows, that is norms and their gradients, with the additions
// before and behind them; a classifier's loss with its gradient, which is an op of its own ([joinLoss]), or, where ranks
// split the vocabulary, its gradient alone, whose parts (of the log-sum-exp and of the picked label) are each as large as
// the logits. An op joins the group of the op that makes one of its operands if all results have the
// same type, nobody outside the group uses that operand before the group's end, and the ops on rows agree what a row
// is.
func fuse(p *ir.Program) error {
	for _, s := range p.Model.Variants() {
		fuseSegment(s)
	}
	return nil
}

// fuseSegment does the functions of a variant of a segment.
func fuseSegment(s *ir.Segment) {
	joinLoss(s)
	kept := map[*ir.Func]map[string]bool{s.Forward: savedNames(s), s.Backward: keptNames(s)}
	for _, f := range s.Funcs() {
		fu := &fuser{f: f, keep: kept[f], group: map[*ir.Node]*group{}}
		fu.run()
	}
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
		if !n.Op.Element() && n.Row() == nil || len(n.Outs) != 1 {
			continue
		}
		g := &group{nodes: []*ir.Node{n}}
		for _, a := range n.Args {
			if old := fu.group[a.Def]; a.Def != nil && old != nil && fu.joins(old, g, i) {
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

// joins tells whether group old may move down to group g, whose last node is at index i.
func (fu *fuser) joins(old, g *group, i int) bool {
	for _, m := range old.nodes {
		if !m.Outs[0].Type.Equal(g.nodes[0].Outs[0].Type) || m.Attr.Round != g.nodes[0].Attr.Round {
			return false
		}
		for j := fu.at[m] + 1; j < i; j++ {
			if user := fu.f.Nodes[j]; slices.Contains(user.Args, m.Outs[0]) && fu.group[user] != old && !slices.Contains(g.nodes, user) {
				return false
			}
		}
	}
	return oneRow(slices.Concat(old.nodes, g.nodes))
}

// oneRow tells whether ops agree what a row of their results is: the same dims of each op on rows, of which every other
// operand has all or none, as of the dims before them.
func oneRow(nodes []*ir.Node) bool {
	var row []ir.Dim
	for _, n := range nodes {
		if r := n.Row(); r != nil {
			if row != nil && !slices.Equal(row, r) {
				return false
			}
			row = r
		}
	}
	if row == nil {
		return true
	}
	for _, n := range nodes {
		all := n.Outs[0].Type.Dims
		for _, a := range n.Args {
			inner, outer := 0, 0
			for _, d := range a.Type.Dims {
				if slices.Contains(row, d.Dim) {
					inner++
				} else {
					outer++
				}
			}
			if inner != 0 && inner != len(row) || outer != 0 && outer != len(all)-len(row) {
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
