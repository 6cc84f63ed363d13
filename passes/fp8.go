package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// eight says of which products the operands are rounded to 8 bits, if the plan wants that: in blocks, those with a
// weight. The router's is none of them, where a small difference is another choice of experts; nor are tables, the
// classifier, attention's own products and those with a vector. The gradients' products follow (eightGradient).
func eight(p *ir.Program) error {
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

// eightGradient is what the operands of the gradient by operand i of a product are rounded to: gradients, which differ
// more in size, to the format with more range. They come in matmulOrder.
func eightGradient(n *ir.Node, i int) string {
	switch {
	case n.Attr.In == "":
		return ""
	case i == 0:
		return ir.E5M2 + "," + ir.E4M3
	}
	return ir.E4M3 + "," + ir.E5M2
}
