package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// element writes a kernel that computes each element of its first slice from those of the others. consts
// are kept in registers if there are enough. f may destroy its operands.
func (m *machine) element(name, args, loop string, sources []string, unroll int, consts [][]float32,
	f func(x []reg.VecVirtual) reg.VecVirtual) {
	m.function(name, args, "\n\n\tfor i := range y { "+loop+" }")
	m.hold(consts...)
	n, y := m.length("y"), m.pointer("y")
	var from []reg.Register
	for _, s := range sources {
		from = append(from, m.pointer(s))
	}
	m.each(n, unroll, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		var x []reg.VecVirtual
		for _, p := range from {
			x = append(x, m.load(at(p), t))
		}
		m.store(f(x), at(y), t)
	})
	m.leave()
}

// elementRows writes the kernel that does the same for some columns of rows with a stride. Separate calls
// would load the constants for each row.
func (m *machine) elementRows(name, args, loop string, sources []string, unroll int, consts [][]float32,
	f func(x []reg.VecVirtual) reg.VecVirtual) {
	m.function(name, args, "\n\n\tfor r, j := range [rows, cols] { i := r*stride + j; "+loop+" }")
	m.hold(consts...)
	rows, y := m.GP64(), m.pointer("y")
	m.Load(m.Param("rows"), rows)
	from := []reg.Register{y}
	for _, s := range sources {
		from = append(from, m.pointer(s))
	}
	cols, stride := m.matrix()
	ahead := m.GP64()
	m.IMUL3Q(operand.I32(rowsAhead), stride, ahead)
	one := func(at func(reg.Register) operand.Mem, t *tail) {
		var x []reg.VecVirtual
		for _, p := range from[1:] {
			x = append(x, m.load(at(p), t))
		}
		m.store(f(x), at(y), t)
	}
	next := func() {
		for _, p := range from {
			m.ADDQ(stride, p)
		}
	}
	if unroll > panelVectors {
		m.pairs(rows, cols, func() {
			m.woven(unroll, func(u int) {
				one(func(p reg.Register) operand.Mem {
					at := operand.Mem{Base: p, Disp: 4 * m.lanes * (u % panelVectors)}
					if u >= panelVectors {
						at.Index, at.Scale = stride, 1
					}
					return at
				}, nil)
			})
			for range 2 {
				m.askSecond(from, ahead)
				next()
			}
		})
	}
	m.down(rows, func() {
		for _, p := range from {
			m.ask(p, ahead, panelVectors)
		}
		m.each(cols, panelVectors, func(at func(reg.Register) operand.Mem, _ int, t *tail) { one(at, t) })
	}, next)
	m.leave()
}

// panelVectors is the number of vectors per row of a matmul's panel, the usual case of rows with a stride.
const panelVectors = 2

// askSecond prefetches rows that follow those of a panel into the second-level cache. In the first-level
// cache, rows whose distance is a power of 2 share a few sets, and the next rows of two or three matrices
// would evict those in use.
func (m *machine) askSecond(rows []reg.Register, ahead reg.Register) {
	for _, row := range rows {
		for at := 0; at < 4*panelVectors*m.lanes; at += 64 {
			m.PREFETCHT1(operand.Mem{Base: row, Index: ahead, Scale: 1, Disp: at})
		}
	}
}

// pairs runs body for two rows of a panel, as long as there are two.
func (m *machine) pairs(rows, cols reg.Register, body func()) {
	l := m.labels("pairs")
	m.CMPQ(cols, operand.I32(panelVectors*m.lanes))
	m.JNE(operand.LabelRef(l("done")))
	m.Label(l("two"))
	m.CMPQ(rows, operand.I32(2))
	m.JLT(operand.LabelRef(l("done")))
	body()
	m.SUBQ(operand.I32(2), rows)
	m.JMP(operand.LabelRef(l("two")))
	m.Label(l("done"))
}

// leave ends a function.
func (m *machine) leave() {
	m.VZEROUPPER()
	m.RET()
}

