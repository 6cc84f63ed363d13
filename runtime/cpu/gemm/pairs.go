package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/vec"
)

// Matmuls of bfloat16 by an engine of pairs work like those of float32, with this difference: an element of
// a panel is a pair of neighbours in k, in the space of a float32, the first in the lower half. Rows of an
// untransposed a contain such pairs as stored. An odd last term is a separate matmul, whose pairs are
// padded with a zero.

// lines holds the n rows of op(a), or columns of op(b), of a block, w per panel.
type lines struct {
	h      []uint16 // from the block's first line and term on
	ld     int
	across bool // equal terms of all lines are contiguous, not the terms of one line
	n, w   int
}

func (g *tiling[F]) linesOfA() lines {
	x := lines{ld: g.a.LD, across: g.a.T, n: g.mb, w: g.e.rows}
	x.h = g.a.H[x.at(g.i0, 2*g.p0):]
	return x
}

func (g *tiling[F]) linesOfB() lines {
	x := lines{ld: g.b.LD, across: !g.b.T, n: g.nb, w: g.e.cols}
	x.h = g.b.H[x.at(g.j0, 2*g.p0):]
	return x
}

// at returns the index of number p of a line.
func (x *lines) at(line, p int) int {
	if x.across {
		return p*x.ld + line
	}
	return line*x.ld + p
}

// packPairs packs up to four panels, from panel q on, as [kb][w] pairs each.
func (g *packer[F]) packPairs(dst []F, x lines, q int) {
	if x.across && !g.lone && (q+four)*x.w <= x.n {
		g.packAcross(g.e.packFourPairs, dst, x, q, x.w, four)
		return
	}
	for end := min(q+four, (x.n+x.w-1)/x.w); q < end; q++ {
		if n := min(x.w, x.n-q*x.w); x.across && !g.lone {
			g.packAcross(g.e.packPairs, dst, x, q, n, 1)
		} else {
			g.packAlong(dst, x, q, n)
		}
	}
}

// packAcross packs panel q with n lines, or as many panels as pack handles at once.
func (g *packer[F]) packAcross(pack pairPacker, dst []F, x lines, q, n, panels int) {
	to, from := dst[q*x.w*g.kb:][:panels*x.w*g.kb], x.h[q*x.w:]
	_ = from[(2*g.kb-1)*x.ld+(panels-1)*x.w+n-1]
	pack((*byte)(unsafe.Pointer(&to[0])), &from[0], uintptr(4*x.w), uintptr(2*x.ld), uintptr(g.kb), uintptr(n),
		uintptr(x.w), uintptr(4*x.w*g.kb))
}

// packAlong packs panel q if the terms of its n lines are contiguous, or if there is a single term.
func (g *packer[F]) packAlong(dst []F, x lines, q, n int) {
	panel, j := dst[q*x.w*g.kb:][:x.w*g.kb], 0
	to := unsafe.Slice((*uint32)(unsafe.Pointer(&panel[0])), len(panel))
	for ; j+16 <= n && !g.lone; j += 16 {
		from := x.h[(q*x.w+j)*x.ld:]
		_ = from[15*x.ld+2*g.kb-1]
		g.e.packCols((*float32)(unsafe.Pointer(&to[j])), (*float32)(unsafe.Pointer(&from[0])), uintptr(4*x.w),
			uintptr(2*x.ld), uintptr(g.kb))
	}
	for ; j < x.w; j++ {
		for p := range g.kb {
			pair := uint32(0)
			if j < n {
				pair = uint32(x.h[x.at(q*x.w+j, 2*p)])
			}
			if j < n && !g.lone {
				pair |= uint32(x.h[x.at(q*x.w+j, 2*p+1)]) << 16
			}
			to[p*x.w+j] = pair
		}
	}
}

// pairPacker packs pairs of rows, for one panel or for four.
type pairPacker = func(dst *byte, src *uint16, step, ld, rows, words, room, panel uintptr)

// roundCols is the number of columns of float32 sums that a part computes before it rounds them: they fit
// the second-level cache.
const roundCols = 128

// roundBlock is the number of rows and columns of sums that are rounded together if the terms come in
// several chunks.
const roundBlock = 512

// sums holds the sums of a part before they are rounded.
type sums struct{ d []float32 }

