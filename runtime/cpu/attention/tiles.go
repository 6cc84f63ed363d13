package attention

import (
	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/num"
)

// Attention in bfloat16 on AMX tiles. The operands are read as stored. Scores, their exponentials and all
// sums are float32. Weights and the gradients of scores are rounded to bfloat16 before they are multiplied,
// as in PyTorch's attention on CPUs. A tile reads rows of pairs, so heads must have an even number of
// columns.

// halved holds a block's operands of matmuls, rounded or transposed, and widened rows.
type halved[F elem.Float] struct {
	p, dp  []uint16 // [qBlock][halfRow]
	turned []F      // pairs of queries: a row for each key
	do, o  []F
}

// halfRow is the distance of rows of weights: an odd number of cache lines, so that rows fall into
// different sets of a cache.
const halfRow = kBlock + gemm.TileStep

// ForwardTiles computes AttentionBF16 on tiles.
func ForwardTiles(o, lse []float32, q, k, v []num.BF16, wide []float32, s Shape) {
	if !s.OnTiles() {
		ForwardWidened(o, lse, q, k, v, wide, s)
		return
	}
	forward(operands[float32]{o: gemm.Mat[float32]{D: o}, q: half32(q), k: half32(k), v: half32(v), lse: lse}, s)
}

// GradientTiles computes AttentionGradBF16 on tiles.
func GradientTiles(dq, dk, dv []float32, do, q, k, v, o []num.BF16, lse, wide []float32, s Shape) {
	if !s.OnTiles() {
		GradientWidened(dq, dk, dv, do, q, k, v, o, lse, wide, s)
		return
	}
	gradient(operands[float32]{
		dq: gemm.Mat[float32]{D: dq}, dk: gemm.Mat[float32]{D: dk}, dv: gemm.Mat[float32]{D: dv}, do: half32(do),
		q: half32(q), k: half32(k), v: half32(v), o: half32(o), lse: lse,
	}, s)
}

// OnTiles reports whether tiles can multiply heads of this shape.
func (s *Shape) OnTiles() bool { return s.Dim%2+s.VDim%2 == 0 && s.Dim*s.VDim > 0 }

func half32(x []num.BF16) gemm.Mat[float32] { return gemm.Mat[float32]{H: gemm.Halves(x)} }

// ForwardWidened computes AttentionBF16 with Attention.
func ForwardWidened[F elem.Float](o, lse []F, q, k, v []num.BF16, wide []F, s Shape) {
	wq, wide := widenInto(wide, q)
	wk, wide := widenInto(wide, k)
	wv, _ := widenInto(wide, v)
	Forward(o, lse, wq, wk, wv, s)
}

// GradientWidened computes AttentionGradBF16 with AttentionGrad.
func GradientWidened[F elem.Float](dq, dk, dv []F, do, q, k, v, o []num.BF16, lse, wide []F, s Shape) {
	wdo, wide := widenInto(wide, do)
	wq, wide := widenInto(wide, q)
	wk, wide := widenInto(wide, k)
	wv, wide := widenInto(wide, v)
	wo, _ := widenInto(wide, o)
	Gradient(dq, dk, dv, wdo, wq, wk, wv, wo, lse, s)
}

// widenInto widens x into the beginning of room, and returns the rest of room.
func widenInto[F elem.Float](room []F, x []num.BF16) (wide, rest []F) {
	wide = room[:len(x)]
	switch to := any(wide).(type) {
	case []float32:
		num.Load(to, x)
	case []float64:
		num.Load(to, x)
	}
	return wide, room[len(x):]
}

// narrowed returns x, rows of w.p or w.dp, as operand of a matmul with b: x itself, or rounded to bfloat16 if b
// is multiplied by pairs.
func (w *multiplier[F]) narrowed(x gemm.Mat[F], to *[]uint16, rows int, b *gemm.Packed[F]) gemm.Mat[F] {
	if !b.TakesPairs() {
		return x
	}
	if *to == nil {
		*to = make([]uint16, qBlock*halfRow)
	}
	return b.Narrow(*to, x, rows, w.seen.n, halfRow)
}

// transposed returns the operand of sumSeeing for rows of weights: x itself, or the transpose for bfloat16.
func (w *multiplier[F]) transposed(x gemm.Mat[F], rows int) gemm.Mat[F] {
	if x.H == nil {
		return x
	}
	w.halves.turned = gemm.Room(w.halves.turned, kBlock*qBlock/2)
	return gemm.TransposePairs(w.halves.turned[:kBlock*qBlock/2], x, rows, w.seen.n)
}

// widened returns rows rows of x, widened into to if they are bfloat16.
func (w *multiplier[F]) widened(x gemm.Mat[F], to *[]F, rows, cols int) gemm.Mat[F] {
	if x.H == nil {
		return x
	}
	*to = gemm.Room(*to, qBlock*cols)
	wide := any(*to).([]float32)
	for i := range rows {
		num.LoadBits(wide[i*cols:][:cols], x.H[i*x.LD:][:cols], num.ElemBF16)
	}
	return gemm.Mat[F]{D: *to, LD: cols}
}
