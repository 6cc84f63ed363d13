package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// packed is op(b) of attention's matmuls: rows of a head or their transpose, which are multiplied by many
// rows of op(a). If there is an engine, its panels are packed once; otherwise b is read in place. For
// 16-bit numbers a term is a pair, and if their number is odd, the second number of the last pair is zero.
type packed[F Float] struct {
	e           *engine[F]
	at          mat[F]
	rows        int // of at, or of its transpose
	terms, cols int
	d           []F // [panels][terms][columns of a panel]
}

// pack packs op(b) with the given numbers of terms and columns.
func (p *packed[F]) pack(b mat[F], terms, cols int) {
	p.e, p.at, p.rows, p.terms, p.cols = engineOf[F]().whole(), b, terms, terms, cols
	if b.h != nil {
		p.e, p.terms = tilesOf[F](), (terms+1)/2
	}
	if p.e == nil {
		return
	}
	g := borrowGemm(p.e)
	g.b, g.p0, g.kb, g.j0, g.nb, g.directB = b, 0, p.terms, 0, cols, false
	p.d = room(p.d, g.bPanels()*p.e.cols*p.terms)
	own := g.pb
	g.pb = p.d
	if b.h != nil && terms%2 == 1 {
		g.packOdd(terms)
	} else {
		for i := range groups(g.bPanels()) {
			g.packB(i)
		}
	}
	g.pb = own
	g.giveBack()
}

// seen holds the keys of a block that each of a block's queries sees: lo to hi-1. Both increase with the
// query.
type seen struct {
	n      int // keys up to the last one that is seen
	lo, hi [qBlock]int
}

// see finds which of keys j0 to j0+n-1 the rows queries from i0 on see, and reports whether there are any.
func (w *scratch[F]) see(hd *head[F], i0, rows, j0, n int) bool {
	if first := hd.Pos0 + i0 + 1 - hd.KPos0 - j0; hd.Causal && hd.Window == 0 && hd.Half == 0 && hd.KHalf == 0 {
		for i := range rows { // a faster form of the general case below
			w.seen.lo[i], w.seen.hi[i] = 0, max(0, min(first+i, n))
		}
	} else {
		for i := range rows {
			lo, hi := hd.keys(i0 + i)
			w.seen.lo[i], w.seen.hi[i] = max(0, min(lo-j0, n)), max(0, min(hi-j0, n))
		}
	}
	w.seen.n = w.seen.hi[rows-1]
	return w.seen.lo[0] < w.seen.n
}

// visible returns the part of row i of the scores x that query i sees, and where it begins. It zeroes the
// rest.
func (w *scratch[F]) visible(x []F, i int) ([]F, int) {
	row, lo, hi := x[i*pRow:][:w.seen.n], w.seen.lo[i], w.seen.hi[i]
	clear(row[:lo])
	clear(row[hi:])
	return row[lo:hi], lo
}

// rows returns the range of the n queries that see any of keys lo to hi-1: first to end-1.
func (s *seen) rows(n, lo, hi int) (first, end int) {
	for end = n; end > 0 && s.lo[end-1] >= hi; end-- {
	}
	for first < end && s.hi[first] <= lo {
		first++
	}
	return first, end
}

// together is the number of panels of op(a)'s rows that one call of the engine multiplies if they need
// different terms.
const together = 2

// scoresOf computes c = a·b for the keys that queries see. Other elements are undefined.
func (w *scratch[F]) scoresOf(c, a mat[F], b *packed[F], rows int) {
	e := b.e
	if e == nil {
		w.gemm(c, a, b.at, rows, w.seen.n, b.terms, false)
		return
	}
	for j := 0; j < b.cols; j += e.cols {
		if first, end := w.seen.rows(rows, j, j+e.cols); first < end {
			w.multiplyPacked(&c.d[first*c.ld+j], c.ld, a.address(first*a.ld), a, b, j, end-first, 0, b.terms, false)
		}
	}
}

