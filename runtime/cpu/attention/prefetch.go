package attention

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
)

// A head's rows are not contiguous. They are mostly in the third-level cache or in memory, and the hardware
// prefetcher does not predict them. Therefore, while a head is processed, the rows of the next one are
// prefetched, some before each matmul. This does not affect results.
//
// prefetchesHeads says whether this pays: it does on AMD's Zen 5, but not on Intel's family 6, model 167, whose
// first-level cache handles few outstanding lines (bench/gemm/README.md).
var prefetchesHeads = !asm.IsIntel()

// prefetchList is the list of these rows: n lists, of which the last is prefetched first.
type prefetchList[F elem.Float] struct {
	n     int
	lists [8]struct {
		gemm.Mat[F]
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
func (a *prefetchList[F]) askFor(x gemm.Mat[F], rows, cols int) {
	if cols == 0 { // values may have no elements
		return
	}
	if x.H != nil { // pairs of numbers as one, since the number of columns is even
		pairs := unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(x.H))), len(x.H)/2)
		x, cols = gemm.Mat[F]{D: pairs, LD: x.LD / 2}, cols/2
	}
	rows = min(rows, askMost/(cols*int(elem.Size[F]())))
	if rows > 0 && a.n < len(a.lists) {
		l := &a.lists[a.n]
		l.Mat, l.rows, l.cols = x, rows, cols
		a.n++
	}
}

// ask prefetches some rows.
func (a *prefetchList[F]) ask() {
	if a.n == 0 {
		return
	}
	l := &a.lists[a.n-1]
	n := min(max(1, askBytes/(l.cols*int(elem.Size[F]()))), l.rows)
	if k, x := loops32(l.D); k != nil {
		k.AskRows(x, n, l.cols, l.LD)
	}
	l.rows -= n
	if l.rows == 0 {
		a.n--
		return
	}
	l.Mat = l.Mat.Rows(n)
}

// askUnit lists, for prefetching during a unit of Attention, the operands of another unit.
func (l *prefetchList[F]) askUnit(a *attending[F], unit int) {
	l.n = 0
	if unit >= a.units || !prefetchesHeads {
		return
	}
	hd, i0, i1 := a.block(unit)
	lo, hi := hd.span(hd.b, i0, i1)
	if lo == hi { // the queries see no key, and lo may exceed the last one
		return
	}
	l.askFor(hd.v.Rows(lo), hi-lo, hd.VDim)
	l.askFor(hd.q.Rows(i0), i1-i0, hd.Dim)
	l.askFor(hd.k.Rows(lo), hi-lo, hd.Dim)
}

// askGrad is askUnit for AttentionGrad. Rows that are written are prefetched, too.
func (l *prefetchList[F]) askGrad(a *attending[F], unit int) {
	l.n = 0
	if unit >= a.units || !prefetchesHeads {
		return
	}
	s := &a.s
	hd := a.headOf(unit/s.Heads, unit%s.Heads, 0)
	l.askFor(hd.dv, s.KSeq, s.VDim)
	l.askFor(hd.dk, s.KSeq, s.Dim)
	l.askFor(hd.dq, s.Seq, s.Dim)
	l.askFor(hd.o, s.Seq, s.VDim)
	l.askFor(hd.do, s.Seq, s.VDim)
	l.askFor(hd.q, s.Seq, s.Dim)
	l.askFor(hd.v, s.KSeq, s.VDim)
	l.askFor(hd.k, s.KSeq, s.Dim)
}
