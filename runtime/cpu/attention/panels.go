package attention

import "github.com/planc-dev/planc/runtime/cpu/gemm"

// seen holds the keys of a block that each of a block's queries sees: lo to hi-1. Both increase with the
// query.
type seen struct {
	n      int // keys up to the last one that is seen
	lo, hi [qBlock]int
}

// see finds which of keys j0 to j0+n-1 the rows queries from i0 on see, and reports whether there are any.
func (w *multiplier[F]) see(hd *head[F], i0, rows, j0, n int) bool {
	if first := hd.Pos0 + i0 + 1 - hd.KPos0 - j0; hd.Causal && hd.Window == 0 && hd.Half == 0 &&
		hd.KHalf == 0 && hd.Starts == nil && hd.Ends == nil {
		for i := range rows { // a faster form of the general case below
			w.seen.lo[i], w.seen.hi[i] = 0, max(0, min(first+i, n))
		}
	} else {
		for i := range rows {
			lo, hi := hd.Keys(hd.b, i0+i)
			w.seen.lo[i], w.seen.hi[i] = max(0, min(lo-j0, n)), max(0, min(hi-j0, n))
		}
	}
	w.seen.n = w.seen.hi[rows-1]
	return w.seen.lo[0] < w.seen.n
}

// visible returns the part of row i of the scores x that query i sees, and where it begins. It zeroes the
// rest.
func (w *multiplier[F]) visible(x []F, i int) ([]F, int) {
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
func (w *multiplier[F]) scoresOf(c, a gemm.Mat[F], b *gemm.Packed[F], rows int) {
	if b.InPlace() {
		w.Multiply(gemm.Part[F]{C: c, A: a, B: b.At, M: rows, N: w.seen.n, K: b.Terms})
		return
	}
	x := gemm.PackedRows[F]{CLD: c.LD, A: a, P1: b.Terms}
	for j := 0; j < b.Cols; j += b.PanelCols() {
		if first, end := w.seen.rows(rows, j, j+b.PanelCols()); first < end {
			x.C, x.First, x.Col, x.M = &c.D[first*c.LD+j], a.Address(first*a.LD), j, end-first
			w.multiplyPacked(b, &x)
		}
	}
}

// sumSeen computes c = a·b (+ c if acc). a has a row for each query, which is 0 except for the keys that it
// sees.
func (w *multiplier[F]) sumSeen(c, a gemm.Mat[F], b *gemm.Packed[F], rows int, acc bool) {
	if b.InPlace() {
		w.Multiply(gemm.Part[F]{C: c, A: a, B: b.At, M: rows, N: b.Cols, K: w.seen.n, Acc: acc})
		return
	}
	panel := together * b.PanelRows()
	for i := 0; i < rows; i += panel {
		n := min(panel, rows-i)
		lo, hi := w.seen.lo[i], w.seen.hi[i+n-1]
		if lo >= hi && !acc {
			clearRows(c.Rows(i), n, b.Cols)
		}
		if lo >= hi {
			continue
		}
		lo, p0, p1 := b.TermsOf(lo, hi)
		x := gemm.PackedRows[F]{CLD: c.LD, First: a.Address(i*a.LD + lo), A: a, M: n, P0: p0, P1: p1, Acc: acc}
		for j := 0; j < b.Cols; j += b.PanelCols() {
			x.C, x.Col = &c.D[i*c.LD+j], j
			w.multiplyPacked(b, &x)
		}
	}
}

// sumSeeing computes c = a^T·b for n keys, + c for those that have gradients. a has a row for each query,
// which is 0 except for the keys that it sees. For 16-bit numbers the caller passes a^T, because tiles read
// whole rows of it.
func (w *multiplier[F]) sumSeeing(c, a gemm.Mat[F], b *gemm.Packed[F], n int) {
	a.T = a.H == nil
	fresh := min(w.begun, n)
	if !b.InPlace() {
		w.sumRange(c, a, b, 0, fresh, true)
		w.sumRange(c, a, b, fresh, n, false)
		return
	}
	if fresh < n {
		clearRows(c.Rows(fresh), n-fresh, b.Cols)
	}
	w.Multiply(gemm.Part[F]{C: c, A: a, B: b.At, M: n, N: b.Cols, K: b.Terms, Acc: true})
}

// sumRange is sumSeeing for keys lo to hi-1.
func (w *multiplier[F]) sumRange(c, a gemm.Mat[F], b *gemm.Packed[F], lo, hi int, acc bool) {
	panel := together * b.PanelRows()
	for i := lo; i < hi; i += panel {
		m := min(panel, hi-i)
		first, end := w.seen.rows(b.Rows, i, i+m)
		if first >= end && !acc {
			clearRows(c.Rows(i), m, b.Cols)
		}
		if first >= end {
			continue
		}
		first, p0, p1 := b.TermsOf(first, end)
		at := first*a.LD + i
		if !a.T {
			at = i*a.LD + first
		}
		x := gemm.PackedRows[F]{CLD: c.LD, First: a.Address(at), A: a, M: m, P0: p0, P1: p1, Acc: acc}
		for j := 0; j < b.Cols; j += b.PanelCols() {
			x.C, x.Col = &c.D[i*c.LD+j], j
			w.multiplyPacked(b, &x)
		}
	}
}

// multiplyPacked multiplies rows by a panel of b, and prefetches some of the next head's rows.
func (w *multiplier[F]) multiplyPacked(b *gemm.Packed[F], x *gemm.PackedRows[F]) {
	w.prefetch.ask()
	b.Multiply(&w.strip, x)
}