// arithmetic writes loops of one operation.
func arithmetic(m *machine) {
	of := func(op func(...operand.Op)) func(x []reg.VecVirtual) reg.VecVirtual {
		return func(x []reg.VecVirtual) reg.VecVirtual {
			op(x[1], x[0], x[0])
			return x[0]
		}
	}
	two := func(name, loop string, op func(...operand.Op)) {
		m.element(name, "(y, a, b []float32)", loop, []string{"a", "b"}, 4, nil, of(op))
	}
	two("add", "y[i] = a[i] + b[i]", m.VADDPS)
	m.elementRows("addRows", "(y, a, b []float32, rows, cols, stride int)", "y[i] = a[i] + b[i]", []string{"a", "b"},
		2, nil, of(m.VADDPS))
	two("sub", "y[i] = a[i] - b[i]", m.VSUBPS)
	two("mul", "y[i] = a[i] * b[i]", m.VMULPS)
	m.element("scale", "(y, a []float32, c float32)", "y[i] = c * a[i]", []string{"a"}, 4, nil,
		func(x []reg.VecVirtual) reg.VecVirtual {
			m.VMULPS(m.scalar("c"), x[0], x[0])
			return x[0]
		})
	m.element("relu", "(y, a []float32)", "y[i] = max(a[i], 0)", []string{"a"}, 4, nil,
		func(x []reg.VecVirtual) reg.VecVirtual {
			m.VMAXPS(x[0], m.zero(), x[0])
			return x[0]
		})
}

const (
	geluC = 0.79788456080286535588 // sqrt(2/π)
	geluA = 0.044715
)

// Factors of -2u/ln2, u = sqrt(2/π)(x + a x^3), and of the derivative of 2u.
var geluIn = []float32{-2 * geluC * math.Log2E, -2 * geluC * geluA * math.Log2E, 2 * geluC,
	6 * geluC * geluA, 1, finite}

// activations writes activations and their derivatives times the incoming gradient.
func activations(m *machine) {
	held, gelus := [][]float32{expTop, expReduce, expPoly, {1, finite}}, [][]float32{exp2Poly, geluIn}
	m.element("exp", "(y, a []float32)", "y[i] = e^a[i]", []string{"a"}, m.both(4), held,
		func(x []reg.VecVirtual) reg.VecVirtual {
			return m.exp(x[0])
		})
	const gelu, geluGrad = "y[i] = a[i] / (1 + e^-2u), u = sqrt(2/π)*(a[i] + 0.044715*a[i]^3)",
		"y[i] = dy[i] * (s + a[i]*s*(1-s)*2u'), s = 1/(1 + e^-2u)"
	m.element("gelu", "(y, a []float32)", gelu, []string{"a"}, m.both(4), gelus, m.gelu)
	m.elementRows("geluRows", "(y, a []float32, rows, cols, stride int)", gelu, []string{"a"}, m.both(4), gelus, m.gelu)
	m.element("geluGrad", "(y, dy, a []float32)", geluGrad, []string{"dy", "a"}, m.both(4), gelus, m.geluGrad)
	m.elementRows("geluGradRows", "(y, dy, a []float32, rows, cols, stride int)", geluGrad, []string{"dy", "a"},
		m.both(4), gelus, m.geluGrad)
	m.element("silu", "(y, a []float32)", "y[i] = a[i] / (1 + e^-a[i])", []string{"a"}, 2, held,
		func(x []reg.VecVirtual) reg.VecVirtual {
			return m.silu(x[0])
		})
	m.element("siluGrad", "(y, dy, a []float32)", "y[i] = dy[i] * (s + a[i]*s*(1-s)), s = 1/(1 + e^-a[i])",
		[]string{"dy", "a"}, 2, held,
		func(x []reg.VecVirtual) reg.VecVirtual {
			s, rest := m.sigmoid(m.negative(x[1]))
			return m.slope(x[0], s, rest, x[1])
		})
	m.element("siluMul", "(y, a, b []float32)", "y[i] = b[i] * a[i]/(1 + e^-a[i])", []string{"a", "b"}, 2, held,
		func(x []reg.VecVirtual) reg.VecVirtual {
			y := m.silu(x[0])
			m.VMULPS(x[1], y, y)
			return y
		})
	m.siluMulGrad(held)
	m.element("reluGrad", "(y, dy, a []float32)", "y[i] = dy[i] if a[i] > 0, else 0 * dy[i]", []string{"dy", "a"}, 4,
		nil, func(x []reg.VecVirtual) reg.VecVirtual {
			m.step(x[1])
			m.VMULPS(x[1], x[0], x[0])
			return x[0]
		})
}

