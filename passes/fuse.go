package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// fuse merges ops over the same index space into fused ops. A fused op computes its results row by row, and values used
// only inside it are never written to memory. It is a node, [ir.OpFused], whose body is its ops in order. It counts as
// one op for printing, the checker, the memory pass and the cost model: bytes of operands and results, one launch. The
// CPU runs it in strips of rows.
//
// It merges:
//   - chains of element-wise ops;
//   - element-wise ops that read the same operand, so that it is loaded once;
//   - norms and gradients of norms, with the additions before and after them;
//   - the gradient of the classifier's loss. If each rank has the whole vocabulary, loss and gradient are first joined
//     into one op ([joinLoss]). If ranks split the vocabulary, only the two parts of the gradient are fused, of the
//     log-sum-exp and of the label's logit. Each is as large as the logits.
//
// Two groups are merged if their results have one type, their row ops have the same row, and the order permits it. The
// earlier group may move down if nothing reads its results before the later group runs. The later group may move up if
// its operands exist when the earlier group runs. For example, both gradients of SwiGLU's element-wise multiplication
// are computed together.
//
// All operands of a group are live at once, so the workspace of a pass can grow. The largest growth observed is 1.34×.
func fuse(p *ir.Program) error {
	for _, s := range p.Model.Variants() {
		fuseSegment(s)
	}
	return nil
}

// fuseSegment fuses each function of a segment, or of its variant that recomputes.
func fuseSegment(s *ir.Segment) {
	joinLoss(s)
	names := map[*ir.Func]map[string]bool{s.Forward: savedNames(s), s.Backward: savedForWeights(s)}
	for _, f := range s.Funcs() {
		fu := &fuser{f: f, keep: names[f], group: make(map[*ir.Node]*group, len(f.Nodes))}
		fu.run()
	}
}

// savedNames returns the names of the forward values that backward reads. If the backward pass is split, this includes
// the inputs of its second part, Weights, except those that its first part computes.
func savedNames(s *ir.Segment) map[string]bool {
	names := make(map[string]bool, len(s.Backward.Inputs))
	for _, v := range s.Backward.Inputs {
		names[v.Name] = true
	}
	if s.Weights != nil {
		saved := savedForWeights(s)
		for _, v := range s.Weights.Inputs {
			names[v.Name] = names[v.Name] || !saved[v.Name]
		}
	}
	return names
}

// group is a set of ops to fuse, in the order of the function. They run at position at: that of the last op that was
// not moved up.
type group struct {
	nodes    []*ir.Node
	position int
}

// fuser rewrites one function.
type fuser struct {
	f     *ir.Func
	keep  map[string]bool // names that must survive although no op of the function uses them
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
		g := &group{nodes: []*ir.Node{n}, position: i}
		fu.group[n] = g
		neighbors := fu.neighbors(n)
		for _, m := range neighbors {
			if old := fu.group[m]; old != g && fu.movesDown(old, g) {
				fu.join(old, g)
			}
		}
		for _, m := range neighbors {
			if old := fu.group[m]; old != g && fu.movesUp(g, old) {
				fu.join(g, old)
				break
			}
		}
	}
	fu.rewrite()
}

// neighbors returns the ops before n that are in groups and compute one of its operands, or that read an operand of n
// that is as large as its result. In the second case both ops must be free.
func (fu *fuser) neighbors(n *ir.Node) (out []*ir.Node) {
	for _, a := range n.Args {
		if a.Def != nil && fu.group[a.Def] != nil {
			out = append(out, a.Def)
		}
	}
	if !isMovable(n) {
		return out
	}
	for _, a := range n.Args {
		if !a.Type.Equal(n.Outs[0].Type) {
			continue
		}
		for _, m := range fu.users[a] {
			if fu.at[m] < fu.at[n] && fu.group[m] != nil && isMovable(m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// join adds a group to another one, which keeps its position.
func (fu *fuser) join(g, to *group) {
	for _, m := range g.nodes {
		fu.group[m] = to
	}
	to.nodes = append(to.nodes, g.nodes...)
	slices.SortFunc(to.nodes, func(a, b *ir.Node) int { return fu.at[a] - fu.at[b] })
}

// movesDown reports whether group old may run at the position of g: nothing reads its results before.
func (fu *fuser) movesDown(old, g *group) bool {
	for _, m := range old.nodes {
		for _, user := range fu.users[m.Outs[0]] {
			if in := fu.group[user]; in != old && in != g && fu.place(user) < g.position {
				return false
			}
		}
	}
	return match(old, g)
}

// isMovable reports whether an op is element-wise and is not applied by a GEMM's epilogue or beta operand. Those need
// no pass over memory of their own, so they are not moved to other groups.
func isMovable(n *ir.Node) bool { return n.Op.Element() && !isInGEMM(n) }

// isInGEMM reports whether a GEMM may add an op's operand to its result (beta), or apply the op as its epilogue.
func isInGEMM(n *ir.Node) bool {
	switch n.Op {
	case ir.OpMatMul:
		return true
	case ir.OpAdd, ir.OpGelu, ir.OpGeluGrad:
		return slices.ContainsFunc(n.Args, func(a *ir.Value) bool { return a.Def != nil && isInGEMM(a.Def) })
	}
	return false
}

// movesUp reports whether group g may run at the position of old: its operands exist by then, or old computes them. All
// ops of both must be free.
func (fu *fuser) movesUp(g, old *group) bool {
	for _, n := range slices.Concat(g.nodes, old.nodes) {
		if !isMovable(n) {
			return false
		}
	}
	for _, n := range g.nodes {
		for _, a := range n.Args {
			if a.Def == nil {
				continue
			}
			if in := fu.group[a.Def]; in != old && in != g && fu.place(a.Def) >= old.position {
				return false
			}
		}
	}
	return match(g, old)
}

// place returns the position at which a node runs.
func (fu *fuser) place(n *ir.Node) int {
	if g := fu.group[n]; g != nil {
		return g.position
	}
	return fu.at[n]
}

// match reports whether the results of two groups match: the same type, the same rounds, and the same rows.
func match(a, b *group) bool {
	for _, n := range a.nodes {
		if !n.Outs[0].Type.Equal(b.nodes[0].Outs[0].Type) || n.Attr.Round != b.nodes[0].Attr.Round {
			return false
		}
	}
	return oneRow(slices.Concat(a.nodes, b.nodes))
}

// oneRow reports whether ops agree on the row of their results: each op on rows has the same dims, and every other
// operand has all or none of these, and all or none of the dims before them.
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

// rewrite puts each group of two or more ops at the position of its last op.
func (fu *fuser) rewrite() {
	var out []*ir.Node
	for _, n := range fu.f.Nodes {
		g := fu.group[n]
		switch {
		case g == nil || len(g.nodes) == 1:
			out = append(out, n)
		case g.position == fu.at[n]:
			out = append(out, fu.fused(g))
		}
	}
	fu.f.Nodes = out
}

// fused returns the group as one node. Its operands are the values from outside, its results the values used outside.
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