// sumSeen computes c = a·b (+ c if acc). a has a row for each query, which is 0 except for the keys that it
// sees.
func (w *scratch[F]) sumSeen(c, a mat[F], b *packed[F], rows int, acc bool) {
	e := b.e
	if e == nil {
		w.gemm(c, a, b.at, rows, b.cols, w.seen.n, acc)
		return
	}
	for i := 0; i < rows; i += together * e.rows {
		n := min(together*e.rows, rows-i)
		lo, hi := w.seen.lo[i], w.seen.hi[i+n-1]
		if lo >= hi && !acc {
			clearRows(c.rows(i), n, b.cols)
		}
		if lo >= hi {
			continue
		}
		lo, p0, p1 := b.termsOf(lo, hi)
		for j := 0; j < b.cols; j += e.cols {
			w.multiplyPacked(&c.d[i*c.ld+j], c.ld, a.address(i*a.ld+lo), a, b, j, n, p0, p1, acc)
		}
	}
}

// sumSeeing computes c = a^T·b for n keys, + c for those that have gradients. a has a row for each query,
// which is 0 except for the keys that it sees. For 16-bit numbers the caller passes a^T, because tiles read
// whole rows of it.
func (w *scratch[F]) sumSeeing(c, a mat[F], b *packed[F], n int) {
	a.t = a.h == nil
	fresh := min(w.begun, n)
	if b.e != nil {
		w.sumRange(c, a, b, 0, fresh, true)
		w.sumRange(c, a, b, fresh, n, false)
		return
	}
	if fresh < n {
		clearRows(c.rows(fresh), n-fresh, b.cols)
	}
	w.gemm(c, a, b.at, n, b.cols, b.terms, true)
}

// sumRange is sumSeeing for keys lo to hi-1.
func (w *scratch[F]) sumRange(c, a mat[F], b *packed[F], lo, hi int, acc bool) {
	e := b.e
	for i := lo; i < hi; i += together * e.rows {
		m := min(together*e.rows, hi-i)
		first, end := w.seen.rows(b.rows, i, i+m)
		if first >= end && !acc {
			clearRows(c.rows(i), m, b.cols)
		}
		if first >= end {
			continue
		}
		first, p0, p1 := b.termsOf(first, end)
		at := first*a.ld + i
		if !a.t {
			at = i*a.ld + first
		}
		for j := 0; j < b.cols; j += e.cols {
			w.multiplyPacked(&c.d[i*c.ld+j], c.ld, a.address(at), a, b, j, m, p0, p1, acc)
		}
	}
}

// multiplyPacked computes c = a·b (+ c if acc) for m rows, the columns of b's panel that begins at j, and
// b's terms p0 to p1-1, the first of which belongs to a's first.
func (w *scratch[F]) multiplyPacked(c *F, cld int, first unsafe.Pointer, a mat[F], b *packed[F],
	j, m, p0, p1 int, acc bool) {
	w.ask()
	s, e := &w.strip, b.e
	size, rows, ld := elem.Size[F](), uintptr(e.rows), uintptr(a.ld)*a.size()
	s.A, s.AI, s.AP, s.Panel, s.Near = first, ld, size, rows*ld, e.together
	if a.t {
		s.AI, s.AP, s.Panel = size, ld, rows*size
	}
	s.C, s.CS = unsafe.Pointer(c), uintptr(cld)*size
	s.From, s.FS, s.Acc = uintptr(s.C), s.CS, 0
	if acc {
		s.Acc = 1
	}
	s.B, s.BP = unsafe.Pointer(&b.d[j*b.terms+p0*e.cols]), uintptr(e.cols)*size
	s.Next, s.Step = uintptr(s.B), 0
	s.M, s.K = m, p1-p0
	s.SetCols(min(e.cols, b.cols-j), int(size/4))
	e.multiply((*byte)(unsafe.Pointer(s)))
}
