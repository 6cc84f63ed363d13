package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/vec"
)

// deviations computes the means of rows (0 if they are not subtracted) and the inverses of their
// deviations, for as many rows as mean has elements.
func deviations(k *vec.Kernels, mean, rstd, x []float32, cols int, eps float32, centred bool) {
	if centred {
		k.Moments(mean, rstd, x, cols, eps)
		return
	}
	clear(mean)
	k.MeanSquares(rstd, x, cols, eps)
}

// normRows computes LayerNorm, or RMSNorm if the mean is not subtracted, with the results of deviations.
func normRows(k *vec.Kernels, y, x, gain, bias, mean, rstd []float32, eps, base float32, centred bool) {
	deviations(k, mean, rstd, x, len(gain), eps, centred)
	if bias == nil {
		k.Norm(y, x, gain, mean, rstd, base)
	} else {
		k.NormBias(y, x, gain, bias, mean, rstd, base)
	}
}

// normRowsDX computes the gradient of normRows with respect to x. A mean that is not subtracted has no
// gradient.
func normRowsDX(k *vec.Kernels, dx, dy, x, gain, mean, rstd []float32, eps, base float32, centred bool) {
	deviations(k, mean, rstd, x, len(gain), eps, centred)
	k.NormGrad(dx, dy, x, gain, mean, rstd, base, float32(flag(centred)))
}

func (v vectors) layerNorm(y, x, gain, bias []float32, rows, cols int, eps float64) {
	norm(y, x, gain, bias, rows, cols, eps, 0, true)
}

func (v vectors) rmsNorm(y, x, gain []float32, rows, cols int, eps float64, unit bool) {
	norm(y, x, gain, nil, rows, cols, eps, base[float32](unit), false)
}

// norm computes LayerNorm, or RMSNorm if the mean is not subtracted.
func norm(y, x, gain, bias []float32, rows, cols int, eps float64, base float32, centred bool) {
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		cols := s.i[0]
		normRows(vec.Now(), s.x[0][lo*cols:], s.x[1][lo*cols:], s.x[2], s.x[3], s.own[lo:hi], s.own[s.n+lo:s.n+hi],
			s.f[0], s.f[1], s.i[1] == 1)
	})
	s.x, s.i, s.f = [5][]float32{y, x, gain[:cols], bias}, [4]int{cols, flag(centred)}, [3]float32{float32(eps), base}
	s.room(2 * rows)
	s.call()
}

func (v vectors) layerNormDX(dx, dy, x, gain []float32, rows, cols int, eps float64) {
	normDX(dx, dy, x, gain, rows, cols, eps, 0, true)
}

func (v vectors) rmsNormDX(dx, dy, x, gain []float32, rows, cols int, eps float64, unit bool) {
	normDX(dx, dy, x, gain, rows, cols, eps, base[float32](unit), false)
}

// normDX computes LayerNormDX, or RMSNormDX if the mean is not subtracted.
func normDX(dx, dy, x, gain []float32, rows, cols int, eps float64, base float32, centred bool) {
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		at := lo * s.i[0]
		normRowsDX(vec.Now(), s.x[0][at:], s.x[1][at:], s.x[2][at:], s.x[3], s.own[lo:hi], s.own[s.n+lo:s.n+hi],
			s.f[0], s.f[1], s.i[1] == 1)
	})
	s.x, s.i, s.f = [5][]float32{dx, dy, x, gain[:cols]}, [4]int{cols, flag(centred)}, [3]float32{float32(eps), base}
	s.room(2 * rows)
	s.call()
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (v vectors) layerNormDGain(dgain, dy, x []float32, rows, cols int, eps float64, acc bool) {
	normDGain(dgain, dy, x, rows, cols, eps, true, acc)
}

func (v vectors) rmsNormDGain(dgain, dy, x []float32, rows, cols int, eps float64, acc bool) {
	normDGain(dgain, dy, x, rows, cols, eps, false, acc)
}

// normDGain computes the moments of rows and sums columns: of few rows first all moments, of many rows in
// bands that are read once.
func normDGain(dgain, dy, x []float32, rows, cols int, eps float64, centred, acc bool) {
	dgain = dgain[:cols]
	if !acc {
		clear(dgain)
	}
	if rows > partRowsSummed {
		s := summing(rows, cols, func(s *sweep, lo, hi int) {
			k, cols, to := vec.Now(), s.i[0], s.summed(lo)
			for ; lo < hi; lo += bandRows {
				end := min(lo+bandRows, hi)
				mean, rstd := s.own[lo:end], s.own[s.n+lo:s.n+end]
				deviations(k, mean, rstd, s.x[2][lo*cols:], cols, s.f[0], s.i[1] == 1)
				k.GainGrad(to, s.x[1][lo*cols:], s.x[2][lo*cols:], mean, rstd, cols)
			}
		})
		s.x[1], s.x[2], s.i[1], s.f[0] = dy[:rows*cols], x[:rows*cols], flag(centred), float32(eps)
		s.callSumming(dgain)
		return
	}
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		deviations(vec.Now(), s.own[lo:hi], s.own[s.n+lo:s.n+hi], s.x[2][lo*s.i[0]:], s.i[0], s.f[0], s.i[1] == 1)
	})
	s.x, s.i, s.f[0] = [5][]float32{dgain, dy, x}, [4]int{cols, flag(centred)}, float32(eps)
	s.room(2 * rows)
	team.Run(s, s.parts())
	t := sweepOf(cols, rows, func(s *sweep, lo, hi int) {
		mean, rstd := s.x[3], s.x[4]
		vec.Now().GainGrad(s.x[0][lo:hi], s.x[1][lo:], s.x[2][lo:], mean, rstd, s.n)
	}).aligned(columnUnit)
	t.x = [5][]float32{dgain, dy, x, s.own[:rows], s.own[rows:]}
	t.call()
	s.end()
}
