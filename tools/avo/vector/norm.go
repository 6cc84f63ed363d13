package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// norms writes the loops of norms and of their gradients. They process many rows in one call, so that the
// next row's work fills the latency of one row.
func norms(m *machine) {
	m.moments()
	m.squares()
	m.normed("norm", false)
	m.normed("normBias", true)
	m.normGrad()
	m.gainGrad()
}

// inverse computes 1/n in all lanes, for an integer register.
func (m *machine) inverse(n reg.Register) reg.VecVirtual {
	v, one := m.vec(), m.vec()
	m.VXORPS(v.AsX(), v.AsX(), v.AsX())
	m.VCVTSI2SSQ(n, v.AsX(), v.AsX())
	m.VMOVSS(m.word(0x3f800000), one.AsX())
	m.VDIVSS(v.AsX(), one.AsX(), v.AsX())
	return m.spread(v)
}

// rowsOf writes a loop over count rows. After each, the pointers of rows advance by n elements, those of
// each by one.
func (m *machine) rowsOf(count, n reg.Register, rows, each []reg.Register, body func()) {
	m.down(count, body, func() {
		for _, p := range rows {
			m.LEAQ(operand.Mem{Base: p, Index: n, Scale: 4}, p)
		}
		for _, p := range each {
			m.ADDQ(operand.U8(4), p)
		}
	})
}

// deviation stores 1/sqrt(square+eps).
func (m *machine) deviation(square, eps reg.VecVirtual, to reg.Register) {
	s, one := square.AsX(), m.vec()
	m.VADDSS(eps.AsX(), s, s)
	m.VSQRTSS(s, s, s)
	m.VMOVSS(m.word(0x3f800000), one.AsX())
	m.VDIVSS(s, one.AsX(), s)
	m.VMOVSS(s, operand.Mem{Base: to})
}

// moments writes the means of rows and the inverses of their deviations.
func (m *machine) moments() {
	m.function("moments", "(mean, rstd, x []float32, cols int, eps float32)", `

	for i := range mean {
		row, square := x[i*cols:][:cols], 0
		for j := range row { mean[i] += row[j]/cols }
		for j := range row { square += (row[j]-mean[i])*(row[j]-mean[i])/cols }
		rstd[i] = 1/sqrt(square+eps)
	}`)
	count, mean, rstd, x := m.length("mean"), m.pointer("mean"), m.pointer("rstd"), m.pointer("x")
	n, eps := m.Load(m.Param("cols"), m.GP64()), m.scalar("eps")
	part := m.inverse(n)
	m.rowsOf(count, n, []reg.Register{x}, []reg.Register{mean, rstd}, func() {
		sums := m.zeros(4)
		m.each(n, 4, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			m.VADDPS(m.load(at(x), t), sums[u], sums[u])
		})
		middle := m.spread(m.across(m.fold(sums, m.VADDPS), false, m.VADDPS))
		m.VMULPS(part, middle, middle)
		m.VMOVSS(middle.AsX(), operand.Mem{Base: mean})
		squares := m.zeros(4)
		m.each(n, 4, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			v := m.load(at(x), t)
			m.VSUBPS(middle, v, v)
			m.keep(v, t)
			m.VFMADD231PS(v, v, squares[u])
		})
		square := m.across(m.fold(squares, m.VADDPS), false, m.VADDPS)
		m.VMULSS(part.AsX(), square.AsX(), square.AsX())
		m.deviation(square, eps, rstd)
	})
	m.leave()
}

// squares writes the inverses of the roots of rows' mean squares.
func (m *machine) squares() {
	m.function("meanSquares", "(rstd, x []float32, cols int, eps float32)", `

	for i := range rstd {
		row, square := x[i*cols:][:cols], 0
		for j := range row { square += row[j]*row[j]/cols }
		rstd[i] = 1/sqrt(square+eps)
	}`)
	count, rstd, x := m.length("rstd"), m.pointer("rstd"), m.pointer("x")
	n, eps := m.Load(m.Param("cols"), m.GP64()), m.scalar("eps")
	part := m.inverse(n)
	m.rowsOf(count, n, []reg.Register{x}, []reg.Register{rstd}, func() {
		sums := m.zeros(4)
		m.each(n, 4, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			v := m.load(at(x), t)
			m.VFMADD231PS(v, v, sums[u])
		})
		square := m.across(m.fold(sums, m.VADDPS), false, m.VADDPS)
		m.VMULSS(part.AsX(), square.AsX(), square.AsX())
		m.deviation(square, eps, rstd)
	})
	m.leave()
}

// normed writes rows minus their means, scaled.
func (m *machine) normed(name string, bias bool) {
	args, loop, sources := "(y, x, gain, mean, rstd []float32, base float32)",
		"y[i,j] = (x[i,j]-mean[i])*rstd[i] * (base+gain[j])", []string{"gain"}
	if bias {
		args, loop = "(y, x, gain, bias, mean, rstd []float32, base float32)", loop+" + bias[j]"
		sources = append(sources, "bias")
	}
	m.function(name, args, "\n\n\tfor i, j := range [len(mean), len(gain)] { "+loop+" }")
	base := m.scalar("base")
	count, n, y, x, mean, rstd := m.length("mean"), m.length("gain"), m.pointer("y"), m.pointer("x"),
		m.pointer("mean"), m.pointer("rstd")
	var from []reg.Register
	for _, s := range sources {
		from = append(from, m.pointer(s))
	}
	m.rowsOf(count, n, []reg.Register{y, x}, []reg.Register{mean, rstd}, func() {
		middle, scale := m.vec(), m.vec()
		m.VBROADCASTSS(operand.Mem{Base: mean}, middle)
		m.VBROADCASTSS(operand.Mem{Base: rstd}, scale)
		m.each(n, 4, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
			v, g := m.load(at(x), t), m.load(at(from[0]), t)
			m.VSUBPS(middle, v, v)
			m.VMULPS(scale, v, v)
			m.VADDPS(base, g, g)
			if bias {
				m.VFMADD213PS(m.load(at(from[1]), t), g, v)
			} else {
				m.VMULPS(g, v, v)
			}
			m.store(v, at(y), t)
		})
	})
	m.leave()
}

