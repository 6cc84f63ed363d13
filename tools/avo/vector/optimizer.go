package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// optimizers writes adam, the common part of Adam and AdamW, with the numbers of a step.
func optimizers(m *machine) {
	m.function("adam", "(p, g, m, v []float32, k *[10]float32)", `

	scale, decay, b1, c1, b2, c2, keep, step, root, eps := k[0], ..., k[9]
	for i := range p {
		d := g[i]*scale + decay*p[i]
		m[i] = b1*m[i] + c1*d
		v[i] = b2*v[i] + c2*d*d
		p[i] = keep*p[i] - step*m[i]/(sqrt(v[i])*root + eps)
	}`)
	n, p, g, first, second := m.length("p"), m.pointer("p"), m.pointer("g"), m.pointer("m"), m.pointer("v")
	at := m.Load(m.Param("k"), m.GP64())
	number := map[string]operand.Op{}
	for i, name := range []string{"Scale", "Decay", "B1", "C1", "B2", "C2", "Keep", "Step", "Root", "Eps"} {
		v := m.vec()
		m.VBROADCASTSS(operand.Mem{Base: at, Disp: 4 * i}, v)
		number[name] = v
	}
	m.each(n, 1, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		x, d := m.load(at(p), t), m.load(at(g), t)
		m.VMULPS(number["Scale"], d, d)
		m.VFMADD231PS(number["Decay"], x, d)
		mi := m.load(at(first), t)
		m.VMULPS(number["B1"], mi, mi)
		m.VFMADD231PS(number["C1"], d, mi)
		m.store(mi, at(first), t)
		vi := m.load(at(second), t)
		m.VMULPS(d, d, d)
		m.VMULPS(number["B2"], vi, vi)
		m.VFMADD231PS(number["C2"], d, vi)
		m.store(vi, at(second), t)
		m.VSQRTPS(vi, vi)
		m.VFMADD213PS(number["Eps"], number["Root"], vi)
		m.VMULPS(number["Step"], mi, mi)
		m.VDIVPS(vi, mi, mi)
		m.VFMSUB132PS(number["Keep"], mi, x) // x = x*Keep - mi
		m.store(x, at(p), t)
	})
	m.leave()
}
