package vec

import "sync/atomic"

// Kernels holds the loops of an instruction set. Every field is set.
type Kernels struct {
	// Lanes is the number of float32s in a vector.
	Lanes int

	// Add computes
	//	for i := range y { y[i] = a[i] + b[i] }
	Add func(y, a, b []float32)
	// Sub computes
	//	for i := range y { y[i] = a[i] - b[i] }
	Sub func(y, a, b []float32)
	// Mul computes
	//	for i := range y { y[i] = a[i] * b[i] }
	Mul func(y, a, b []float32)
	// Scale computes
	//	for i := range y { y[i] = c * a[i] }
	Scale func(y, a []float32, c float32)

	// Exp computes
	//	for i := range y { y[i] = e^a[i] }
	Exp func(y, a []float32)
	// Gelu computes
	//	for i := range y { y[i] = a[i] / (1 + e^-2u), u = sqrt(2/π)*(a[i] + 0.044715*a[i]^3) }
	Gelu func(y, a []float32)
	// GeluGrad computes
	//	for i := range y { y[i] = dy[i] * gelu'(a[i]) }
	GeluGrad func(y, dy, a []float32)
	// Silu computes
	//	for i := range y { y[i] = a[i] / (1 + e^-a[i]) }
	Silu func(y, a []float32)
	// SiluGrad computes
	//	for i := range y { y[i] = dy[i] * silu'(a[i]) }
	SiluGrad func(y, dy, a []float32)
	// SiluMul computes
	//	for i := range y { y[i] = b[i] * a[i]/(1 + e^-a[i]) }
	SiluMul func(y, a, b []float32)
	// SiluMulGrad computes
	//	for i := range da { da[i], db[i] = dy[i]*b[i] * silu'(a[i]), dy[i] * a[i]/(1 + e^-a[i]) }
	// The bits are those of Mul, SiluGrad and Silu.
	SiluMulGrad func(da, db, dy, a, b []float32)
	// GeluErf computes
	//	for i := range y { y[i] = a[i] * erfc(-a[i]/sqrt(2))/2 }
	GeluErf func(y, a []float32)
	// GeluErfGrad computes
	//	for i := range y { y[i] = dy[i] * (p + a[i]*e^(-a[i]^2/2)/sqrt(2π)), p = erfc(-a[i]/sqrt(2))/2 }
	GeluErfGrad func(y, dy, a []float32)
	// Sigmoid computes
	//	for i := range y { y[i] = 1 / (1 + e^-a[i]) }
	Sigmoid func(y, a []float32)
	// SigmoidGrad computes
	//	for i := range y { y[i] = dy[i] * s*(1-s), s = 1/(1 + e^-a[i]) }
	SigmoidGrad func(y, dy, a []float32)
	// Softcap computes
	//	for i := range y { y[i] = cap * tanh(a[i]*inverse) }
	Softcap func(y, a []float32, cap, inverse float32)
	// SoftcapGrad computes
	//	for i := range y { y[i] = dy[i] * (1 - tanh(a[i]*inverse)^2) }
	SoftcapGrad func(y, dy, a []float32, inverse float32)
	// Relu computes
	//	for i := range y { y[i] = max(a[i], 0) }
	Relu func(y, a []float32)
	// ReluGrad computes
	//	for i := range y { y[i] = dy[i] if a[i] > 0, else 0*dy[i] }
	ReluGrad func(y, dy, a []float32)

	// AddRows computes
	//	for r, j := range [rows, cols] { i := r*stride + j; y[i] = a[i] + b[i] }
	AddRows func(y, a, b []float32, rows, cols, stride int)
	// GeluRows computes
	//	for r, j := range [rows, cols] { i := r*stride + j; y[i] = gelu(a[i]) }
	// with the same bits as Gelu.
	GeluRows func(y, a []float32, rows, cols, stride int)
	// GeluGradRows computes
	//	for r, j := range [rows, cols] { i := r*stride + j; y[i] = dy[i] * gelu'(a[i]) }
	// with the same bits as GeluGrad.
	GeluGradRows func(y, dy, a []float32, rows, cols, stride int)

	// Sum computes
	//	for i := range x { s += x[i] }
	// in float64.
	Sum func(x []float32) (s float64)
	// SumSquares computes
	//	for i := range x { s += x[i]*x[i] }
	// in float64.
	SumSquares func(x []float32) (s float64)
	// SumRows computes
	//	for j := range out { out[j] += sum_{i < rows} x[i*stride+j] }
	// with the sums in float64.
	SumRows func(out, x []float32, rows, stride int)
	// Largest computes
	//	top = least; for i := range x { top = max(top, x[i]) }
	// ignoring NaN.
	Largest func(x []float32, least float32) (top float32)
	// SumExp computes
	//	for i := range x { s += e^(x[i]-shift) }
	// with the sum in float64.
	SumExp func(x []float32, shift float32) (s float64)
	// ExpPart computes
	//	for i := range y { y[i] = e^(a[i]-shift); s += y[i] }
	// with the sum in float64 of sums of up to four in float32. No a[i] is above shift.
	ExpPart func(y, a []float32, shift float32) (s float64)
	// ExpScale computes
	//	for i := range y { y[i] = factor * e^(a[i]-shift) }
	ExpScale func(y, a []float32, shift, factor float32)

	// ExpSum computes
	//	for i := range y { y[i] = e^(scale*a[i]-shift); s += y[i] }
	// with the sum in float64.
	ExpSum func(y, a []float32, scale, shift float32) (s float64)
	// ExpGrad computes
	//	for i := range p { p[i] = e^(scale*p[i]-shift); dp[i] = p[i] * (dp[i]-d) * factor }
	ExpGrad func(p, dp []float32, scale, shift, d, factor float32)
	// ScaleRows computes
	//	for i, j := range [len(factors), cols] { y[i*stride+j] *= factors[i] }
	ScaleRows func(y, factors []float32, cols, stride int)
	// TopRows computes
	//	for i, n := range seen { for j := range n { top[i] = max(top[i], scale*x[i*stride+j]) } }
	// ignoring NaN. scale must be above 0.
	TopRows func(top, x []float32, seen []int, stride int, scale float32)
	// ExpRows computes
	//	for i, n := range seen {
	//		row := x[i*stride:][:cols]
	//		for j := range n { row[j] = e^(scale*row[j]-top[i]) }
	//		clear(row[n:]); sum[i] = the sum of row
	//	}
	// where the exponential of -Inf is 0 whatever top[i] is, and sums in float64. No scale*row[j] is above top[i].
	ExpRows func(x []float32, seen []int, cols, stride int, scale float32, top []float32, sum []float64)
	// LogRows computes
	//	for i := range sum {
	//		lse[i], inverse[i] = top[i] + log(sum[i]), 1/sum[i]
	//		if sum[i] == 0 { lse[i], inverse[i] = -Inf, 1 }
	//	}
	// in float64, with rng's logarithm. The number of sums is a multiple of 8. Each is 0, at least 2^-1022, or NaN.
	LogRows func(lse, inverse, top []float32, sum []float64)
	// GradRows computes
	//	for i := range seen {
	//		row, grad, n := p[i*stride:][:cols], dp[i*stride:][:cols], seen[i]
	//		for j := range n {
	//			row[j] = e^(scale*row[j]-shift[i])
	//			grad[j] = row[j] * (grad[j]-d[i]) * factor
	//		}
	//		clear(row[n:]); clear(grad[n:])
	//	}
	GradRows func(p, dp []float32, seen []int, cols, stride int, scale, factor float32, shift, d []float32)
	// DotRows computes
	//	for i := range d { d[i] = sum_{j < cols} x[i*stride+j]*y[i*yStride+j] }
	// with sums in float64.
	DotRows func(d, x, y []float32, cols, stride, yStride int)
	// AskRows computes
	//	for i := range rows { prefetch x[i*stride:][:cols] }
	// into the second-level cache. Nothing is read, and the rows need not exist.
	AskRows func(x []float32, rows, cols, stride int)

	// Moments computes
	//	for i := range mean {
	//		row, square := x[i*cols:][:cols], 0
	//		for j := range row { mean[i] += row[j]/cols }
	//		for j := range row { square += (row[j]-mean[i])^2/cols }
	//		rstd[i] = 1/sqrt(square+eps)
	//	}
	Moments func(mean, rstd, x []float32, cols int, eps float32)
	// MeanSquares computes
	//	for i := range rstd {
	//		row, square := x[i*cols:][:cols], 0
	//		for j := range row { square += row[j]^2/cols }
	//		rstd[i] = 1/sqrt(square+eps)
	//	}
	MeanSquares func(rstd, x []float32, cols int, eps float32)
	// Norm computes
	//	for i, j := range [len(mean), len(gain)] { y[i,j] = (x[i,j]-mean[i])*rstd[i] * (base+gain[j]) }
	Norm func(y, x, gain, mean, rstd []float32, base float32)
	// NormBias computes
	//	for i, j := range [len(mean), len(gain)] { y[i,j] = (x[i,j]-mean[i])*rstd[i] * (base+gain[j]) + bias[j] }
	NormBias func(y, x, gain, bias, mean, rstd []float32, base float32)
	// NormGrad computes
	//	for i := range mean {
	//		plain, along := 0, 0
	//		for j := range gain {
	//			g := dy[i,j] * (base+gain[j])
	//			plain += centred * g/len(gain)
	//			along += g * (x[i,j]-mean[i])*rstd[i]/len(gain)
	//		}
	//		for j := range gain { dx[i,j] = rstd[i] * (dy[i,j]*(base+gain[j]) - plain -
	//		(x[i,j]-mean[i])*rstd[i]*along) }
	//	}
	// centred is 1, or 0 for a norm that does not subtract the mean.
	NormGrad func(dx, dy, x, gain, mean, rstd []float32, base, centred float32)
	// GainGrad computes
	//	for j := range out { out[j] += sum_i dy[i*stride+j] * (x[i*stride+j]-mean[i])*rstd[i] }
	// over the rows i of mean, with the sums in float64.
	GainGrad func(out, dy, x, mean, rstd []float32, stride int)

	// Rotate computes
	//	for i, j := range [rows, len(cos)] {
	//		a, b := x[i*stride+j], x[i*stride+half+j]
	//		y[i*stride+j], y[i*stride+half+j] = a*cos[j]-b*sin[j], b*cos[j]+a*sin[j]
	//	}
	Rotate func(cos, sin, y, x []float32, rows, stride, half int)
	// Drop computes
	//	for i := range y { y[i] = factor * x[i] if mix(mix(first+i*golden)^turned)>>11 >= least, else 0 }
	// with golden and mix of package rng; least is at most 1<<53.
	Drop func(y, x []float32, first, turned, least uint64, factor float32)

	// FromBF16 computes
	//	for i := range y { y[i] = the bfloat16 a[i] }
	// This and the other conversions process multiples of Lanes elements.
	FromBF16 func(y []float32, a []uint16)
	// FromF16 computes
	//	for i := range y { y[i] = the float16 a[i] }
	FromF16 func(y []float32, a []uint16)
	// ToBF16 computes
	//	for i := range y { y[i] = the bfloat16 nearest to a[i], ties to even }
	ToBF16 func(y []uint16, a []float32)
	// ToF16 computes
	//	for i := range y { y[i] = the float16 nearest to a[i], ties to even }
	ToF16 func(y []uint16, a []float32)

	// Adam computes, with scale, decay, b1, c1, b2, c2, keep, step, root, eps from k in this order,
	//	for i := range p {
	//		d := g[i]*scale + decay*p[i]
	//		m[i] = b1*m[i] + c1*d
	//		v[i] = b2*v[i] + c2*d*d
	//		p[i] = keep*p[i] - step*m[i]/(sqrt(v[i])*root + eps)
	//	}
	Adam func(p, g, m, v []float32, k *[10]float32)
}

// now is the table in use.
var now atomic.Pointer[Kernels]

// Now returns the table in use. If it is nil, callers run their own loops.
func Now() *Kernels { return now.Load() }

// Use sets the table in use; nil means none. It is called once at start, and by tests, while no kernel
// runs.
func Use(k *Kernels) { now.Store(k) }
