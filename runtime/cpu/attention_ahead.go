package cpu

import "unsafe"

// A head's rows lie apart, mostly in the third cache or in memory, and the processor does not guess which ones come
// next. So while a head is worked on, the rows that the next one needs are asked for, some before each product. No bit
// depends on it.
//
// ahead are these rows: n lists, of which the last is asked for first.
type ahead[F Float] struct {
	n     int
	lists [8]struct {
		mat[F]
		rows, cols int
	}
}

// What is asked for at a time, and of a matrix at most: more would push out of the second cache what is worked on.
const (
	askBytes = 128 * lineBytes
	askMost  = 64 << 10
)

// askFor adds rows of x to those that are wanted.
func (w *scratch[F]) askFor(x mat[F], rows, cols int) {
	a := &w.ahead
	if cols == 0 { // values may be of no elements
		return
	}
	if x.h != nil { // two numbers, of an even number of columns, as one
		x, cols = mat[F]{d: unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(x.h))), len(x.h)/2), ld: x.ld / 2}, cols/2
	}
	rows = min(rows, askMost/(cols*int(sizeOf[F]())))
	if rows > 0 && a.n < len(a.lists) {
		l := &a.lists[a.n]
		l.mat, l.rows, l.cols = x, rows, cols
		a.n++
	}
}

// ask asks for some rows.
func (w *scratch[F]) ask() {
	a := &w.ahead
	if a.n == 0 {
		return
	}
	l := &a.lists[a.n-1]
	n := min(max(1, askBytes/(l.cols*int(sizeOf[F]()))), l.rows)
	if k, x := loops32(l.d); k != nil {
		k.AskRows(x, n, l.cols, l.ld)
	}
	l.rows -= n
	if l.rows == 0 {
		a.n--
		return
	}
	l.mat = l.mat.rows(n)
}

// askUnit asks, during a unit of Attention, for what another one needs.
func (w *scratch[F]) askUnit(a *attending[F], unit int) {
	w.ahead.n = 0
	if unit >= a.units || !tuned.heads {
		return
	}
	hd, i0, i1 := a.block(unit)
	lo, hi := hd.span(i0, i1)
	if lo == hi { // the queries see no key, and lo may be behind the last
		return
	}
	w.askFor(hd.v.rows(lo), hi-lo, hd.VDim)
	w.askFor(hd.q.rows(i0), i1-i0, hd.Dim)
	w.askFor(hd.k.rows(lo), hi-lo, hd.Dim)
}

// askGrad is askUnit of AttentionGrad. Rows that are written have to come, too.
func (w *scratch[F]) askGrad(a *attending[F], unit int) {
	w.ahead.n = 0
	if unit >= a.units || !tuned.heads {
		return
	}
	s := &a.s
	hd := a.headOf(unit/s.Heads, unit%s.Heads, 0)
	w.askFor(hd.dv, s.KSeq, s.VDim)
	w.askFor(hd.dk, s.KSeq, s.Dim)
	w.askFor(hd.dq, s.Seq, s.Dim)
	w.askFor(hd.o, s.Seq, s.VDim)
	w.askFor(hd.do, s.Seq, s.VDim)
	w.askFor(hd.q, s.Seq, s.Dim)
	w.askFor(hd.v, s.KSeq, s.VDim)
	w.askFor(hd.k, s.KSeq, s.Dim)
}
