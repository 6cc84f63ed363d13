package codegen

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// biasGrads lets the matmul that computes a weight's gradient also sum the rows of its right operand, on a GPU and in
// 16 bits with sums in f32. That sum is the gradient of the bias after that weight, for which the operand would be read
// again. Both are accumulators that nothing reads before the step's end, so that the sum may move to the matmul. It
// returns the ops without those sums; u.rowSum has them.
func (u *fusion) biasGrads(nodes []*ir.Node) []*ir.Node {
	for i := 0; i < len(nodes); i++ {
		at := slices.IndexFunc(nodes, func(m *ir.Node) bool { return u.sumsRows(m, nodes[i]) })
		if at < 0 {
			continue
		}
		u.rowSum[nodes[at]] = nodes[i]
		nodes = slices.Delete(nodes, i, i+1)
		i--
	}
	return nodes
}

// sumsRows reports whether the library can compute sum together with matmul m.
func (u *fusion) sumsRows(m, sum *ir.Node) bool {
	if sum.Op != ir.OpReduceSum || m.Op != ir.OpMatMul || m.Attr.In != "" || u.rowSum[m] != nil || m.Attr.Round ||
		sum.Attr.Round || !accumulates(m) || !accumulates(sum) {
		return false
	}
	p, from, out := productOf(m), sum.Args[0], sum.Outs[0].Type
	if len(p.groups) > 0 || named(p.b) != named(from) || !from.Type.Elem.Narrow() || p.a.Type.Elem != from.Type.Elem ||
		out.Elem != ir.F32 || m.Outs[0].Type.Elem != ir.F32 {
		return false
	}
	return inOrder(p.b.Type.Dims, p.k, p.n) && u.count(out.Dims) == u.count(p.n) &&
		inOrder(out.Dims, from.Type.Dims[len(from.Type.Dims)-len(out.Dims):], nil)
}

// named returns the value of which others are views.
func named(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.Op.View() {
		v = v.Def.Args[0]
	}
	return v
}
