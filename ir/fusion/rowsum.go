package fusion

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// rowSums lets the matmul that computes a weight's gradient also sum the rows of its right operand, on a GPU and in
// 16 bits with sums in f32. That sum is the gradient of the bias after that weight, for which the operand would be read
// again. Both are accumulators that nothing reads before the step's end, so that the sum may move to the matmul. It
// returns the ops without those sums.
func (u *fuser) rowSums(nodes []*ir.Node) []*ir.Node {
	for i := 0; i < len(nodes); i++ {
		at := slices.IndexFunc(nodes, func(m *ir.Node) bool { return u.sumsRows(m, nodes[i]) })
		if at < 0 {
			continue
		}
		u.edit(nodes[at]).RowSum = nodes[i]
		nodes = slices.Delete(nodes, i, i+1)
		i--
	}
	return nodes
}

// sumsRows reports whether the library can compute sum together with matmul m.
func (u *fuser) sumsRows(m, sum *ir.Node) bool {
	if sum.Op != ir.OpReduceSum || m.Op != ir.OpMatMul || m.Attr.In != "" || u.call(m).RowSum != nil || m.Attr.Round ||
		sum.Attr.Round || !ir.Accumulates(m) || !ir.Accumulates(sum) {
		return false
	}
	g, from, out := GEMMOf(m), sum.Args[0], sum.Outs[0].Type
	if len(g.Groups) > 0 || named(g.B) != named(from) || !from.Type.Elem.Narrow() || g.A.Type.Elem != from.Type.Elem ||
		out.Elem != ir.F32 || m.Outs[0].Type.Elem != ir.F32 {
		return false
	}
	return InOrder(g.B.Type.Dims, g.K, g.N) && u.elems(out.Dims) == u.elems(g.N) &&
		InOrder(out.Dims, from.Type.Dims[len(from.Type.Dims)-len(out.Dims):], nil)
}

// named returns the value of which others are views.
func named(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.Op.View() {
		v = v.Def.Args[0]
	}
	return v
}
