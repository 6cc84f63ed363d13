package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/num"
)

// Attention of bfloat16 where tiles multiply. Its operands are read as they are stored; scores, their exponentials and
// all sums are of float32; weights and scores' gradients are rounded to bfloat16 before they are multiplied, as
// PyTorch's attention on CPUs does. A tile takes rows of pairs, so that heads have an even number of columns.

// halved are a block's operands of products, rounded or turned, and rows that were widened.
type halved[F Float] struct {
	p, dp  []uint16 // [qBlock][halfRow]
	turned []F      // of pairs of queries: a row for a key
	do, o  []F
}

// halfRow is how many weights' room a row has: an odd number of lines, so that rows lie in different sets of a cache.
const halfRow = kBlock + tileStep

// tileStep is how many terms a tile multiplies.
const tileStep = 32

// upToTile is the first multiple of tileStep from x on.
func upToTile(x int) int { return (x + tileStep - 1) &^ (tileStep - 1) }

// tilesOf is the engine that multiplies pairs of bfloat16, whose sums are an F's.
func tilesOf[F Float]() *engine[F] { return any(engine16).(*engine[F]) }

// attentionTiles is AttentionBF16 on tiles.
func attentionTiles(o, lse []float32, q, k, v []num.BF16, wide []float32, s AttentionShape) {
	if !s.onTiles() {
		attentionWidened(o, lse, q, k, v, wide, s)
		return
	}
	attendStored(mat[float32]{d: o}, half32(q), half32(k), half32(v), lse, s)
}

// attentionGradTiles is AttentionGradBF16 on tiles.
func attentionGradTiles(dq, dk, dv []float32, do, q, k, v, o []num.BF16, lse, wide []float32, s AttentionShape) {
	if !s.onTiles() {
		attentionGradWidened(dq, dk, dv, do, q, k, v, o, lse, wide, s)
		return
	}
	attendGradStored(mat[float32]{d: dq}, mat[float32]{d: dk}, mat[float32]{d: dv}, half32(do), half32(q), half32(k),
		half32(v), half32(o), lse, s)
}

// onTiles tells whether tiles can multiply what heads have.
func (s *AttentionShape) onTiles() bool { return s.Dim%2+s.VDim%2 == 0 && s.Dim*s.VDim > 0 }

func half32(x []num.BF16) mat[float32] { return mat[float32]{h: halves(x)} }

// attentionWidened is AttentionBF16 by Attention.
func attentionWidened[F Float](o, lse []F, q, k, v []num.BF16, wide []F, s AttentionShape) {
	wq, wide := widenInto(wide, q)
	wk, wide := widenInto(wide, k)
	wv, _ := widenInto(wide, v)
	attention(o, lse, wq, wk, wv, s)
}

// attentionGradWidened is AttentionGradBF16 by AttentionGrad.
func attentionGradWidened[F Float](dq, dk, dv []F, do, q, k, v, o []num.BF16, lse, wide []F, s AttentionShape) {
	wdo, wide := widenInto(wide, do)
	wq, wide := widenInto(wide, q)
	wk, wide := widenInto(wide, k)
	wv, wide := widenInto(wide, v)
	wo, _ := widenInto(wide, o)
	attentionGrad(dq, dk, dv, wdo, wq, wk, wv, wo, lse, s)
}

// widenInto widens x into the first of room, and returns what is left of that.
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

// size is the bytes of a number.
func (x mat[F]) size() uintptr {
	if x.h != nil {
		return 2
	}
	return sizeOf[F]()
}

// address is where number i of x lies.
func (x mat[F]) address(i int) unsafe.Pointer {
	if x.h != nil {
		return unsafe.Pointer(&x.h[i])
	}
	return unsafe.Pointer(&x.d[i])
}

// termsOf is where, in rows of op(a), the terms begin that a product of terms lo to hi-1 multiplies, and which they are
// of the packed ones: of pairs, those of whole tiles, in which the other terms of op(a) are 0.
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

// narrowed is x, rows of w.p's or w.dp's, for a product with what e has packed: x itself, or rounded to bfloat16 if
// that is of pairs. Behind the keys that queries see, and behind an odd number of rows, there are zeros as far as tiles
// read.
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

// turned is what sumSeeing takes of rows of weights: these, or the transpose of those of bfloat16.
func (w *scratch[F]) turned(x mat[F], rows int) mat[F] {
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

// widened is so many rows of x, those of bfloat16 widened into room.
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