var sumsPool team.Pool[sums]

// multiplyRounded computes panels from to to-1 of a part with rows r0 to r1-1, into a 16-bit c.
func (g *matmul[F]) multiplyRounded(s *asm.Strip, r0, r1, from, to int) {
	w, t := g.e.cols, sumsPool.Get()
	ld := roundCols
	if g.thin && (!g.e.together || r1-r0 > partRows) { // panel by panel
		ld = w
	}
	t.d, s.CS = Room(t.d, max(partRows*roundCols, (r1-r0)*ld)), uintptr(4*ld)
	for q := from; q < to; {
		first, cols := q, 0
		for ; q < to && cols < ld; q++ {
			g.multiplyPanel(s, q, r1-r0, unsafe.Pointer(&t.d[cols]))
			cols += s.Cols
		}
		at := (g.i0+r0)*g.c.LD + g.j0 + first*w
		for r := range r1 - r0 {
			c, x := g.c.H[at+r*g.c.LD:][:cols], t.d[r*ld:][:cols]
			done := vec.NarrowBF16(c, x)
			num.StoreBits(c[done:], x[done:], num.ElemBF16)
		}
	}
	sumsPool.Put(t)
}

// pairsOf sets the operands of a matmul by the engine of pairs.
func pairsOf(g *matmul[float32], a, b []num.BF16, m, n, k int, ta, tb bool) {
	lda, ldb := k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	g.a, g.b = Mat[float32]{H: Halves(a[:m*k]), LD: lda, T: ta}, Mat[float32]{H: Halves(b[:n*k]), LD: ldb, T: tb}
	g.m, g.n, g.k = m, n, k/2
}

// multiplyPairs multiplies k numbers of each row and column, and the last one separately if k is odd.
func (g *matmul[F]) multiplyPairs(k int, acc bool) {
	g.acc = acc
	if k != 1 {
		g.multiply(true)
	}
	if k%2 == 1 {
		xa, xb := lines{ld: g.a.LD, across: g.a.T}, lines{ld: g.b.LD, across: !g.b.T}
		g.a.H, g.b.H = g.a.H[xa.at(0, k-1):], g.b.H[xb.at(0, k-1):]
		g.k, g.acc, g.lone = 1, acc || k > 1, true
		g.multiply(true)
		g.lone = false
	}
}

// MatMulPairs computes MatMulBF16 with the engine of pairs.
func MatMulPairs(c []float32, a, b []num.BF16, m, n, k int, ta, tb, acc bool) {
	if m == 0 || n == 0 {
		return
	}
	g := borrowGemm(engine16)
	pairsOf(g, a, b, m, n, k, ta, tb)
	g.c = Mat[float32]{D: c[:m*n], LD: n}
	g.multiplyPairs(k, acc)
	g.giveBack()
}

// MatMulPairsRounded computes MatMulRoundBF16 with the engine of pairs. If all terms fit one chunk, parts
// of the sums are rounded when they are complete; otherwise a block of sums at a time.
func MatMulPairsRounded(c, a, b []num.BF16, m, n, k int, ta, tb bool) {
	if m == 0 || n == 0 || k == 0 {
		clear(c[:m*n])
		return
	}
	g := borrowGemm(engine16)
	pairsOf(g, a, b, m, n, k, ta, tb)
	if k%2 == 0 && k/2 <= termsPacked {
		g.c = Mat[float32]{H: Halves(c[:m*n]), LD: n}
		g.multiplyPairs(k, false)
		g.giveBack()
		return
	}
	wholeA, wholeB, t := g.a, g.b, sumsPool.Get()
	t.d = Room(t.d, roundBlock*roundBlock)
	for j0 := 0; j0 < n; j0 += roundBlock {
		for i0 := 0; i0 < m; i0 += roundBlock {
			g.m, g.n, g.k = min(roundBlock, m-i0), min(roundBlock, n-j0), k/2
			g.a, g.b = wholeA.from(i0), wholeB.to(j0)
			g.c = Mat[float32]{D: t.d, LD: g.n}
			g.multiplyPairs(k, false)
			for r := range g.m {
				num.Store(c[(i0+r)*n+j0:][:g.n], t.d[r*g.n:][:g.n])
			}
		}
	}
	sumsPool.Put(t)
	g.giveBack()
}
