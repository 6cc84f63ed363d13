package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// four is the number of panels that a part of a packing job packs: contiguous parts of the operand's rows
// are then read together.
const four = 4

// groups returns the number of parts that pack so many panels.
func groups(panels int) int { return (panels + four - 1) / four }

// packB packs four panels of the block of op(b), from panel 4i on.
func (g *packer[F]) packB(i int) {
	w, first := g.e.cols, four*i
	if g.e.pairs {
		g.packPairs(g.pb, g.linesOfB(), first)
		return
	}
	if !g.b.T && !g.directB && g.e.packFour != nil && (first+four)*w <= g.nb {
		g.copyFour(g.pb[first*w*g.kb:], g.b.D[g.p0*g.b.LD+g.j0+first*w:], g.b.LD, w)
		return
	}
	for q := first; q < min(first+four, g.bPanels()); q++ {
		g.packPanelB(q)
	}
}

// packPanelB copies panel i of the block of op(b), as [kb][cols], with zeros for missing columns.
func (g *packer[F]) packPanelB(i int) {
	w := g.e.cols
	col := i * w
	cols := min(w, g.nb-col)
	if g.directB && cols == w {
		return
	}
	panel := g.pb[col*g.kb:][:g.kb*w]
	if !g.b.T {
		g.copyRows(panel, g.b.D[g.p0*g.b.LD+g.j0+col:], g.b.LD, cols, w)
		return
	}
	src := g.b.D[(g.j0+col)*g.b.LD+g.p0:]
	j := 0
	if p, ok := any(panel).([]float32); ok && g.e.packCols != nil {
		for ; j+16 <= cols; j += 16 {
			s := any(src[j*g.b.LD:][:15*g.b.LD+g.kb]).([]float32)
			g.e.packCols(&p[j], &s[0], uintptr(4*w), uintptr(4*g.b.LD), uintptr(g.kb))
		}
	}
	for ; j < cols; j++ {
		row := src[j*g.b.LD:][:g.kb]
		for p, x := range row {
			panel[p*w+j] = x
		}
	}
	for ; j < w; j++ {
		for p := range g.kb {
			panel[p*w+j] = 0
		}
	}
}

// packPanelsA packs four panels of the block of op(a), whose transpose is a, from panel 4i on, as
// [kb][rows] each.
func (g *packer[F]) packPanelsA(i int) {
	w, first := g.e.rows, four*i
	if g.copyA {
		g.copyRowsA(first*w, min((first+four)*w, g.mb))
		return
	}
	switch {
	case g.e.together:
		g.packTogether(g.linesOfA(), first*w, min((first+four)*w, g.mb))
		return
	case g.e.pairs:
		g.packPairs(g.pa, g.linesOfA(), first)
		return
	}
	if g.e.packFour != nil && (first+four)*w <= g.mb {
		g.copyFour(g.pa[first*w*g.kb:], g.a.D[g.p0*g.a.LD+g.i0+first*w:], g.a.LD, w)
		return
	}
	for row := first * w; row < min((first+four)*w, g.mb); row += w {
		g.copyRows(g.pa[row*g.kb:][:g.kb*w], g.a.D[g.p0*g.a.LD+g.i0+row:], g.a.LD, min(w, g.mb-row), w)
	}
}

// Rows of a panel whose distance is a multiple of many cache lines share few sets of the first-level cache,
// and evict each other before all terms of a line are used. crowdedSets is the number of sets from which on
// copying them pays, crowdedCols the number of columns. Copies are an odd number of lines apart.
const (
	cacheSets   = 64 // sets of the first-level cache
	crowdedSets = 1
	crowdedCols = 96
	apart       = 2 * asm.LineBytes // maximum padding of a row's copy
)

// crowded reports whether the rows of an untransposed a should be copied.
func (g *problem[F]) crowded() bool {
	step := g.a.LD * int(elem.Size[F]())
	if g.e.crowds || g.a.T || g.e.pairs || g.n < crowdedCols || g.m < g.e.rows || step%asm.LineBytes != 0 {
		return false
	}
	sets := cacheSets
	for lines := step / asm.LineBytes; lines%2 == 0 && sets > 1; lines /= 2 {
		sets /= 2
	}
	return sets <= crowdedSets
}

// rowCopied returns the distance of copied rows, in elements.
func (g *tiling[F]) rowCopied() int {
	size := int(elem.Size[F]())
	lines := (g.kb*size + asm.LineBytes - 1) / asm.LineBytes
	return (lines | 1) * asm.LineBytes / size
}

// copyRowsA copies the block's rows lo to hi-1 of op(a).
func (g *packer[F]) copyRowsA(lo, hi int) {
	step := g.rowCopied()
	for r := lo; r < hi; r++ {
		copy(g.pa[r*step:][:g.kb], g.a.D[(g.i0+r)*g.a.LD+g.p0:])
	}
}

// copyFour copies kb rows of four panels of w elements each.
func (g *packer[F]) copyFour(dst, src []F, ld, w int) {
	size := elem.Size[F]()
	_, _ = dst[:four*g.kb*w], src[:(g.kb-1)*ld+four*w]
	g.e.packFour((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0])),
		size*uintptr(w), size*uintptr(ld), uintptr(g.kb), size/4*uintptr(w), size*uintptr(w*g.kb))
}

// copyRows copies kb rows of n elements into rows of w, padded with zeros.
func (g *packer[F]) copyRows(dst, src []F, ld, n, w int) {
	words := elem.Size[F]() / 4
	if g.e.packRows != nil {
		_, _ = dst[:g.kb*w], src[:(g.kb-1)*ld+n]
		g.e.packRows((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0])),
			4*words*uintptr(w), 4*words*uintptr(ld), uintptr(g.kb), words*uintptr(n), words*uintptr(w))
		return
	}
	for p := range g.kb {
		row := dst[p*w:][:w]
		copy(row, src[p*ld:][:n])
		clear(row[n:])
	}
}

// aligned returns n elements that start at a cache line.
func aligned[F elem.Float](n int) []F {
	size, line := int(elem.Size[F]()), 64
	x := make([]F, n+line/size)
	at := int(-uintptr(unsafe.Pointer(&x[0]))&uintptr(line-1)) / size
	return x[at : at+n]
}
