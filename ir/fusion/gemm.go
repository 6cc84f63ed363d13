package fusion

import "github.com/planc-dev/planc/ir"

// GEMM is a contraction as one GEMM, or as one GEMM per group: rows M of A, columns N of B, sums over K.
type GEMM struct {
	A, B            *ir.Value
	Groups, M, N, K []ir.Extent
}

// GEMMOf classifies the dims of a matmul.
func GEMMOf(n *ir.Node) GEMM {
	out := n.Outs[0].Type
	g := GEMM{A: n.Args[0], B: n.Args[1]}
	if len(out.Dims) > 0 && !g.A.Type.Has(out.Dims[0].Dim) {
		g.A, g.B = g.B, g.A // a matmul commutes; the operand with the result's first dims is the left one
	}
	for _, d := range out.Dims {
		switch {
		case g.A.Type.Has(d.Dim) && g.B.Type.Has(d.Dim):
			g.Groups = append(g.Groups, d)
		case g.A.Type.Has(d.Dim):
			g.M = append(g.M, d)
		default:
			g.N = append(g.N, d)
		}
	}
	for _, d := range g.A.Type.Dims {
		if g.B.Type.Has(d.Dim) && !out.Has(d.Dim) {
			g.K = append(g.K, d)
		}
	}
	return g
}

// InOrder reports whether dims are those of first, followed by those of second.
func InOrder(dims []ir.Extent, first, second []ir.Extent) bool {
	if len(dims) != len(first)+len(second) {
		return false
	}
	for i, d := range dims {
		e := first
		if i >= len(first) {
			e, i = second, i-len(first)
		}
		if d.Dim != e[i].Dim {
			return false
		}
	}
	return true
}
