package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/vec"
)

// What a block's rows go through together, where vec has loops over rows: else row by row, as in attention_row.go.

// plainRows are those loops, if w is of float32 and nothing is done to scores but scaling, of keys from the first on.
func (w *scratch[F]) plainRows(hd *head[F], rows int) (*vec.Kernels, *scratch[float32]) {
	s, ok := any(w).(*scratch[float32])
	if k := vec.Now(); ok && k != nil && hd.Softcap == 0 && hd.slope == 0 && hd.Dropout == 0 && hd.Scale > 0 && w.seen.lo[rows-1] == 0 {
		return k, s
	}
	return nil, nil
}

// weighRows is weigh of so many rows, of which the first is number at: or does nothing, and says so. Without scores before,
// there is nothing that factors are of.
func (w *scratch[F]) weighRows(hd *head[F], rows, at int, before bool) bool {
	k, s := w.plainRows(hd, rows)
	if k == nil {
		return false
	}
	top := s.max[at:][:rows]
	old := s.factor[:copy(s.factor[:], top)]
	k.SoftmaxRows(s.p[:], s.seen.hi[:rows], s.seen.n, pRow, float32(hd.Scale), top, s.own[:])
	if !before {
		copy(s.sum[at:], s.own[:rows])
		return true
	}
	for i, was := range old {
		f := 1.0
		if was != top[i] {
			f = exp[float32](float64(was) - float64(top[i]))
		}
		s.factor[i], s.sum[at+i] = float32(f), float64(s.sum[at+i]*f)+s.own[i]
	}
	return true
}

// gradRows is weighGrad of so many rows: or does nothing, and says so.
func (w *scratch[F]) gradRows(hd *head[F], rows int) bool {
	k, s := w.plainRows(hd, rows)
	if k == nil {
		return false
	}
	seen := &s.seeing
	for i, lse := range s.max[:rows] {
		if seen[i] = s.seen.hi[i]; math.IsInf(float64(lse), -1) {
			seen[i] = 0
		}
	}
	scale := float32(hd.Scale)
	k.GradRows(s.p[:], s.dp[:], seen[:rows], s.seen.n, pRow, scale, scale, s.max[:], s.inner[:])
	return true
}

// innerRows is
//
//	for i := range rows { w.inner[i] = sum_{j < cols} x[i,j]*y[i,j] }
func (w *scratch[F]) innerRows(x, y mat[F], rows, cols int) {
	if k, d := loops32(w.inner[:rows]); k != nil {
		k.DotRows(d, any(x.d).([]float32), any(y.d).([]float32), cols, x.ld, y.ld)
		return
	}
	for i := range rows {
		w.inner[i] = F(dot(x.d[i*x.ld:][:cols], y.d[i*y.ld:][:cols]))
	}
}
