package attention

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/vec"
)

// loops32 returns the loops of the ISA in use, if there are any and x has type float32.
func loops32[F elem.Float](x []F) (*vec.Kernels, []float32) {
	row, ok := any(x).([]float32)
	if k := vec.Now(); ok && k != nil {
		return k, row
	}
	return nil, nil
}

// highest returns the maximum of a row of scores. It is NaN if all scores above -Inf are NaN. The weight of
// a NaN is NaN whatever the maximum is.
func highest[F elem.Float](x []F) F {
	k, row := loops32(x)
	if k == nil {
		return elem.Largest(x)
	}
	top := k.Largest(row, float32(math.Inf(-1)))
	if math.IsInf(float64(top), -1) {
		return elem.Largest(x)
	}
	return F(top)
}

// weights computes
//
//	for j := range x { x[j] = exp(scale*x[j]-top); sum += x[j] }
func weights[F elem.Float](x []F, scale F, top float64) (sum float64) {
	if k, row := loops32(x); k != nil {
		return k.ExpSum(row, row, float32(scale), float32(top))
	}
	for j, s := range x {
		e := elem.Exp[F](float64(F(scale*s)) - top)
		sum += e
		x[j] = F(e)
	}
	return sum
}

// gradScores computes
//
//	for j := range p { p[j] = exp(each*p[j]-lse); dp[j] = p[j] * (dp[j]-d) * scale }
func gradScores[F elem.Float](p, dp []F, lse float64, each, d, scale F) {
	if k, row := loops32(p); k != nil {
		k.ExpGrad(row, any(dp).([]float32), float32(each), float32(lse), float32(d), float32(scale))
		return
	}
	for j, x := range p {
		e := F(elem.Exp[F](float64(F(each*x)) - lse))
		p[j] = e
		dp[j] = F(F(e*(dp[j]-d)) * scale)
	}
}

// scaleRows computes
//
//	for i, j := range [len(factors), cols] { x[i,j] *= factors[i] }
func scaleRows[F elem.Float](x gemm.Mat[F], factors []F, cols int) {
	if k, f := loops32(factors); k != nil {
		k.ScaleRows(any(x.D).([]float32), f, cols, x.LD)
		return
	}
	for i, f := range factors {
		row := x.D[i*x.LD:][:cols]
		scaleTo(row, row, f)
	}
}
