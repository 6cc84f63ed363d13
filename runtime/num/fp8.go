package num

import "math"

// FP8Format is a format of 8 bits, in which operands of matrix products are multiplied: an exponent and a mantissa
// (Micikevicius et al. 2022, "FP8 formats for deep learning"). Numbers are not stored in it; they are rounded to what
// it holds.
type FP8Format struct {
	Mantissa int     // bits behind the point
	Least    int     // exponent of the smallest normal number: below, numbers are multiples of 2^(Least-Mantissa)
	Most     float64 // the largest finite number
}

// E4M3 and E5M2 are the two formats: the one for what forward multiplies, the other, with more range, for gradients.
var (
	E4M3 = FP8Format{Mantissa: 3, Least: -6, Most: 448}
	E5M2 = FP8Format{Mantissa: 2, Least: -14, Most: 57344}
)

// mostScale bounds the exponents of scales: a scale and its inverse are normal numbers of 32 bits.
const mostScale = 126

// Scale is the largest power of two that a tensor can be multiplied with whose largest magnitude is most, so that every
// number of it is within the format; 1 if most is zero or not finite.
func (e FP8Format) Scale(most float64) float64 {
	if most == 0 || most-most != 0 {
		return 1
	}
	limit, at := math.Frexp(e.Most)
	share, exp := math.Frexp(most)
	exp = at - exp
	if share > limit {
		exp--
	}
	return math.Ldexp(1, max(-mostScale, min(mostScale, exp)))
}

// Round is x as the format holds it: rounded to nearest, ties to even, and to the largest number beyond it. What is not
// finite is NaN, so that an overflow before is seen behind.
func (e FP8Format) Round(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	// Numbers of x's binade are multiples of unit; where 2^52 units are added, nothing smaller is left.
	exp := int(math.Float64bits(x)>>52&0x7ff) - 1023
	unit := math.Float64frombits(uint64(max(exp, e.Least)-e.Mantissa+52+1023) << 52)
	y := math.Abs(x) + unit - unit
	return math.Copysign(min(y, e.Most), x)
}
