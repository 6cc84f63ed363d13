package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// attentions writes the loops over a row of scores.
func attentions(m *machine) {
	m.expSum()
	m.expGrad()
	m.scaleRows()
	m.topRows()
	m.expRows()
	m.logRows()
	m.gradRows()
	m.dotRows()
	m.askRows()
}

// expSum writes a row's exponentials and their sum.
func (m *machine) expSum() {
	m.function("expSum", "(y, a []float32, scale, shift float32) (s float64)",
		"\n\n\tfor i := range y { y[i] = e^(scale*a[i]-shift); s += y[i] }\n\nwith the sum in float64.")
	m.hold(expTop, expReduce, expPoly)
	n, y, a := m.length("y"), m.pointer("y"), m.pointer("a")
	scale, shift := m.scalar("scale"), m.scalar("shift")
	sums := m.zeros(4)
	m.each(n, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		v := m.load(at(a), t)
		m.VFMSUB213PS(shift, scale, v)
		e := m.exp(v)
		m.keep(e, t)
		m.store(e, at(y), t)
		lo, hi := m.widen(e)
		m.VADDPD(lo, sums[2*u], sums[2*u])
		m.VADDPD(hi, sums[2*u+1], sums[2*u+1])
	})
	m.give(m.across(m.fold(sums, m.VADDPD), true, m.VADDPD), "s")
	m.leave()
}

// expGrad writes a row's weights and the gradient of its scores.
func (m *machine) expGrad() {
	m.function("expGrad", "(p, dp []float32, scale, shift, d, factor float32)",
		"\n\n\tfor i := range p { p[i] = e^(scale*p[i]-shift); dp[i] = p[i] * (dp[i]-d) * factor }")
	m.hold(expTop, expReduce, expPoly)
	n, p, dp := m.length("p"), m.pointer("p"), m.pointer("dp")
	scale, shift, d, factor := m.scalar("scale"), m.scalar("shift"), m.scalar("d"), m.scalar("factor")
	m.each(n, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		v, g := m.load(at(p), t), m.load(at(dp), t)
		m.VFMSUB213PS(shift, scale, v)
		e := m.exp(v)
		m.store(e, at(p), t)
		m.VSUBPS(d, g, g)
		m.VMULPS(e, g, g)
		m.VMULPS(factor, g, g)
		m.store(g, at(dp), t)
	})
	m.leave()
}

// scaleRows writes the product of each row with its own number.
func (m *machine) scaleRows() {
	m.function("scaleRows", "(y, factors []float32, cols, stride int)",
		"\n\n\tfor i, j := range [len(factors), cols] { y[i*stride+j] *= factors[i] }")
	rows, y, f := m.length("factors"), m.pointer("y"), m.pointer("factors")
	cols, stride := m.Load(m.Param("cols"), m.GP64()), m.Load(m.Param("stride"), m.GP64())
	m.down(rows, func() {
		factor := m.vec()
		m.VBROADCASTSS(operand.Mem{Base: f}, factor)
		m.each(cols, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			v := m.load(at(y), t)
			m.VMULPS(factor, v, v)
			m.store(v, at(y), t)
		})
	}, func() {
		m.ADDQ(operand.U8(4), f)
		m.LEAQ(operand.Mem{Base: y, Index: stride, Scale: 4}, y)
	})
	m.leave()
}
