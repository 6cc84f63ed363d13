package codegen

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// registerGEMM records the kind of a GEMM, which a GPU computes once before the first step. The caller sets what the
// matmul is fused with.
func (c *matMulCall) registerGEMM(g program.GEMM) {
	if !c.gpu() {
		return
	}
	g.Groups, g.M, g.N, g.K, g.TransposeA, g.TransposeB = c.groups, c.rows, c.cols, c.terms, c.transA, c.transB
	g.In, g.Out = elemOf(c.a.Type.Elem), elemOf(c.n.Outs[0].Type.Elem)
	c.used.multiply(c.segID, g)
}

// isBias reports whether the C operand is one row for all rows of the result.
func (c *matMulCall) isBias(from *ir.Value) bool {
	return from != nil && from.Type.LocalElems(c.mesh) == c.cols && c.rows > 1
}
