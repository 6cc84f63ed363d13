package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/num"
)

// Halves returns the bit patterns of 16-bit numbers.
func Halves[H num.Half](x []H) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// wideBlock is the number of rows, columns and terms that MatMulWidened widens at a time.
const wideBlock = 256

// widened holds blocks of the widened operands, and of sums that will be rounded.
type widened[F elem.Float] struct{ a, b, c [wideBlock * wideBlock]F }

var (
	widened32 team.Pool[widened[float32]]
	widened64 team.Pool[widened[float64]]
)

func widenedOf[F elem.Float]() *team.Pool[widened[F]] {
	if p, ok := any(&widened32).(*team.Pool[widened[F]]); ok {
		return p
	}
	return any(&widened64).(*team.Pool[widened[F]])
}

// MatMulWidened computes MatMulBF16 if no instruction does it, or none that is faster. The bits of an
// element do not depend on the others.
func MatMulWidened[F elem.Float](c []F, a, b []num.BF16, m, n, k int, ta, tb, acc bool) {
	x, w := widenedOf[F]().Get(), borrowWork[F]()
	for j0 := 0; j0 < n; j0 += wideBlock {
		for i0 := 0; i0 < m; i0 += wideBlock {
			block := Mat[F]{D: c[i0*n+j0:], LD: n}
			x.multiply(w, block, a, b, [3]int{m, n, k}, i0, j0, ta, tb, acc)
		}
	}
	w.giveBack()
	widenedOf[F]().Put(x)
}

// MatMulWidenedRounded computes MatMulRoundBF16 in the same way.
func MatMulWidenedRounded[F elem.Float](c, a, b []num.BF16, m, n, k int, ta, tb bool) {
	x, w := widenedOf[F]().Get(), borrowWork[F]()
	for j0 := 0; j0 < n; j0 += wideBlock {
		for i0 := 0; i0 < m; i0 += wideBlock {
			x.multiply(w, Mat[F]{D: x.c[:], LD: wideBlock}, a, b, [3]int{m, n, k}, i0, j0, ta, tb, false)
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
func (x *widened[F]) multiply(w *Work[F], c Mat[F], a, b []num.BF16, sizes [3]int, i0, j0 int, ta, tb, acc bool) {
	m, n, k := sizes[0], sizes[1], sizes[2]
	mb, nb := min(wideBlock, m-i0), min(wideBlock, n-j0)
	if k == 0 && !acc {
		for r := range mb {
			clear(c.D[r*c.LD:][:nb])
		}
	}
	for p0 := 0; p0 < k; p0 += wideBlock {
		kb := min(wideBlock, k-p0)
		wa := Mat[F]{D: widen(x.a[:], a, m, k, i0, p0, mb, kb, ta), LD: wideBlock, T: ta}
		wb := Mat[F]{D: widen(x.b[:], b, n, k, j0, p0, nb, kb, !tb), LD: wideBlock, T: tb}
		w.multiplyOn(Part[F]{c, wa, wb, mb, nb, kb, acc || p0 > 0}, true)
	}
}

// widen widens count numbers from p0 on of n lines from i0 on, of all lines with k numbers. across says
// that equal terms of all lines are contiguous. The result has the layout of the source, with wideBlock
// from row to row.
func widen[F elem.Float](to []F, x []num.BF16, all, k, i0, p0, n, count int, across bool) []F {
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
