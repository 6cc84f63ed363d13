package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// e^x = 2^k e^r, with k the integer nearest to x/ln2 and r = x - k ln2, |r| <= ln2/2. ln2 is a float32 plus
// its remainder. There, e^r = 1 + r + r^2 P(r) with a relative error of 3.1e-9. P is the polynomial of
// degree 4 with the smallest maximum error, found by weighted least squares and rounded to float32.
var (
	expTop    = []float32{89, -104} // beyond these e^x is infinite, or 0
	expReduce = []float32{math.Log2E, 0.69314718246459961, -1.9046542999577679e-9}
	expPoly   = []float32{0.0013814540579915047, 0.00836874544620514, 0.04166838899254799, 0.1666652113199234,
		0.4999999403953552, 1}
	exp2Top = []float32{129, -150} // beyond these 2^t is infinite, or 0
)

// 2^f for 0 <= f < 1 with a relative error of 2.2e-9, found in the same way, the highest power first.
var exp2Poly = []float32{0.000215659718378447, 0.0012482289457693696, 0.009673775173723698, 0.05548618361353874,
	0.24022908508777618, 0.6931470632553101, 1}

// exp2 computes 2^t and destroys t. It does not correct for rounding of the exponent, which is what exp
// does in addition. AVX-512 subtracts and adds the same integer for all t, so that no t is out of range.
func (m *machine) exp2(t reg.VecVirtual) reg.VecVirtual {
	const down = 9 // without exceptions
	if m.zmm {
		f := m.vec()
		m.VREDUCEPS(operand.U8(down), t, f)
		p := m.horner(exp2Poly, f)
		m.VSCALEFPS(t, p, p)
		return p
	}
	k := m.vec()
	m.VMINPS(t, m.cv(exp2Top[0]), t)
	m.VMAXPS(t, m.cv(exp2Top[1]), t)
	m.VROUNDPS(operand.U8(down), t, k)
	m.VSUBPS(k, t, t)
	return m.scaleBy(m.horner(exp2Poly, t), k)
}

// exp computes e^x and destroys x.
func (m *machine) exp(x reg.VecVirtual) reg.VecVirtual {
	m.VMINPS(x, m.cv(expTop[0]), x)
	return m.expBelow(x)
}

// expBelow computes e^x of an x below the first of expTop, or NaN, and destroys x. Values below the second
// limit are replaced by it, so that the product with ln2 is finite. NaN is preserved: if one operand is
// NaN, min and max return the second.
func (m *machine) expBelow(x reg.VecVirtual) reg.VecVirtual {
	m.VMAXPS(x, m.cv(expTop[1]), x)
	k, p, r2 := m.vec(), m.vec(), m.vec()
	m.VMULPS(m.c(expReduce[0]), x, k)
	if m.zmm {
		m.VRNDSCALEPS(operand.U8(8), k, k)
	} else {
		m.VROUNDPS(operand.U8(8), k, k)
	}
	m.VFNMADD231PS(m.c(expReduce[1]), k, x)
	m.VFNMADD231PS(m.c(expReduce[2]), k, x)
	m.move(m.c(expPoly[0]), p)
	for _, c := range expPoly[1:5] {
		m.VFMADD213PS(m.c(c), x, p)
	}
	m.VMULPS(x, x, r2)
	m.VFMADD213PS(x, r2, p) // r + r^2 P
	m.VADDPS(m.c(1), p, p)
	return m.scaleBy(p, k)
}

// scaleBy computes p * 2^k. AVX2 has no such instruction: it multiplies by two powers, each of about half
// of k, so that neither overflows unless the result does.
func (m *machine) scaleBy(p, k reg.VecVirtual) reg.VecVirtual {
	if m.zmm {
		m.VSCALEFPS(k, p, p)
		return p
	}
	half := m.vec()
	m.VCVTPS2DQ(k, k)
	m.VPSRAD(operand.U8(1), k, half)
	m.VPSUBD(half, k, k)
	for _, e := range []reg.VecVirtual{k, half} {
		m.VPADDD(m.w(127), e, e)
		m.VPSLLD(operand.U8(23), e, e)
		m.VMULPS(e, p, p)
	}
	return p
}

// move copies a vector from a register or from memory.
func (m *machine) move(from operand.Op, to reg.VecVirtual) { m.VMOVUPS(from, to) }

// sigmoid computes s = 1/(1+e^t), the usual sigmoid of -t, and 1-s, without cancellation. It destroys t. If
// e^t is infinite both are 0, so that their product is 0.
func (m *machine) sigmoid(t reg.VecVirtual) (s, rest reg.VecVirtual) { return m.sigmoidOf(m.exp(t)) }

// sigmoidOf does the same for e = e^t, which it destroys. An infinite e is not replaced by a finite number
// before the division, because s would then be subnormal, for which Intel's processors take some 30 times
// as long.
func (m *machine) sigmoidOf(e reg.VecVirtual) (s, rest reg.VecVirtual) {
	s = m.vec()
	m.VADDPS(m.c(1), e, s)
	m.VDIVPS(s, m.cv(1), s)
	m.VMINPS(e, m.cv(finite), e)
	m.VMULPS(s, e, e)
	return s, e
}

const finite = 1e38
