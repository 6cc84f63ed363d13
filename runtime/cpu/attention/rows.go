package attention

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/vec"
)

// Operations on all rows of a block, if vec has loops over rows. Otherwise the rows are processed one by
// one, as in attention_row.go.

// plainRows returns these loops if w has type float32, the scores are only scaled, and the visible keys
// start at the first.
func (w *worker[F]) plainRows(hd *head[F], rows int) (*vec.Kernels, *worker[float32]) {
	s, ok := any(w).(*worker[float32])
	if k := vec.Now(); ok && k != nil && hd.Softcap == 0 && hd.slope == 0 && hd.Dropout == 0 && hd.Scale > 0 &&
		w.seen.lo[rows-1] == 0 {
		return k, s
	}
	return nil, nil
}

// weighElems is the number of scores whose maxima and exponentials are computed at a time: they fit the
// first-level cache.
const weighElems = 4096

// weighRows is weigh for rows rows, which have index at in max and sum. It returns false, and does nothing,
// if there are no loops over rows. If before is false there are no previous results, and no factors are
// computed.
func (w *worker[F]) weighRows(hd *head[F], rows, at int, before bool) bool {
	k, s := w.plainRows(hd, rows)
	if k == nil {
		return false
	}
	top := s.max[at:][:rows]
	old := s.factor[:copy(s.factor[:], top)]
	scale, each := float32(hd.Scale), max(1, weighElems/s.seen.n)
	for i := 0; i < rows; i += each {
		n := min(i+each, rows)
		k.TopRows(top[i:n], s.p[i*pRow:], s.seen.hi[i:n], pRow, scale)
		k.ExpRows(s.p[i*pRow:], s.seen.hi[i:n], s.seen.n, pRow, scale, top[i:n], s.own[i:])
	}
	if !before {
		copy(s.sum[at:], s.own[:rows])
		return true
	}
	for i, was := range old {
		f := 1.0
		if was != top[i] {
			f = elem.Exp[float32](float64(was) - float64(top[i]))
		}
		s.factor[i], s.sum[at+i] = float32(f), float64(s.sum[at+i]*f)+s.own[i]
	}
	return true
}

// gradRows is weighGrad for rows rows. It returns false, and does nothing, if there are no loops over rows.
func (w *worker[F]) gradRows(hd *head[F], rows int) bool {
	k, s := w.plainRows(hd, rows)
	if k == nil {
		return false
	}
	seen := &s.seeing
	for i, lse := range s.max[:rows] {
		seen[i] = s.seen.hi[i]
		if math.IsInf(float64(lse), -1) {
			seen[i] = 0
		}
	}
	scale := float32(hd.Scale)
	k.GradRows(s.p[:], s.dp[:], seen[:rows], s.seen.n, pRow, scale, scale, s.max[:], s.inner[:])
	return true
}

// logRows computes, for rows rows with index at in max and sum, the logarithm of the sum of exponentials
// times e^max (w.inner), and 1/sum (w.factor). A row without scores gets -Inf and 1.
func (w *worker[F]) logRows(at, rows int) {
	if k, lse := loops32(w.inner[:]); k != nil {
		s := any(w).(*worker[float32])
		n := (rows + 7) &^ 7
		k.LogRows(lse, s.factor[:], s.max[at:][:n], s.sum[at:][:n])
		return
	}
	for i := range rows {
		l, f := math.Inf(-1), 1.0
		if sum := w.sum[at+i]; sum > 0 || sum != sum {
			l, f = float64(w.max[at+i])+rng.Log(sum), 1/sum
		}
		w.inner[i], w.factor[i] = F(l), F(f)
	}
}

// innerRows computes
//
//	for i := range rows { w.inner[i] = sum_{j < cols} x[i,j]*y[i,j] }
func (w *worker[F]) innerRows(x, y gemm.Mat[F], rows, cols int) {
	if k, d := loops32(w.inner[:rows]); k != nil {
		k.DotRows(d, any(x.D).([]float32), any(y.D).([]float32), cols, x.LD, y.LD)
		return
	}
	for i := range rows {
		w.inner[i] = F(elem.Dot(x.D[i*x.LD:][:cols], y.D[i*y.LD:][:cols]))
	}
}
