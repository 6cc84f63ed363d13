package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The logarithm has the same bits as that of runtime/rng: x = 2^k (1+f), s = f/(2+f), and FreeBSD's series.
const (
	logLeast = 0x3fe6a09e667f3bcd // the bits of sqrt(1/2), the smallest 1+f
	logOne   = 1023 << 52         // the bits of 1
	logMask  = 1<<52 - 1          // the bits of the fraction
	logWhole = 1075 << 52         // the bits of 2^52: combined with k + 1023, the sum of both
	logHi    = 6.93147180369123816490e-01
	logLo    = 1.90821492927058770002e-10
)

var logPoly = []float64{6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
	2.222219843214978396e-01,
	// coefficients of s^2 and its powers
	1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01}

// logRows writes the logarithms of rows' sums, and their inverses.
func (m *machine) logRows() {
	m.function("logRows", "(lse, inverse, top []float32, sum []float64)", `

	for i := range sum {
		lse[i], inverse[i] = top[i] + log(sum[i]), 1/sum[i]
		if sum[i] == 0 { lse[i], inverse[i] = -Inf, 1 }
	}

in float64. The number of sums is a multiple of 8. Each is 0, at least 2^-1022, or NaN.`)
	rows, lse, inverse, top, sum := m.length("sum"), m.pointer("lse"), m.pointer("inverse"), m.pointer("top"),
		m.pointer("sum")
	i := m.GP64()
	m.XORQ(i, i)
	l := m.labels("log")
	m.Label(l("vector"))
	m.CMPQ(i, rows)
	m.JGE(operand.LabelRef(l("done")))
	at := func(base reg.Register, size uint8) operand.Mem { return operand.Mem{Base: base, Index: i, Scale: size} }
	x, shift := m.vec(), m.vec()
	m.VMOVUPD(at(sum, 8), x)
	y := m.log(x)
	m.VCVTPS2PD(at(top, 4), shift)
	m.VADDPD(shift, y, y)
	none := m.wide(math.Inf(-1))
	inv, one := m.vec(), m.wide(1)
	m.VDIVPD(x, one, inv)
	y, inv = m.whereZero(x, none, y), m.whereZero(x, one, inv)
	for _, out := range []struct {
		v  reg.VecVirtual
		to reg.Register
	}{{y, lse}, {inv, inverse}} {
		m.single(out.v)
		m.VMOVUPS(half(out.v), at(out.to, 4))
	}
	m.ADDQ(operand.U8(m.lanes/2), i)
	m.JMP(operand.LabelRef(l("vector")))
	m.Label(l("done"))
	m.leave()
}

// single rounds a vector of float64s to float32s, in its lower half.
func (m *machine) single(v reg.VecVirtual) {
	if m.zmm {
		m.VCVTPD2PS(v, v.AsY())
	} else {
		m.VCVTPD2PSY(v, v.AsX())
	}
}

// wide returns a register with a 64-bit constant.
func (m *machine) wide(x float64) reg.VecVirtual {
	v := m.vec()
	m.VMOVUPD(m.quad(math.Float64bits(x)), v)
	return v
}

// log computes the logarithm of a vector of float64s, which is preserved. Products are rounded before they
// are added.
func (m *machine) log(x reg.VecVirtual) reg.VecVirtual {
	k, f, s, s2, s4 := m.vec(), m.vec(), m.vec(), m.vec(), m.vec()
	m.move(m.quad(logOne-logLeast), k)
	m.VPADDQ(x, k, k)
	m.and(logMask, k, f)
	m.VPADDQ(m.quad(logLeast), f, f)
	m.VPSRLQ(operand.U8(52), k, k)
	m.VPADDQ(m.quad(logWhole), k, k)
	m.VSUBPD(m.quad(math.Float64bits(1<<52+1023)), k, k)
	m.VSUBPD(m.quad(math.Float64bits(1)), f, f)
	m.VADDPD(m.quad(math.Float64bits(2)), f, s)
	m.VDIVPD(s, f, s)
	m.VMULPD(s, s, s2)
	m.VMULPD(s2, s2, s4)
	odd := m.series(s4, logPoly[6], logPoly[4], logPoly[2], logPoly[0])
	m.VMULPD(s2, odd, odd)
	even := m.series(s4, logPoly[5], logPoly[3], logPoly[1])
	m.VMULPD(s4, even, even)
	m.VADDPD(even, odd, odd)
	square := m.vec()
	m.VMULPD(m.quad(math.Float64bits(0.5)), f, square)
	m.VMULPD(f, square, square)
	m.VADDPD(odd, square, odd)
	m.VMULPD(s, odd, odd)
	m.VMULPD(m.quad(math.Float64bits(logLo)), k, s)
	m.VADDPD(s, odd, odd)
	m.VSUBPD(odd, square, square)
	m.VSUBPD(f, square, square)
	m.VMULPD(m.quad(math.Float64bits(logHi)), k, k)
	m.VSUBPD(square, k, k)
	return m.whereFinite(x, k)
}

// series computes a polynomial of x, the highest coefficient first.
func (m *machine) series(x reg.VecVirtual, c ...float64) reg.VecVirtual {
	p := m.wide(c[0])
	for _, c := range c[1:] {
		m.VMULPD(x, p, p)
		m.VADDPD(m.quad(math.Float64bits(c)), p, p)
	}
	return p
}

// and computes v & q.
func (m *machine) and(q uint64, v, to reg.VecVirtual) {
	if m.zmm {
		m.VPANDQ(m.quad(q), v, to)
	} else {
		m.VPAND(m.quad(q), v, to)
	}
}

// whereZero returns a in the lanes in which the float64 x is 0, else b.
func (m *machine) whereZero(x, a, b reg.VecVirtual) reg.VecVirtual {
	const equal = 0
	return m.where(equal, x, m.zero(), a, b)
}

// whereFinite returns y in the lanes in which the float64 x is below infinity, else x.
func (m *machine) whereFinite(x, y reg.VecVirtual) reg.VecVirtual {
	const less = 0x11 // ordered, quiet
	return m.where(less, x, m.wide(math.Inf(1)), y, x)
}

// where returns a in the lanes in which the comparison of x with with holds, else b.
func (m *machine) where(how uint8, x, with, a, b reg.VecVirtual) reg.VecVirtual {
	to := m.vec()
	if m.zmm {
		k := m.K()
		m.VCMPPD(operand.U8(how), with, x, k)
		m.VBLENDMPD(a, b, k, to)
		return to
	}
	mask := m.vec()
	m.VCMPPD(operand.U8(how), with, x, mask)
	m.VBLENDVPD(mask, a, b, to)
	return to
}
