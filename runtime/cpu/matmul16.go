package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/num"
)

// MatMulEachBF16 computes
//
//	for g := range groups { MatMulBF16(c[g], a[g], b[g], m, n, k, ta, tb, acc) }
func (t *Kernels[F]) MatMulEachBF16(c []F, a, b []num.BF16, groups, m, n, k int, ta, tb, acc bool) {
	for g := range groups {
		t.MatMulBF16(c[g*m*n:][:m*n], a[g*m*k:][:m*k], b[g*k*n:][:k*n], m, n, k, ta, tb, acc)
	}
}

// MatMulEachRoundBF16 computes
//
//	for g := range groups { MatMulRoundBF16(c[g], a[g], b[g], m, n, k, ta, tb) }
func (t *Kernels[F]) MatMulEachRoundBF16(c, a, b []num.BF16, groups, m, n, k int, ta, tb bool) {
	for g := range groups {
		t.MatMulRoundBF16(c[g*m*n:][:m*n], a[g*m*k:][:m*k], b[g*k*n:][:k*n], m, n, k, ta, tb)
	}
}

// halves returns the bit patterns of 16-bit numbers.
func halves[H num.Half](x []H) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// wideBlock is the number of rows, columns and terms that matMulWidened widens at a time.
const wideBlock = 256

// widened holds blocks of the widened operands, and of sums that will be rounded.
type widened[F Float] struct{ a, b, c [wideBlock * wideBlock]F }

var (
	widened32 team.Pool[widened[float32]]
	widened64 team.Pool[widened[float64]]
)

func widenedOf[F Float]() *team.Pool[widened[F]] {
	if p, ok := any(&widened32).(*team.Pool[widened[F]]); ok {
		return p
	}
	return any(&widened64).(*team.Pool[widened[F]])
}

// matMulWidened computes MatMulBF16 if no instruction does it, or none that is faster. The bits of an
// element do not depend on the others.
func matMulWidened[F Float](c []F, a, b []num.BF16, m, n, k int, ta, tb, acc bool) {
	x, w := widenedOf[F]().Get(), borrow[F]()
	for j0 := 0; j0 < n; j0 += wideBlock {
		for i0 := 0; i0 < m; i0 += wideBlock {
			block := mat[F]{d: c[i0*n+j0:], ld: n}
			x.multiply(w, block, a, b, [3]int{m, n, k}, i0, j0, ta, tb, acc)
		}
	}
	w.giveBack()
	widenedOf[F]().Put(x)
}

// matMulWidenedRounded computes MatMulRoundBF16 in the same way.
func matMulWidenedRounded[F Float](c, a, b []num.BF16, m, n, k int, ta, tb bool) {
	x, w := widenedOf[F]().Get(), borrow[F]()
	for j0 := 0; j0 < n; j0 += wideBlock {
		for i0 := 0; i0 < m; i0 += wideBlock {
			x.multiply(w, mat[F]{d: x.c[:], ld: wideBlock}, a, b, [3]int{m, n, k}, i0, j0, ta, tb, false)
			for r := range min(wideBlock, m-i0) {
				row := c[(i0+r)*n+j0:][:min(wideBlock, n-j0)]
				switch from := any(x.c[r*wideBlock:][:len(row)]).(type) {
				case []float32:
					num.Store(row, from)
				case []float64:
					num.Store(row, from)
				}
			}
		}
	}
	w.giveBack()
	widenedOf[F]().Put(x)
}

// multiply computes a block of a matmul of sizes m, n and k, from row i0 and column j0 on.
func (x *widened[F]) multiply(w *scratch[F], c mat[F], a, b []num.BF16, sizes [3]int, i0, j0 int, ta, tb, acc bool) {
	m, n, k := sizes[0], sizes[1], sizes[2]
	mb, nb := min(wideBlock, m-i0), min(wideBlock, n-j0)
	if k == 0 && !acc {
		for r := range mb {
			clear(c.d[r*c.ld:][:nb])
		}
	}
	for p0 := 0; p0 < k; p0 += wideBlock {
		kb := min(wideBlock, k-p0)
		wa := mat[F]{d: widen(x.a[:], a, m, k, i0, p0, mb, kb, ta), ld: wideBlock, t: ta}
		wb := mat[F]{d: widen(x.b[:], b, n, k, j0, p0, nb, kb, !tb), ld: wideBlock, t: tb}
		w.blockMatmul(c, wa, wb, mb, nb, kb, acc || p0 > 0, true)
	}
}

// widen widens count numbers from p0 on of n lines from i0 on, of all lines with k numbers. across says
// that equal terms of all lines are contiguous. The result has the layout of the source, with wideBlock
// from row to row.
func widen[F Float](to []F, x []num.BF16, all, k, i0, p0, n, count int, across bool) []F {
	rows, cols, ld, from := n, count, k, i0*k+p0
	if across {
		rows, cols, ld, from = count, n, all, p0*all+i0
	}
	for r := range rows {
		switch to := any(to[r*wideBlock:][:cols]).(type) {
		case []float32:
			num.Load(to, x[from+r*ld:][:cols])
		case []float64:
			num.Load(to, x[from+r*ld:][:cols])
		}
	}
	return to
}
