package num

import "math"

// BF16 is bfloat16, the upper half of a float32: an exponent of eight bits and a fraction of seven. It is a struct, so
// that no conversion takes its bits as its value.
type BF16 struct{ Bits uint16 }

// F16 is IEEE 754's binary16: 5 bits of exponent, 10 of fraction. The largest finite value is 65504.
type F16 struct{ Bits uint16 }

// Half is the constraint of 16-bit types.
type Half interface{ BF16 | F16 }

// Stored is the constraint of types in which numbers are stored.
type Stored interface {
	float32 | float64 | BF16 | F16
}

// Wide returns the value as float32, which represents every BF16.
func (x BF16) Wide() float32 { return math.Float32frombits(uint32(x.Bits) << 16) }

// Wide returns the value as float32, which represents every F16.
func (x F16) Wide() float32 {
	sign, rest := uint32(x.Bits&0x8000)<<16, uint32(x.Bits&0x7fff)<<13
	if rest >= 31<<23 { // Inf or NaN: an exponent of all ones stays one
		return math.Float32frombits(sign | rest | 0x7f800000)
	}
	// The exponent's bias increases by 112. The multiplication also converts subnormals.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(rest)*0x1p112))
}

// ToBF16 rounds to nearest, ties to even. Numbers that round beyond the largest finite value become
// infinite; NaN stays NaN.
func ToBF16(x float32) BF16 {
	b := math.Float32bits(x)
	if x != x {
		return BF16{uint16(b>>16 | 0x40)} // quiet NaN, so that a fraction of zeros does not make it infinite
	}
	return BF16{uint16((b + 0x7fff + b>>16&1) >> 16)}
}

// StochasticRound rounds to one of the two neighbours, with the probability of each equal to the relative
// distance to the other, so that the average is x. bits are 16 random bits. Infinity and NaN are unchanged.
func StochasticRound(x float32, bits uint16) BF16 {
	if x-x != 0 {
		return ToBF16(x)
	}
	return BF16{uint16((math.Float32bits(x) + uint32(bits)) >> 16)}
}

// Limits of F16, as bits of a float32.
const (
	f16Normal = (127 - 14) << 23 // 2^-14, the smallest normal value
	f16Above  = (127 + 16) << 23 // 2^16, from which on everything is infinite
)

// ToF16 rounds to nearest, ties to even. Numbers that round to 65536 or more become infinite; NaN stays
// NaN.
func ToF16(x float32) F16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return F16{sign | 0x7e00}
	case b >= f16Above:
		return F16{sign | 0x7c00}
	case b < f16Normal:
		// When added to 1/2, the last bit of a float32 has the value 2^-24, the unit of subnormals: the sum rounds
		// as required.
		return F16{sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))}
	}
	b -= 112 << 23
	return F16{sign | uint16((b+0xfff+b>>13&1)>>13)} // a carry increments the exponent, up to infinity
}

// RoundBF16 returns the nearest BF16 as float32.
func RoundBF16(x float32) float32 { return ToBF16(x).Wide() }

// RoundF16 returns the nearest F16 as float32.
func RoundF16(x float32) float32 { return ToF16(x).Wide() }
