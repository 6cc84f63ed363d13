package codegen

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/fusion"
)

// emitMatMul finds the memory layout of the named dims. Each operand has the dims that it shares with the result and
// those that are summed, each kind contiguous and in one order, so that the contraction is one GEMM with or without
// transposes.
func emitMatMul(e *emitter, n *ir.Node) {
	g := fusion.GEMMOf(n)
	ta := transposed(n, inside(n, g.A.Type, g.Groups), g.M, g.K)
	tb := transposed(n, inside(n, g.B.Type, g.Groups), g.K, g.N)
	if !fusion.InOrder(inside(n, n.Outs[0].Type, g.Groups).Dims, g.M, g.N) {
		panic(fmt.Sprintf("codegen: no kernel writes the result of %v", n))
	}
	c := matMulCall{emitter: e, n: n, also: e.calls.Call(n), a: g.A, b: g.B, rows: e.count(g.M), cols: e.count(g.N),
		terms: e.count(g.K), transA: ta, transB: tb}
	if len(g.Groups) > 0 {
		c.groups = e.count(g.Groups)
	}
	c.write()
}

// inside returns t without the leading dims that number the groups.
func inside(n *ir.Node, t ir.Type, groups []ir.Extent) ir.Type {
	if !fusion.InOrder(t.Dims[:min(len(groups), len(t.Dims))], groups, nil) {
		panic(fmt.Sprintf("codegen: no kernel multiplies the groups of %v", n))
	}
	return ir.Type{Elem: t.Elem, Dims: t.Dims[len(groups):]}
}

// transposed reports whether t is laid out as second-first rather than first-second.
func transposed(n *ir.Node, t ir.Type, first, second []ir.Extent) bool {
	switch {
	case fusion.InOrder(t.Dims, first, second):
		return false
	case fusion.InOrder(t.Dims, second, first):
		return true
	}
	panic(fmt.Sprintf("codegen: no kernel reads the operands of %v", n))
}
