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
// What belongs together: chains of element-wise ops; those that read the same operand, which is then read once; ops on
// rows, that is norms and their gradients, with the additions before and behind them; a classifier's loss with its
// gradient, which is an op of its own ([joinLoss]), or, where ranks split the vocabulary, its gradient alone, whose
// parts (of the log-sum-exp and of the picked label) are each as large as the logits. Groups of ops join if all results
// have the same type, the ops on rows agree what a row is, and either nobody wants what the former makes before the
// latter runs, or what the latter takes is there when the former runs: so a gated MLP's gradients by both of its
// products are made in one go, before the first is used.
//
// A group holds all its operands at once, so that a pass's workspace may grow: to 1.34 times at most, as far as was
// seen.
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
		fu := &fuser{f: f, keep: kept[f], group: make(map[*ir.Node]*group, len(f.Nodes))}
		fu.run()
	}
}

// savedNames are the forward values that the segment's backward function takes, in one part or two.
func savedNames(s *ir.Segment) map[string]bool {
	names := make(map[string]bool, len(s.Backward.Inputs))
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

// group is ops in the order of the function, and the place in it where they run: that of the last one that did not move
// up.
type group struct {
	nodes []*ir.Node
	at    int
}

// fuser rewrites one function.
type fuser struct {
	f     *ir.Func
	keep  map[string]bool // names that must survive though no op of the function uses them
	group map[*ir.Node]*group
	at    map[*ir.Node]int
	users map[*ir.Value][]*ir.Node
}

func (fu *fuser) run() {
	fu.at, fu.users = make(map[*ir.Node]int, len(fu.f.Nodes)), make(map[*ir.Value][]*ir.Node,
		len(fu.f.Inputs)+len(fu.f.Nodes))
	for i, n := range fu.f.Nodes {
		fu.at[n] = i
		for _, a := range n.Args {
			fu.users[a] = append(fu.users[a], n)
		}
	}
	for i, n := range fu.f.Nodes {
		if !n.Op.Element() && n.Row() == nil || len(n.Outs) != 1 {
			continue
		}
		g := &group{nodes: []*ir.Node{n}, at: i}
		fu.group[n] = g
		near := fu.near(n)
		for _, m := range near {
			if old := fu.group[m]; old != g && fu.movesDown(old, g) {
				fu.join(old, g)
			}
		}
		for _, m := range near {
			if old := fu.group[m]; old != g && fu.movesUp(g, old) {
				fu.join(g, old)
				break
			}
		}
	}
	fu.rewrite()
}

// near are the ops before n that are in groups and make one of its operands, or read one that is as large as its
// result. If they only read it, both are free.
func (fu *fuser) near(n *ir.Node) (out []*ir.Node) {
	for _, a := range n.Args {
		if a.Def != nil && fu.group[a.Def] != nil {
			out = append(out, a.Def)
		}
	}
	if !free(n) {
		return out
	}
	for _, a := range n.Args {
		if !a.Type.Equal(n.Outs[0].Type) {
			continue
		}
		for _, m := range fu.users[a] {
			if fu.at[m] < fu.at[n] && fu.group[m] != nil && free(m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// join adds a group to another, which stays where it is.
func (fu *fuser) join(g, to *group) {
	for _, m := range g.nodes {
		fu.group[m] = to
	}
	to.nodes = append(to.nodes, g.nodes...)
	slices.SortFunc(to.nodes, func(a, b *ir.Node) int { return fu.at[a] - fu.at[b] })
}

// movesDown tells whether group old may run where g does: nobody wants what it makes before.
func (fu *fuser) movesDown(old, g *group) bool {
	for _, m := range old.nodes {
		for _, user := range fu.users[m.Outs[0]] {
			if in := fu.group[user]; in != old && in != g && fu.place(user) < g.at {
				return false
			}
		}
	}
	return agree(old, g)
}

// free tells ops that work element by element and that no product does on its way: what one begins from or ends in
// costs no pass over memory of its own, so such ops do not leave theirs for the company of others.
func free(n *ir.Node) bool { return n.Op.Element() && !ofProduct(n) }

// ofProduct tells whether a product may begin from what an op adds to its result, or end in the op.
func ofProduct(n *ir.Node) bool {
	switch n.Op {
	case ir.OpMatMul:
		return true
	case ir.OpAdd, ir.OpGelu, ir.OpGeluGrad:
		return slices.ContainsFunc(n.Args, func(a *ir.Value) bool { return a.Def != nil && ofProduct(a.Def) })
	}
	return false
}

// movesUp tells whether group g may run where old does: what it takes is there by then, or made by old. All of both are
// free.
func (fu *fuser) movesUp(g, old *group) bool {
	for _, n := range slices.Concat(g.nodes, old.nodes) {
		if !free(n) {
			return false
		}
	}
	for _, n := range g.nodes {
		for _, a := range n.Args {
			if a.Def == nil {
				continue
			}
			if in := fu.group[a.Def]; in != old && in != g && fu.place(a.Def) >= old.at {
				return false
			}
		}
	}
	return agree(g, old)
}

// place is where a node runs.
func (fu *fuser) place(n *ir.Node) int {
	if g := fu.group[n]; g != nil {
		return g.at
	}
	return fu.at[n]
}

// agree tells whether two groups make the like: of one type, in the same rounds, row by row of the same rows.
func agree(a, b *group) bool {
	for _, n := range a.nodes {
		if !n.Outs[0].Type.Equal(b.nodes[0].Outs[0].Type) || n.Attr.Round != b.nodes[0].Attr.Round {
			return false
		}
	}
	return oneRow(slices.Concat(a.nodes, b.nodes))
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
		case g.at == fu.at[n]:
			out = append(out, fu.fused(g))
		}
	}
	fu.f.Nodes = out
}

// fused is the group as one node. Its operands are what comes from outside, its results what is used outside.
func (fu *fuser) fused(g *group) *ir.Node {
	last := g.nodes[len(g.nodes)-1]
	n := &ir.Node{Op: ir.OpFused, Region: last.Region, From: last.From, Body: g.nodes,
		Attr: ir.Attr{Round: last.Attr.Round}}
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
	return slices.ContainsFunc(fu.users[v], func(n *ir.Node) bool { return fu.group[n] != g })
}
