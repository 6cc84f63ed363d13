package elem

import (
	"math"
	"unsafe"
)

const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
	round = 3 << 51 // x + round - round is x rounded to an integer, which is in the low bits of the sum
)

// Exp returns e^x in the precision of F: within 1 ulp for float64, within 1e-8 before rounding to float32.
// For the latter, with x = k ln2 + r and |r| <= ln2/2, it is 2^k times the series of e^r up to r^7.
func Exp[F Float](x float64) float64 {
	var z F
	if unsafe.Sizeof(z) == 8 {
		return Exp64(x)
	}
	if !(x > -150) { // also false for NaN
		return nonNeg(x)
	}
	if x > 89 {
		return math.Inf(1)
	}
	t := float64(x*math.Log2E) + round
	r := x - float64((t-round)*math.Ln2)
	r2 := float64(r * r)
	low := (1 + r) + float64(r2*(1./2+float64(r*(1./6))))
	high := (1./24 + float64(r*(1./120))) + float64(r2*(1./720+float64(r*(1./5040))))
	return math.Float64frombits(math.Float64bits(low+float64(float64(r2*r2)*high)) + math.Float64bits(t)<<52)
}

// nonNeg returns 0 for x below the range of exp, and NaN for NaN.
func nonNeg(x float64) float64 {
	if x != x {
		return x
	}
	return 0
}

// Exp64 computes e^x like FreeBSD's e_exp.c: e^r = 1 + 2r/(R(r)-r), with R a polynomial in r^2.
func Exp64(x float64) float64 {
	switch {
	case !(x > -745.14):
		return nonNeg(x)
	case x > 709.79:
		return math.Inf(1)
	}
	t := float64(x*math.Log2E) + round
	k := t - round
	hi, lo := x-float64(k*ln2Hi), float64(k*ln2Lo)
	r := hi - lo
	r2 := float64(r * r)
	p := float64(r2 * (6.61375632143793436117e-05 + float64(r2*(-1.65339022054652515390e-06+
		float64(r2*4.13813679705723846039e-08)))))
	c := r - float64(r2*(1.66666666666666019037e-01+float64(r2*(-2.77777777770155933842e-03+p))))
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	if k > -1021 && k < 1023 {
		return math.Float64frombits(math.Float64bits(y) + math.Float64bits(t)<<52)
	}
	return math.Ldexp(y, int(k))
}
