package fusion

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// mayEnd reports whether an op may be the epilogue of a matmul.
func (u *fuser) mayEnd(op ir.Op) bool {
	return op == ir.OpGelu || op == ir.OpGeluGrad || op == ir.OpAdd && !u.onGPU
}

// activations makes an op the epilogue of a matmul if its group has no other op left: the tanh approximation of GELU,
// the multiplication by its derivative, and on a CPU an addition if the matmul already has a C operand. The matmul's
// comment and call then contain both. It returns the function's ops without those groups.
//
// On a CPU this applies to the kernels' type, and the op is computed on a strip of sums while it is in the cache. On a
// GPU it applies to 16-bit types, because cuBLASLt does not document the accuracy of its tanh. If cuBLASLt refuses the
// call, the separate ops are computed.
func (u *fuser) activations(nodes []*ir.Node) []*ir.Node {
	for i := 0; i < len(nodes); i++ {
		if at := u.endsIn(nodes, i); at >= 0 {
			nodes[i] = u.endIn(nodes, at, i)
			nodes = slices.Delete(nodes, at, at+1)
			i--
		}
	}
	return nodes
}

// endIn returns the matmul at index at combined with op i: with its addend as the C operand if it has none, else with
// op i as the epilogue.
func (u *fuser) endIn(nodes []*ir.Node, at, i int) *ir.Node {
	m, op := nodes[at], ir.SingleOp(nodes[i])
	isStored := u.outlives(nodes, m.Outs[0])
	if op.Op == ir.OpAdd && u.call(m).C == nil && !isStored {
		n := writing(m, op.Outs[0])
		u.calls[n] = &Call{C: ir.OtherOperand(op, m.Outs[0]), Addition: op}
		return n
	}
	c := u.edit(m)
	c.Epilogue, c.KeepsResult = nodes[i], isStored
	return m
}

// endsIn returns the index of the matmul whose epilogue op i is, negative if there is none.
func (u *fuser) endsIn(nodes []*ir.Node, i int) int {
	op := ir.SingleOp(nodes[i])
	if op == nil || !u.mayEnd(op.Op) {
		return -1
	}
	for k, v := range op.Args {
		at := slices.IndexFunc(nodes[:i], func(n *ir.Node) bool { return n.Op == ir.OpMatMul && n.Outs[0] == v })
		if at >= 0 && u.ends(nodes, at, i, k) {
			return at
		}
		if op.Op != ir.OpAdd { // of others the first operand is what comes in
			break
		}
	}
	return -1
}

// ends reports whether op i, which has the matmul at index at as operand k, can be its epilogue.
func (u *fuser) ends(nodes []*ir.Node, at, i, k int) bool {
	m, op := nodes[at], ir.SingleOp(nodes[i])
	if u.call(m).Epilogue != nil || !u.hasEpilogueTypes(m, op) || !u.mayWait(nodes[at:i], op.Outs[0]) {
		return false
	}
	if len(op.Args) == 1 {
		return true
	}
	v, x := op.Args[k], op.Args[1-k]
	if u.overlap(x, op.Outs[0]) {
		return false
	}
	if u.onGPU {
		return !u.outlives(nodes, v) && u.call(m).C == nil
	}
	return x != v && x.Type.Equal(v.Type)
}

// mayWait reports whether the first of some ops, a matmul, can run after the others and write to out: they neither read
// its result nor write where its operands are, and out is elsewhere.
func (u *fuser) mayWait(nodes []*ir.Node, out *ir.Value) bool {
	reads, outs := u.reads(nodes[0]), []*ir.Value{out}
	for _, n := range nodes[1:] {
		if slices.Contains(u.reads(n), nodes[0].Outs[0]) {
			return false
		}
		for _, o := range u.makes(n) {
			if r := o.Place.Region; r != ir.PlaceWork && r != ir.PlaceGrad && r != ir.PlaceSlot {
				return false
			}
		}
		if !n.Op.View() {
			outs = append(outs, u.makes(n)...)
		}
	}
	return !slices.ContainsFunc(reads, func(a *ir.Value) bool {
		return slices.ContainsFunc(outs, func(o *ir.Value) bool { return u.overlap(a, o) })
	})
}

// reads returns an op's operands, including those of its C operand and epilogue.
func (u *fuser) reads(n *ir.Node) []*ir.Value {
	c, vs := u.call(n), n.Args
	if c == &noCall {
		return vs
	}
	vs = slices.Clone(vs)
	if c.C != nil {
		vs = append(vs, c.C)
	}
	if c.Bias != nil {
		vs = append(vs, c.Bias)
	}
	if c.Epilogue != nil {
		vs = append(vs, c.Epilogue.Args...)
	}
	return vs
}

// makes returns an op's results, including those of its epilogue.
func (u *fuser) makes(n *ir.Node) []*ir.Value {
	if epilogue := u.call(n).Epilogue; epilogue != nil {
		return slices.Concat(n.Outs, epilogue.Outs)
	}
	return n.Outs
}

// hasEpilogueTypes reports whether the types of an op and a matmul permit that the op is the epilogue: all are those in
// which a CPU's kernels compute, or on a GPU 16-bit types.
func (u *fuser) hasEpilogueTypes(m, op *ir.Node) bool {
	elem := op.Outs[0].Type.Elem
	if elem.Narrow() != u.onGPU || m.Attr.In != "" || m.Attr.Round || op.Attr.Round || len(GEMMOf(m).Groups) > 0 ||
		ir.Accumulates(m) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(m.Args, op.Args), func(v *ir.Value) bool { return v.Type.Elem != elem })
}

// outlives reports whether a value that an op reads is also used by another.
func (u *fuser) outlives(nodes []*ir.Node, v *ir.Value) bool {
	users := 0
	for _, n := range nodes {
		if slices.Contains(u.reads(n), v) {
			users++
		}
	}
	return users > 1 || v.Place.Region != ir.PlaceWork || slices.Contains(u.f.Outputs, v)
}
