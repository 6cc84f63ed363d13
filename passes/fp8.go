package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// fp8 marks the matmuls whose operands are rounded to FP8, if the plan asks for it: in blocks, those with a weight.
// It excludes the router, whose choices depend on small differences, and also tables, the classifier, attention's GEMMs
// and multiplications by a vector. The GEMMs of their gradients are marked too (eightGradient).
func fp8(p *ir.Program) error {
	if !p.Plan.Precision.FP8 {
		return nil
	}
	for _, s := range p.Model.Segments {
		if !s.Numbered() {
			continue
		}
		for _, n := range s.Forward.Nodes {
			weighs := slices.ContainsFunc(n.Args, func(v *ir.Value) bool {
				return v.Kind == ir.Weight && len(v.Type.Dims) > 1
			})
			if n.Op == ir.OpMatMul && weighs && !n.Outs[0].Type.Has(ir.Candidate) {
				n.Attr.In = ir.E4M3 + "," + ir.E4M3
			}
		}
	}
	return nil
}

// fp8Gradient returns the formats of the operands of the GEMM that computes the gradient of a matmul's operand i.
// Gradients vary more in magnitude, so they have the format with more range. The operands are in the order of
// matmulOrder.
func fp8Gradient(n *ir.Node, i int) string {
	switch {
	case n.Attr.In == "":
		return ""
	case i == 0:
		return ir.E5M2 + "," + ir.E4M3
	}
	return ir.E4M3 + "," + ir.E5M2
}