// normGrad writes the gradient with respect to a norm's input.
func (m *machine) normGrad() {
	m.function("normGrad", "(dx, dy, x, gain, mean, rstd []float32, base, centred float32)", `

	for i := range mean {
		plain, along := 0, 0
		for j := range gain {
			g := dy[i,j] * (base+gain[j])
			plain += centred * g/len(gain)
			along += g * (x[i,j]-mean[i])*rstd[i]/len(gain)
		}
		for j := range gain { dx[i,j] = rstd[i] * (dy[i,j]*(base+gain[j]) - plain - (x[i,j]-mean[i])*rstd[i]*along) }
	}

centred is 1, or 0 for a norm that does not subtract the mean.`)
	base, centred := m.scalar("base"), m.scalar("centred")
	count, n, gain := m.length("mean"), m.length("gain"), m.pointer("gain")
	dx, dy, x, mean, rstd := m.pointer("dx"), m.pointer("dy"), m.pointer("x"), m.pointer("mean"), m.pointer("rstd")
	part := m.inverse(n)
	m.VMULPS(part, centred, centred)
	m.rowsOf(count, n, []reg.Register{dx, dy, x}, []reg.Register{mean, rstd}, func() {
		middle, scale := m.vec(), m.vec()
		m.VBROADCASTSS(operand.Mem{Base: mean}, middle)
		m.VBROADCASTSS(operand.Mem{Base: rstd}, scale)
		plains, alongs := m.zeros(2), m.zeros(2)
		m.each(n, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			g, v := m.load(at(gain), t), m.load(at(x), t)
			m.VADDPS(base, g, g)
			m.VMULPS(m.load(at(dy), t), g, g) // 0 in the lanes that a tail leaves out
			m.VADDPS(g, plains[u], plains[u])
			m.VSUBPS(middle, v, v)
			m.VFMADD231PS(v, g, alongs[u])
		})
		plain := m.spread(m.across(m.fold(plains, m.VADDPS), false, m.VADDPS))
		m.VMULPS(centred, plain, plain)
		along := m.spread(m.across(m.fold(alongs, m.VADDPS), false, m.VADDPS))
		m.VMULPS(part, along, along)
		m.VMULPS(scale, along, along)
		m.VMULPS(scale, along, along)
		m.each(n, m.both(4), func(at func(reg.Register) operand.Mem, _ int, t *tail) {
			g, v := m.load(at(gain), t), m.load(at(x), t)
			m.VADDPS(base, g, g)
			m.VFMSUB132PS(m.load(at(dy), t), plain, g) // g*dy - plain
			m.VSUBPS(middle, v, v)
			m.VFNMADD231PS(along, v, g)
			m.VMULPS(scale, g, g)
			m.store(g, at(dx), t)
		})
	})
	m.leave()
}

// gainGrad writes the addition of the gradient of a norm's gain over some rows.
func (m *machine) gainGrad() {
	m.function("gainGrad", "(out, dy, x, mean, rstd []float32, stride int)",
		"\n\n\tfor j := range out { s := 0.0; for i := range mean { s += dy[i*stride+j] * "+
			"(x[i*stride+j]-mean[i])*rstd[i] }; out[j] += s }\n\nwith s in float64.")
	n, out, dy, x := m.length("out"), m.pointer("out"), m.pointer("dy"), m.pointer("x")
	rows, mean, rstd := m.length("mean"), m.pointer("mean"), m.pointer("rstd")
	stride := m.Load(m.Param("stride"), m.GP64())
	ahead := m.ahead(stride)
	m.columns(n, 2, func(i reg.Register, k int, t *tail) {
		sums, a, b, row := m.zeros(2*k), m.GP64(), m.GP64(), m.GP64()
		m.LEAQ(operand.Mem{Base: x, Index: i, Scale: 4}, a)
		m.LEAQ(operand.Mem{Base: dy, Index: i, Scale: 4}, b)
		m.XORQ(row, row)
		m.down(rows, func() {
			m.ask(a, ahead, k)
			m.ask(b, ahead, k)
			mi, ri := m.vec(), m.vec()
			m.VBROADCASTSS(operand.Mem{Base: mean, Index: row, Scale: 4}, mi)
			m.VBROADCASTSS(operand.Mem{Base: rstd, Index: row, Scale: 4}, ri)
			for u := range k {
				v := m.load(operand.Mem{Base: a, Disp: 4 * u * m.lanes}, t)
				m.VSUBPS(mi, v, v)
				m.VMULPS(ri, v, v)
				m.VMULPS(m.load(operand.Mem{Base: b, Disp: 4 * u * m.lanes}, t), v, v)
				lo, hi := m.widen(v)
				m.VADDPD(lo, sums[2*u], sums[2*u])
				m.VADDPD(hi, sums[2*u+1], sums[2*u+1])
			}
		}, func() {
			m.LEAQ(operand.Mem{Base: a, Index: stride, Scale: 4}, a)
			m.LEAQ(operand.Mem{Base: b, Index: stride, Scale: 4}, b)
			m.INCQ(row)
		})
		m.addWide(sums, func(u int) operand.Mem { return m.place(i, u)(out) }, t)
	})
	m.leave()
}
