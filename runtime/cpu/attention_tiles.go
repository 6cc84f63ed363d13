package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/num"
)

// Attention in bfloat16 on AMX tiles. The operands are read as stored. Scores, their exponentials and all
// sums are float32. Weights and the gradients of scores are rounded to bfloat16 before they are multiplied,
// as in PyTorch's attention on CPUs. A tile reads rows of pairs, so heads must have an even number of
// columns.

// halved holds a block's operands of matmuls, rounded or transposed, and widened rows.
type halved[F Float] struct {
	p, dp  []uint16 // [qBlock][halfRow]
	turned []F      // pairs of queries: a row for each key
	do, o  []F
}

// halfRow is the distance of rows of weights: an odd number of cache lines, so that rows fall into
// different sets of a cache.
const halfRow = kBlock + tileStep

// tileStep is the number of terms that a tile multiplies.
const tileStep = 32

// upToTile rounds x up to a multiple of tileStep.
func upToTile(x int) int { return (x + tileStep - 1) &^ (tileStep - 1) }

// tilesOf returns the engine that multiplies pairs of bfloat16 and sums in F.
func tilesOf[F Float]() *engine[F] { return any(engine16).(*engine[F]) }

// attentionTiles computes AttentionBF16 on tiles.
func attentionTiles(o, lse []float32, q, k, v []num.BF16, wide []float32, s AttentionShape) {
	if !s.onTiles() {
		attentionWidened(o, lse, q, k, v, wide, s)
		return
	}
	attendStored(mat[float32]{d: o}, half32(q), half32(k), half32(v), lse, s)
}

// attentionGradTiles computes AttentionGradBF16 on tiles.
func attentionGradTiles(dq, dk, dv []float32, do, q, k, v, o []num.BF16, lse, wide []float32, s AttentionShape) {
	if !s.onTiles() {
		attentionGradWidened(dq, dk, dv, do, q, k, v, o, lse, wide, s)
		return
	}
	attendGradStored(mat[float32]{d: dq}, mat[float32]{d: dk}, mat[float32]{d: dv}, half32(do), half32(q), half32(k),
		half32(v), half32(o), lse, s)
}

// onTiles reports whether tiles can multiply heads of this shape.
func (s *AttentionShape) onTiles() bool { return s.Dim%2+s.VDim%2 == 0 && s.Dim*s.VDim > 0 }

func half32(x []num.BF16) mat[float32] { return mat[float32]{h: halves(x)} }

// attentionWidened computes AttentionBF16 with Attention.
func attentionWidened[F Float](o, lse []F, q, k, v []num.BF16, wide []F, s AttentionShape) {
	wq, wide := widenInto(wide, q)
	wk, wide := widenInto(wide, k)
	wv, _ := widenInto(wide, v)
	attention(o, lse, wq, wk, wv, s)
}

// attentionGradWidened computes AttentionGradBF16 with AttentionGrad.
func attentionGradWidened[F Float](dq, dk, dv []F, do, q, k, v, o []num.BF16, lse, wide []F, s AttentionShape) {
	wdo, wide := widenInto(wide, do)
	wq, wide := widenInto(wide, q)
	wk, wide := widenInto(wide, k)
	wv, wide := widenInto(wide, v)
	wo, _ := widenInto(wide, o)
	attentionGrad(dq, dk, dv, wdo, wq, wk, wv, wo, lse, s)
}

// widenInto widens x into the beginning of room, and returns the rest of room.
func widenInto[F Float](room []F, x []num.BF16) (wide, rest []F) {
	wide = room[:len(x)]
	switch to := any(wide).(type) {
	case []float32:
		num.Load(to, x)
	case []float64:
		num.Load(to, x)
	}
	return wide, room[len(x):]
}

// size returns the bytes of a number.
func (x mat[F]) size() uintptr {
	if x.h != nil {
		return 2
	}
	return elem.Size[F]()
}

// address returns the address of number i of x.
func (x mat[F]) address(i int) unsafe.Pointer {
	if x.h != nil {
		return unsafe.Pointer(&x.h[i])
	}
	return unsafe.Pointer(&x.d[i])
}

// termsOf returns which terms a product of terms lo to hi-1 multiplies: the position of the first in rows
// of op(a), and the range of the packed ones. For pairs these are whole tiles, in which the other terms of
// op(a) are 0.
func (p *packed[F]) termsOf(lo, hi int) (first, p0, p1 int) {
	if p.at.h == nil {
		return lo, lo, hi
	}
	lo = lo &^ (tileStep - 1)
	return lo, lo / 2, min(upToTile(hi)/2, p.terms)
}

// packOdd packs pairs of an odd number of rows.
func (g *gemm[F]) packOdd(terms int) {
	x, w := g.linesOfB(), g.e.cols
	to := unsafe.Slice((*uint32)(unsafe.Pointer(&g.pb[0])), g.bPanels()*w*g.kb)
	for at := range to {
		q, p, j := at/(w*g.kb), at/w%g.kb, at%w
		pair, line := uint32(0), q*w+j
		if line < x.n {
			pair = uint32(x.h[x.at(line, 2*p)])
		}
		if line < x.n && 2*p+1 < terms {
			pair |= uint32(x.h[x.at(line, 2*p+1)]) << 16
		}
		to[at] = pair
	}
}

// narrowed returns x, rows of w.p or w.dp, as operand of a matmul with what e has packed: x itself, or
// rounded to bfloat16 if e multiplies pairs. As far as tiles read, zeros follow the keys that queries see,
// and an odd number of rows.
func (w *scratch[F]) narrowed(x mat[F], to *[]uint16, rows int, e *engine[F]) mat[F] {
	if e == nil || !e.together {
		return x
	}
	if *to == nil {
		*to = make([]uint16, qBlock*halfRow)
	}
	n, h, from := w.seen.n, *to, any(x.d).([]float32)
	_, _ = h[(rows-1)*halfRow:][:upToTile(n)], from[(rows-1)*x.ld:][:n]
	e.narrowRows(&h[0], &from[0], 2*halfRow, uintptr(4*x.ld), uintptr(rows), uintptr(n))
	if rows%2 == 1 {
		clear(h[rows*halfRow:][:upToTile(n)])
	}
	return mat[F]{h: h, ld: halfRow}
}

// transposed returns the operand of sumSeeing for rows of weights: x itself, or the transpose for bfloat16.
func (w *scratch[F]) transposed(x mat[F], rows int) mat[F] {
	if x.h == nil {
		return x
	}
	g := borrowGemm(tilesOf[F]())
	g.kb = (rows + 1) / 2
	step, own := g.pairsPacked(), g.pa
	w.halves.turned = room(w.halves.turned, kBlock*qBlock/2)
	g.pa = w.halves.turned
	g.packTogether(lines{h: x.h, ld: x.ld, across: true, n: w.seen.n, w: g.e.rows}, 0, w.seen.n)
	g.pa = own
	g.giveBack()
	return mat[F]{h: unsafe.Slice((*uint16)(unsafe.Pointer(&w.halves.turned[0])), kBlock*qBlock), ld: 2 * step}
}

// widened returns rows rows of x, widened into to if they are bfloat16.
func (w *scratch[F]) widened(x mat[F], to *[]F, rows, cols int) mat[F] {
	if x.h == nil {
		return x
	}
	*to = room(*to, qBlock*cols)
	wide := any(*to).([]float32)
	for i := range rows {
		num.LoadBits(wide[i*cols:][:cols], x.h[i*x.ld:][:cols], num.ElemBF16)
	}
	return mat[F]{d: *to, ld: cols}
}
