package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The normal distribution's tail, q(z) = erfc(z) for z >= 0, is t e^(-z^2 + P(t)) with t = 1/(1 + z/2) and
// a polynomial P of degree 9, with a relative error of at most 1.2e-7 (a Chebyshev fit; Press et al.,
// Numerical Recipes, 2nd edition, 6.2).
var erfcPoly = []float32{0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418,
	0.37409196, 1.00002368, -1.26551223}

// tanh is x + x^3 P(x^2) for |x| < 0.625 (Cephes, tanhf), and elsewhere 1 - 2/(e^2|x| + 1) with the sign of
// x.
var tanhPoly = []float32{-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1}

const tanhSmall = 0.625

const signBit = 1 << 31

// tails writes activations with the error function, and saturating functions.
func tails(m *machine) {
	held := [][]float32{expTop, expReduce, expPoly}
	m.element("geluErf", "(y, a []float32)", "y[i] = a[i] * erfc(-a[i]/sqrt(2))/2", []string{"a"}, 1, held,
		func(x []reg.VecVirtual) reg.VecVirtual {
			p := m.phi(x[0])
			m.VMULPS(x[0], p, p)
			return p
		})
	m.element("geluErfGrad", "(y, dy, a []float32)",
		"y[i] = dy[i] * (p + a[i]*e^(-a[i]^2/2)/sqrt(2π)), p = erfc(-a[i]/sqrt(2))/2", []string{"dy", "a"}, 1, held,
		func(x []reg.VecVirtual) reg.VecVirtual {
			p, e := m.phi(x[1]), m.vec()
			m.VMULPS(m.c(-0.5), x[1], e)
			m.VMULPS(x[1], e, e)
			e = m.exp(e)
			m.VMULPS(m.c(1/(math.Sqrt2*math.SqrtPi)), e, e)
			m.VFMADD231PS(x[1], e, p)
			m.VMULPS(x[0], p, p)
			return p
		})
	m.element("sigmoid", "(y, a []float32)", "y[i] = 1 / (1 + e^-a[i])", []string{"a"}, 2, held,
		func(x []reg.VecVirtual) reg.VecVirtual {
			s, _ := m.sigmoid(m.negative(x[0]))
			return s
		})
	m.element("sigmoidGrad", "(y, dy, a []float32)", "y[i] = dy[i] * s*(1-s), s = 1/(1 + e^-a[i])",
		[]string{"dy", "a"}, 2, held, func(x []reg.VecVirtual) reg.VecVirtual {
			s, rest := m.sigmoid(m.negative(x[1]))
			m.VMULPS(rest, s, s)
			m.VMULPS(x[0], s, s)
			return s
		})
	m.element("softcap", "(y, a []float32, cap, inverse float32)", "y[i] = cap * tanh(a[i]*inverse)", []string{"a"}, 1,
		held, func(x []reg.VecVirtual) reg.VecVirtual {
			m.VMULPS(m.scalar("inverse"), x[0], x[0])
			t := m.tanh(x[0])
			m.VMULPS(m.scalar("cap"), t, t)
			return t
		})
	m.element("softcapGrad", "(y, dy, a []float32, inverse float32)", "y[i] = dy[i] * (1 - tanh(a[i]*inverse)^2)",
		[]string{"dy", "a"}, 1, held, func(x []reg.VecVirtual) reg.VecVirtual {
			m.VMULPS(m.scalar("inverse"), x[1], x[1])
			t, one := m.tanh(x[1]), m.vec()
			m.move(m.c(1), one)
			m.VFNMADD231PS(t, t, one)
			m.VMULPS(x[0], one, one)
			return one
		})
}

// without returns v without its sign bit, and that bit alone.
func (m *machine) without(v reg.VecVirtual) (size, sign reg.VecVirtual) {
	size, sign = m.vec(), m.vec()
	m.VANDPS(m.w(signBit), v, sign)
	m.VXORPS(sign, v, size)
	return size, sign
}

// below returns x if v < limit, else y.
func (m *machine) below(v reg.VecVirtual, limit float32, x, y reg.VecVirtual) reg.VecVirtual {
	const less = 0x11 // ordered, quiet
	to := m.vec()
	if m.zmm {
		k := m.K()
		m.VCMPPS(operand.U8(less), m.cv(limit), v, k)
		m.VBLENDMPS(x, y, k, to)
		return to
	}
	mask := m.vec()
	m.VCMPPS(operand.U8(less), m.cv(limit), v, mask)
	m.VBLENDVPS(mask, x, y, to)
	return to
}

// horner computes the polynomial of x with these coefficients, the highest first.
func (m *machine) horner(c []float32, x reg.VecVirtual) reg.VecVirtual {
	p := m.vec()
	m.move(m.c(c[0]), p)
	for _, c := range c[1:] {
		m.VFMADD213PS(m.c(c), x, p)
	}
	return p
}

// phi computes the normal distribution function of a, which is preserved: q/2 if a < 0, else 1 - q/2, with
// q = erfc(|a|/sqrt(2)).
func (m *machine) phi(a reg.VecVirtual) reg.VecVirtual {
	z, _ := m.without(a)
	m.VMULPS(m.c(1/math.Sqrt2), z, z)
	t := m.vec()
	m.move(m.c(1), t)
	m.VFMADD231PS(m.c(0.5), z, t)
	m.VDIVPS(t, m.cv(1), t)
	p := m.horner(erfcPoly, t)
	m.VFNMADD231PS(z, z, p)
	q := m.exp(p)
	m.VMULPS(t, q, q)
	m.VMULPS(m.c(0.5), q, q)
	rest := m.vec()
	m.VSUBPS(q, m.cv(1), rest)
	return m.below(a, 0, q, rest)
}

// tanh computes tanh of x, which is preserved.
func (m *machine) tanh(x reg.VecVirtual) reg.VecVirtual {
	size, sign := m.without(x)
	s, e := m.vec(), m.vec()
	m.VMULPS(size, size, s)
	small := m.horner(tanhPoly, s)
	m.VMULPS(s, small, small)
	m.VFMADD213PS(size, size, small)
	m.VADDPS(size, size, e)
	e = m.exp(e)
	m.VADDPS(m.c(1), e, e)
	m.VDIVPS(e, m.cv(-2), e)
	m.VADDPS(m.c(1), e, e)
	t := m.below(size, tanhSmall, small, e)
	m.VXORPS(sign, t, t)
	return t
}
