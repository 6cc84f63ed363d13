package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// norms write what a norm does to one row, and the gradient of its gain.
func norms(m *machine) {
	m.moments()
	m.squares()
	m.normed("norm", false)
	m.normed("normBias", true)
	m.normSums()
	m.normGrad()
	m.gainGrad()
}

// inverse is 1/n in all lanes, of an integer register.
func (m *machine) inverse(n reg.Register) reg.VecVirtual {
	v, one := m.vec(), m.vec()
	m.VXORPS(v.AsX(), v.AsX(), v.AsX())
	m.VCVTSI2SSQ(n, v.AsX(), v.AsX())
	m.VMOVSS(m.word(0x3f800000), one.AsX())
	m.VDIVSS(v.AsX(), one.AsX(), v.AsX())
	return m.spread(v)
}

// moments are a row's mean and the mean of the squares about it.
func (m *machine) moments() {
	m.function("moments", "(x []float32) (mean, square float32)", `

	for i := range x { mean += x[i]/len(x) }
	for i := range x { square += (x[i]-mean)*(x[i]-mean)/len(x) }

x is not empty.`)
	n, x := m.length("x"), m.pointer("x")
	sums := m.zeros(4)
	m.each(n, 4, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		m.VADDPS(m.load(at(x), t), sums[u], sums[u])
	})
	part := m.inverse(n)
	mean := m.spread(m.across(m.fold(sums, m.VADDPS), false, m.VADDPS))
	m.VMULPS(part, mean, mean)
	m.give(mean, "mean")
	squares := m.zeros(4)
	m.each(n, 4, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		v := m.load(at(x), t)
		m.VSUBPS(mean, v, v)
		m.keep(v, t)
		m.VFMADD231PS(v, v, squares[u])
	})
	square := m.across(m.fold(squares, m.VADDPS), false, m.VADDPS)
	m.VMULSS(part.AsX(), square.AsX(), square.AsX())
	m.give(square, "square")
	m.leave()
}

// squares is the mean square of a row.
func (m *machine) squares() {
	m.function("meanSquare", "(x []float32) (square float32)", `

	for i := range x { square += x[i]*x[i]/len(x) }

x is not empty.`)
	n, x := m.length("x"), m.pointer("x")
	sums := m.zeros(4)
	m.each(n, 4, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		v := m.load(at(x), t)
		m.VFMADD231PS(v, v, sums[u])
	})
	square := m.across(m.fold(sums, m.VADDPS), false, m.VADDPS)
	m.VMULSS(m.inverse(n).AsX(), square.AsX(), square.AsX())
	m.give(square, "square")
	m.leave()
}

// normed is a row less its mean, scaled.
func (m *machine) normed(name string, bias bool) {
	args, loop, sources := "(y, x, gain []float32, mean, rstd, base float32)", "y[i] = (x[i]-mean)*rstd * (base+gain[i])", []string{"x", "gain"}
	if bias {
		args, loop = "(y, x, gain, bias []float32, mean, rstd, base float32)", loop+" + bias[i]"
		sources = append(sources, "bias")
	}
	m.function(name, args, "\n\n\tfor i := range y { "+loop+" }")
	mean, rstd, base := m.scalar("mean"), m.scalar("rstd"), m.scalar("base")
	n, y := m.length("y"), m.pointer("y")
	var from []reg.Register
	for _, s := range sources {
		from = append(from, m.pointer(s))
	}
	m.each(n, 4, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		v, g := m.load(at(from[0]), t), m.load(at(from[1]), t)
		m.VSUBPS(mean, v, v)
		m.VMULPS(rstd, v, v)
		m.VADDPS(base, g, g)
		if bias {
			m.VFMADD213PS(m.load(at(from[2]), t), g, v)
		} else {
			m.VMULPS(g, v, v)
		}
		m.store(v, at(y), t)
	})
	m.leave()
}

// normSums are the two means that a norm's gradient subtracts.
func (m *machine) normSums() {
	m.function("normSums", "(dy, x, gain []float32, mean, rstd, base float32) (plain, along float32)", `

	for i := range dy {
		g := dy[i] * (base+gain[i])
		plain += g/len(dy)
		along += g * (x[i]-mean)*rstd/len(dy)
	}

dy is not empty.`)
	mean, rstd, base := m.scalar("mean"), m.scalar("rstd"), m.scalar("base")
	n, dy, x, gain := m.length("dy"), m.pointer("dy"), m.pointer("x"), m.pointer("gain")
	plain, along := m.zeros(2), m.zeros(2)
	m.each(n, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		g, v := m.load(at(gain), t), m.load(at(x), t)
		m.VADDPS(base, g, g)
		m.VMULPS(m.load(at(dy), t), g, g) // 0 in the lanes that a tail leaves out
		m.VADDPS(g, plain[u], plain[u])
		m.VSUBPS(mean, v, v)
		m.VFMADD231PS(v, g, along[u])
	})
	part := m.inverse(n)
	p := m.across(m.fold(plain, m.VADDPS), false, m.VADDPS)
	m.VMULSS(part.AsX(), p.AsX(), p.AsX())
	m.give(p, "plain")
	a := m.across(m.fold(along, m.VADDPS), false, m.VADDPS)
	m.VMULSS(part.AsX(), a.AsX(), a.AsX())
	m.VMULSS(rstd.AsX(), a.AsX(), a.AsX())
	m.give(a, "along")
	m.leave()
}

// normGrad is the gradient by a norm's operand.
func (m *machine) normGrad() {
	m.function("normGrad", "(dx, dy, x, gain []float32, mean, rstd, base, plain, along float32)",
		"\n\n\tfor i := range dx { dx[i] = rstd * (dy[i]*(base+gain[i]) - plain - (x[i]-mean)*rstd*along) }")
	mean, rstd, base, plain, along := m.scalar("mean"), m.scalar("rstd"), m.scalar("base"), m.scalar("plain"), m.scalar("along")
	n, dx, dy, x, gain := m.length("dx"), m.pointer("dx"), m.pointer("dy"), m.pointer("x"), m.pointer("gain")
	m.VMULPS(rstd, along, along)
	m.each(n, 4, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		g, v := m.load(at(gain), t), m.load(at(x), t)
		m.VADDPS(base, g, g)
		m.VFMSUB132PS(m.load(at(dy), t), plain, g) // g*dy - plain
		m.VSUBPS(mean, v, v)
		m.VFNMADD231PS(along, v, g)
		m.VMULPS(rstd, g, g)
		m.store(g, at(dx), t)
	})
	m.leave()
}

// gainGrad adds the gradient by a norm's gain over some rows.
func (m *machine) gainGrad() {
	m.function("gainGrad", "(out, dy, x, mean, rstd []float32, stride int)",
		"\n\n\tfor j := range out { s := 0.0; for i := range mean { s += dy[i*stride+j] * (x[i*stride+j]-mean[i])*rstd[i] }; out[j] += s }\n\nwith s in float64.")
	n, out, dy, x := m.length("out"), m.pointer("out"), m.pointer("dy"), m.pointer("x")
	rows, mean, rstd := m.length("mean"), m.pointer("mean"), m.pointer("rstd")
	stride := m.Load(m.Param("stride"), m.GP64())
	m.columns(n, 2, func(i reg.Register, k int, t *tail) {
		sums, a, b, row := m.zeros(2*k), m.GP64(), m.GP64(), m.GP64()
		m.LEAQ(operand.Mem{Base: x, Index: i, Scale: 4}, a)
		m.LEAQ(operand.Mem{Base: dy, Index: i, Scale: 4}, b)
		m.XORQ(row, row)
		m.down(rows, func() {
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
