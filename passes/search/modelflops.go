package search

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// roundPart returns the part of a node's slots that evenly distributed tokens fill, or 1 if the node has no slots.
func roundPart(n *ir.Node, tokens int, sent *ir.Node) float64 {
	if !n.Attr.Round || sent == nil {
		return 1
	}
	experts, _ := sent.Outs[0].Type.Extent(ir.Expert)
	slots, _ := sent.Outs[0].Type.Extent(ir.SlotDim)
	choices, _ := sent.Args[1].Type.Extent(ir.Choice)
	return float64(choices.Size*tokens) / float64(experts.Size*slots.Size)
}

// modelFlops returns the model's flops per sequence on one device: three times the matmul and attention flops of the
// forward pass.
func modelFlops(m *ir.Model) float64 {
	sum := 0.0
	for _, s := range m.Segments {
		batch, tokens := 1, 0
		var sent *ir.Node
		for _, n := range s.Forward.Nodes {
			if n.Op == ir.OpDispatch {
				sent, tokens = n, n.Args[1].Type.Elems()/n.Args[1].Type.Dims[len(n.Args[1].Type.Dims)-1].Size
			}
			if costmodel.KindOf(n.Op) == costmodel.Vector {
				continue
			}
			for _, o := range n.Outs {
				if e, ok := o.Type.Extent(ir.Batch); ok {
					batch = e.Size
				}
			}
			sum += float64(3 * float64(s.Count) * n.Flops(ir.Mesh{}) * roundPart(n, tokens, sent) / float64(batch))
		}
	}
	return sum
}

// flopsFormula names how modelFlops counts. Attention counts only the pairs of positions that attend to each other.
func flopsFormula(m *ir.Model) string {
	const matmuls = "6N + "
	for _, s := range m.Segments {
		for _, n := range s.Forward.Nodes {
			if n.Op != ir.OpAttention {
				continue
			}
			keys, _ := n.Args[1].Type.Extent(ir.KSeq)
			switch {
			case n.Attr.Window > 0 && n.Attr.Window < keys.Size:
				return matmuls + "windowed attention"
			case n.Attr.Causal:
				return matmuls + "causal attention"
			}
			return matmuls + "attention"
		}
	}
	return matmuls[:2]
}
