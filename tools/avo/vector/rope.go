package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ropes writes the rotation of pairs that are half of a row apart, in rows with a stride.
func ropes(m *machine) {
	m.function("rotate", "(cos, sin, y, x []float32, rows, stride, half int)", `

	for i, j := range [rows, len(cos)] {
		a, b := x[i*stride+j], x[i*stride+half+j]
		y[i*stride+j], y[i*stride+half+j] = a*cos[j]-b*sin[j], b*cos[j]+a*sin[j]
	}`)
	n, cos, sin, y, x := m.length("cos"), m.pointer("cos"), m.pointer("sin"), m.pointer("y"), m.pointer("x")
	rows, stride := m.Load(m.Param("rows"), m.GP64()), m.Load(m.Param("stride"), m.GP64())
	half := m.Load(m.Param("half"), m.GP64())
	m.columns(n, 2, func(i reg.Register, k int, t *tail) {
		var c, s []reg.VecVirtual
		for u := range k {
			c, s = append(c, m.load(m.place(i, u)(cos), t)), append(s, m.load(m.place(i, u)(sin), t))
		}
		from, to := m.GP64(), m.GP64()
		m.LEAQ(operand.Mem{Base: x, Index: i, Scale: 4}, from)
		m.LEAQ(operand.Mem{Base: y, Index: i, Scale: 4}, to)
		m.down(rows, func() {
			for u := range k {
				at := func(p reg.Register, second bool) operand.Mem {
					if second {
						return operand.Mem{Base: p, Index: half, Scale: 4, Disp: 4 * u * m.lanes}
					}
					return operand.Mem{Base: p, Disp: 4 * u * m.lanes}
				}
				a, b, p, q := m.load(at(from, false), t), m.load(at(from, true), t), m.vec(), m.vec()
				m.VMULPS(b, s[u], p)
				m.VMULPS(a, s[u], q)
				m.VFMSUB231PS(a, c[u], p)
				m.VFMADD231PS(b, c[u], q)
				m.store(p, at(to, false), t)
				m.store(q, at(to, true), t)
			}
		}, func() {
			m.LEAQ(operand.Mem{Base: from, Index: stride, Scale: 4}, from)
			m.LEAQ(operand.Mem{Base: to, Index: stride, Scale: 4}, to)
		})
	})
	m.leave()
}
