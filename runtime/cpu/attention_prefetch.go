package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// A head's rows are not contiguous. They are mostly in the third-level cache or in memory, and the hardware
// prefetcher does not predict them. Therefore, while a head is processed, the rows of the next one are
// prefetched, some before each matmul. This does not affect results.
//
// prefetchList is the list of these rows: n lists, of which the last is prefetched first.
type prefetchList[F Float] struct {
	n     int
	lists [8]struct {
		mat[F]
		rows, cols int
	}
}

// Limits for what is prefetched at a time, and of a matrix. More would evict the current operands from the
// second-level cache.
const (
	askBytes = 128 * asm.LineBytes
	askMost  = 64 << 10
)

// askFor adds rows of x to the list.
func (w *scratch[F]) askFor(x mat[F], rows, cols int) {
	a := &w.prefetch
	if cols == 0 { // values may have no elements
		return
	}
	if x.h != nil { // pairs of numbers as one, since the number of columns is even
		x, cols = mat[F]{d: unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(x.h))), len(x.h)/2), ld: x.ld / 2}, cols/2
	}
	rows = min(rows, askMost/(cols*int(elem.Size[F]())))
	if rows > 0 && a.n < len(a.lists) {
		l := &a.lists[a.n]
		l.mat, l.rows, l.cols = x, rows, cols
		a.n++
	}
}

// ask prefetches some rows.
func (w *scratch[F]) ask() {
	a := &w.prefetch
	if a.n == 0 {
		return
	}
	l := &a.lists[a.n-1]
	n := min(max(1, askBytes/(l.cols*int(elem.Size[F]()))), l.rows)
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

// askUnit lists, for prefetching during a unit of Attention, the operands of another unit.
func (w *scratch[F]) askUnit(a *attending[F], unit int) {
	w.prefetch.n = 0
	if unit >= a.units || !tuned.heads {
		return
	}
	hd, i0, i1 := a.block(unit)
	lo, hi := hd.span(i0, i1)
	if lo == hi { // the queries see no key, and lo may exceed the last one
		return
	}
	w.askFor(hd.v.rows(lo), hi-lo, hd.VDim)
	w.askFor(hd.q.rows(i0), i1-i0, hd.Dim)
	w.askFor(hd.k.rows(lo), hi-lo, hd.Dim)
}

// askGrad is askUnit for AttentionGrad. Rows that are written are prefetched, too.
func (w *scratch[F]) askGrad(a *attending[F], unit int) {
	w.prefetch.n = 0
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