// siluMulGrad writes both gradients of siluMul in one loop, with the operations, and thus the bits, of mul,
// silu and siluGrad.
func (m *machine) siluMulGrad(held [][]float32) {
	m.function("siluMulGrad", "(da, db, dy, a, b []float32)",
		"\n\n\tfor i := range da { da[i], db[i] = dy[i]*b[i] * (s + a[i]*s*(1-s)), dy[i] * a[i]/(1 + e^-a[i]), s = "+
			"1/(1 + e^-a[i]) }")
	m.hold(held...)
	n, da, db := m.length("da"), m.pointer("da"), m.pointer("db")
	dy, a, b := m.pointer("dy"), m.pointer("a"), m.pointer("b")
	m.each(n, 1, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		x, d, up := m.load(at(a), t), m.load(at(dy), t), m.load(at(b), t)
		m.VMULPS(d, up, up)
		y := m.silu(x)
		m.VMULPS(d, y, y)
		m.store(y, at(db), t)
		s, rest := m.sigmoid(m.negative(x))
		m.store(m.slope(up, s, rest, x), at(da), t)
	})
	m.leave()
}

// silu computes silu of a, which is preserved.
func (m *machine) silu(a reg.VecVirtual) reg.VecVirtual {
	e := m.exp(m.negative(a))
	m.VADDPS(m.c(1), e, e)
	m.VDIVPS(e, a, e)
	return e
}

// gelu computes gelu of x[0].
func (m *machine) gelu(x []reg.VecVirtual) reg.VecVirtual {
	e := m.exp2(m.geluExponent(x[0]))
	m.VADDPS(m.c(1), e, e)
	m.VDIVPS(e, x[0], e)
	return e
}

// geluGrad computes x[0] times gelu's derivative at x[1].
func (m *machine) geluGrad(x []reg.VecVirtual) reg.VecVirtual {
	dy, a := x[0], x[1]
	s, rest := m.sigmoidOf(m.exp2(m.geluExponent(a)))
	slope := m.vec()
	m.VMULPS(a, a, slope)
	m.VFMADD213PS(m.cv(geluIn[2]), m.cv(geluIn[3]), slope)
	m.VMULPS(a, slope, slope)
	return m.slope(dy, s, rest, slope)
}

// geluExponent computes -2u/ln2 of a, which is preserved.
func (m *machine) geluExponent(a reg.VecVirtual) reg.VecVirtual {
	u := m.vec()
	m.VMULPS(a, a, u)
	m.VFMADD213PS(m.cv(geluIn[0]), m.cv(geluIn[1]), u)
	m.VMULPS(a, u, u)
	return u
}

// negative computes -a; a is preserved.
func (m *machine) negative(a reg.VecVirtual) reg.VecVirtual {
	n := m.vec()
	m.VSUBPS(a, m.zero(), n)
	return n
}

// slope computes dy * (s + inner*s*rest).
func (m *machine) slope(dy, s, rest, inner reg.VecVirtual) reg.VecVirtual {
	m.VMULPS(s, rest, rest)
	m.VFMADD231PS(inner, rest, s)
	m.VMULPS(dy, s, s)
	return s
}

// step replaces a by 1 if a > 0, else 0.
func (m *machine) step(a reg.VecVirtual) {
	const greater = 0x1e // ordered, quiet
	if m.zmm {
		k := m.K()
		m.VCMPPS(operand.U8(greater), m.zero(), a, k)
		m.VMOVUPS_Z(m.word(math.Float32bits(1)), k, a)
		return
	}
	m.VCMPPS(operand.U8(greater), m.zero(), a, a)
	m.VANDPS(m.c(1), a, a)
}
