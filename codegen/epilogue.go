package codegen

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// endings maps the ops that may be the epilogue of a matmul on a CPU to their names in its kernels. Package vec has
// loops for them over rows that are not adjacent.
var endings = map[ir.Op]string{ir.OpGelu: "Gelu", ir.OpGeluGrad: "GeluGrad", ir.OpAdd: "Add"}

// activations makes an op the epilogue of a matmul if its group has no other op left: the tanh approximation of GELU,
// the multiplication by its derivative, and on a CPU an addition if the matmul already has a C operand. The matmul's
// comment and call then contain both. It returns the function's ops with the matmuls in place of those groups, which
// u.epilogue has.
//
// On a CPU this applies to the kernels' type, and the op is computed on a strip of sums while it is in the cache. On a
// GPU it applies to 16-bit types, because cuBLASLt does not document the accuracy of its tanh. If cuBLASLt refuses the
// call, the separate ops are computed.
func (u *fusion) activations(nodes []*ir.Node) []*ir.Node {
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
func (u *fusion) endIn(nodes []*ir.Node, at, i int) *ir.Node {
	m, op := nodes[at], only(nodes[i])
	isStored := u.outlives(nodes, m.Outs[0])
	if op.Op == ir.OpAdd && u.cOperand[m] == nil && !isStored {
		n := writing(m, op.Outs[0])
		u.cOperand[n], u.addition[n] = other(op, m.Outs[0]), op
		return n
	}
	u.epilogue[m], u.keepsResult[m] = nodes[i], isStored
	return m
}

// other is an op's operand that is not v, nil if there is none.
func other(op *ir.Node, v *ir.Value) *ir.Value {
	if i := slices.IndexFunc(op.Args, func(a *ir.Value) bool { return a != v }); i >= 0 {
		return op.Args[i]
	}
	return nil
}

// endsIn returns the index of the matmul whose epilogue op i is, negative if there is none.
func (u *fusion) endsIn(nodes []*ir.Node, i int) int {
	op := only(nodes[i])
	if op == nil || endings[op.Op] == "" || op.Op == ir.OpAdd && u.gpu() {
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
func (u *fusion) ends(nodes []*ir.Node, at, i, k int) bool {
	m, op := nodes[at], only(nodes[i])
	if u.epilogue[m] != nil || !u.mayEnd(m, op) || !u.mayWait(nodes[at:i], op.Outs[0]) {
		return false
	}
	if len(op.Args) == 1 {
		return true
	}
	v, x := op.Args[k], op.Args[1-k]
	if u.overlap(x, op.Outs[0]) {
		return false
	}
	if u.gpu() {
		return !u.outlives(nodes, v) && u.cOperand[m] == nil
	}
	return x != v && x.Type.Equal(v.Type)
}

// mayWait reports whether the first of some ops, a matmul, can run after the others and write to out: they neither read
// its result nor write where its operands are, and out is elsewhere.
func (u *fusion) mayWait(nodes []*ir.Node, out *ir.Value) bool {
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
func (u *fusion) reads(n *ir.Node) []*ir.Value {
	vs := slices.Clone(n.Args)
	if from := u.cOperand[n]; from != nil {
		vs = append(vs, from)
	}
	if epilogue := u.epilogue[n]; epilogue != nil {
		vs = append(vs, epilogue.Args...)
	}
	return vs
}

// makes returns an op's results, including those of its epilogue.
func (u *fusion) makes(n *ir.Node) []*ir.Value {
	if epilogue := u.epilogue[n]; epilogue != nil {
		return slices.Concat(n.Outs, epilogue.Outs)
	}
	return n.Outs
}

// only returns the op of a node that does a single op, nil if it does more.
func only(n *ir.Node) *ir.Node {
	switch {
	case n.Op != ir.OpFused:
		return n
	case len(n.Body) == 1:
		return n.Body[0]
	}
	return nil
}

// mayEnd reports whether op may be the epilogue of matmul m: all types are those in which a CPU's kernels compute, or
// on a GPU 16-bit types.
func (u *fusion) mayEnd(m, op *ir.Node) bool {
	elem := op.Outs[0].Type.Elem
	if elem.Narrow() != u.gpu() || m.Attr.In != "" || m.Attr.Round || op.Attr.Round || len(productOf(m).groups) > 0 ||
		accumulates(m) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(m.Args, op.Args), func(v *ir.Value) bool { return v.Type.Elem != elem })
}

// outlives reports whether a value that an op reads is also used by another.
func (u *fusion) outlives(nodes []*ir.Node, v *ir.Value) bool {
	users := 0
	for _, n := range nodes {
		if slices.Contains(u.reads(n), v) {
			users++
		}
	}
	return users > 1 || v.Place.Region != ir.PlaceWork || slices.Contains(u.f.Outputs, v)
}
