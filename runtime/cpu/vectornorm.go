package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/vec"
)

// A norm's row in float32: its mean, 0 if that is not subtracted, and the inverse of its deviation.
func rowMoments(k *vec.Kernels, x []float32, eps float32, centred bool) (mean, rstd float32) {
	var square float32
	if centred {
		mean, square = k.Moments(x)
	} else {
		square = k.MeanSquare(x)
	}
	return mean, 1 / float32(math.Sqrt(float64(square+eps)))
}

func (v vectors) layerNorm(y, x, gain, bias []float32, rows, cols int, eps float64) {
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		k, cols := vec.Now(), s.i[0]
		for ; lo < hi; lo++ {
			y, x := s.x[0][lo*cols:][:cols], s.x[1][lo*cols:][:cols]
			mean, rstd := rowMoments(k, x, s.f[0], true)
			if s.x[3] == nil {
				k.Norm(y, x, s.x[2], mean, rstd, 0)
			} else {
				k.NormBias(y, x, s.x[2], s.x[3], mean, rstd, 0)
			}
		}
	})
	s.x, s.i[0], s.f[0] = [5][]float32{y, x, gain[:cols], bias}, cols, float32(eps)
	s.call()
}

func (v vectors) rmsNorm(y, x, gain []float32, rows, cols int, eps float64, unit bool) {
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		k, cols := vec.Now(), s.i[0]
		for ; lo < hi; lo++ {
			x := s.x[1][lo*cols:][:cols]
			_, rstd := rowMoments(k, x, s.f[0], false)
			k.Norm(s.x[0][lo*cols:][:cols], x, s.x[2], 0, rstd, s.f[1])
		}
	})
	s.x, s.i[0], s.f = [5][]float32{y, x, gain[:cols]}, cols, [3]float32{float32(eps), base[float32](unit)}
	s.call()
}

func (v vectors) layerNormDX(dx, dy, x, gain []float32, rows, cols int, eps float64) {
	normDX(dx, dy, x, gain, rows, cols, eps, 0, true)
}

func (v vectors) rmsNormDX(dx, dy, x, gain []float32, rows, cols int, eps float64, unit bool) {
	normDX(dx, dy, x, gain, rows, cols, eps, base[float32](unit), false)
}

// normDX is LayerNormDX, or RMSNormDX if the mean is not subtracted: then it has no gradient.
func normDX(dx, dy, x, gain []float32, rows, cols int, eps float64, base float32, centred bool) {
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		k, cols, gain, base := vec.Now(), s.i[0], s.x[3], s.f[1]
		for ; lo < hi; lo++ {
			at := lo * cols
			normVectorsDX(k, s.x[0][at:at+cols], s.x[1][at:at+cols], s.x[2][at:at+cols], gain, s.f[0], base, s.i[1] == 1)
		}
	})
	s.x, s.i, s.f = [5][]float32{dx, dy, x, gain[:cols]}, [4]int{cols, flag(centred)}, [3]float32{float32(eps), base}
	s.call()
}

// normVectorsDX is a row of normDX.
func normVectorsDX(k *vec.Kernels, dx, dy, x, gain []float32, eps, base float32, centred bool) {
	mean, rstd := rowMoments(k, x, eps, centred)
	plain, along := k.NormSums(dy, x, gain, mean, rstd, base)
	if !centred {
		plain = 0
	}
	k.NormGrad(dx, dy, x, gain, mean, rstd, base, plain, along)
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

// normDGain computes all rows' moments, then sums columns.
func normDGain(dgain, dy, x []float32, rows, cols int, eps float64, centred, acc bool) {
	if dgain = dgain[:cols]; !acc {
		clear(dgain)
	}
	s := sweepOf(rows, cols, func(s *sweep, lo, hi int) {
		for k := vec.Now(); lo < hi; lo++ {
			s.own[lo], s.own[s.n+lo] = rowMoments(k, s.x[2][lo*s.i[0]:][:s.i[0]], s.f[0], s.i[1] == 1)
		}
	})
	s.x, s.i, s.f[0] = [5][]float32{dgain, dy, x}, [4]int{cols, flag(centred)}, float32(eps)
	s.room(2 * rows)
	run(s, s.parts())
	t := sweepOf(cols, rows, func(s *sweep, lo, hi int) {
		mean, rstd := s.x[3], s.x[4]
		vec.Now().GainGrad(s.x[0][lo:hi], s.x[1][lo:], s.x[2][lo:], mean, rstd, s.n)
	}).aligned(columnUnit)
	t.x = [5][]float32{dgain, dy, x, s.own[:rows], s.own[rows:]}
	t.call()
	s.end()
}
