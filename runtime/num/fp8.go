package num

import "math"

// FP8Format is an 8-bit floating-point format for operands of matmuls, given by its exponent and mantissa
// (Micikevicius et al. 2022, "FP8 formats for deep learning"). Numbers are not stored in it; they are
// rounded to its values.
type FP8Format struct {
	Mantissa int     // mantissa bits
	Least    int     // exponent of the smallest normal number; smaller numbers are multiples of 2^(Least-Mantissa)
	Max      float64 // the largest finite number
}

// E4M3 and E5M2 are the two formats: E4M3 for operands of the forward pass; E5M2, which has more range, for
// gradients.
var (
	E4M3 = FP8Format{Mantissa: 3, Least: -6, Max: 448}
	E5M2 = FP8Format{Mantissa: 2, Least: -14, Max: 57344}
)

// mostScale bounds the exponents of scales, so that a scale and its inverse are normal float32s.
const mostScale = 126

// Scale returns the largest power of two by which a tensor with the absolute maximum most can be multiplied
// so that all its numbers are within the format. It returns 1 if most is zero or not finite.
func (e FP8Format) Scale(largest float64) float64 {
	if largest == 0 || largest-largest != 0 {
		return 1
	}
	limit, at := math.Frexp(e.Max)
	share, exp := math.Frexp(largest)
	exp = at - exp
	if share > limit {
		exp--
	}
	return math.Ldexp(1, max(-mostScale, min(mostScale, exp)))
}

// Round returns x rounded to the format: to nearest, ties to even, and to the largest number if it is
// beyond it. Infinity and NaN become NaN, so that an earlier overflow remains visible.
func (e FP8Format) Round(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	// Numbers in x's binade are multiples of unit. Adding 2^52 units drops everything smaller.
	exp := int(math.Float64bits(x)>>52&0x7ff) - 1023
	unit := math.Float64frombits(uint64(max(exp, e.Least)-e.Mantissa+52+1023) << 52)
	y := math.Abs(x) + unit - unit
	return math.Copysign(min(y, e.Max), x)
}
