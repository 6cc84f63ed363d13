package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/vec"
)

// loops32 are the loops of the ISA in use, if there are any and x is of float32.
func loops32[F Float](x []F) (*vec.Kernels, []float32) {
	row, ok := any(x).([]float32)
	if k := vec.Now(); ok && k != nil {
		return k, row
	}
	return nil, nil
}

// highest is the maximum of a row of scores: NaN if all of them that are above -Inf are NaN. The weights of a NaN are
// NaN whatever the maximum is.
func highest[F Float](x []F) F {
	k, row := loops32(x)
	if k == nil {
		return largest(x)
	}
	top := k.Largest(row, float32(math.Inf(-1)))
	if math.IsInf(float64(top), -1) {
		return largest(x)
	}
	return F(top)
}

// weights is
//
//	for j := range x { x[j] = exp(x[j]-top); sum += x[j] }
func weights[F Float](x []F, top float64) (sum float64) {
	if k, row := loops32(x); k != nil {
		k.ExpScale(row, row, float32(top), 1)
		return k.Sum(row)
	}
	for j, s := range x {
		e := exp[F](float64(s) - top)
		sum += e
		x[j] = F(e)
	}
	return sum
}

// gradScores is
//
//	for j := range p { p[j] = exp(p[j]-lse); dp[j] = p[j] * (dp[j]-d) * scale }
func gradScores[F Float](p, dp []F, lse float64, d, scale F) {
	if k, row := loops32(p); k != nil {
		k.ExpScale(row, row, float32(lse), 1)
		grad := any(dp).([]float32)
		k.Norm(grad, grad, row, float32(d), float32(scale), 0)
		return
	}
	for j, x := range p {
		e := F(exp[F](float64(x) - lse))
		p[j] = e
		dp[j] = F(F(e*(dp[j]-d)) * scale)
	}
}

// along is the sum of x*y. It writes over w.dp.
func (w *scratch[F]) along(x, y []F) float64 {
	k, row := loops32(x)
	if k == nil || len(x) > len(w.dp) {
		return dot(x, y)
	}
	products := any(w.dp[:len(x)]).([]float32)
	k.Mul(products, row, any(y).([]float32))
	return k.Sum(products)
}
