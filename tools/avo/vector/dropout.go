package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The constants of package rng (rng.go): the counter's step, and mix's two factors.
const (
	mixOne = 0xBF58476D1CE4E5B9
	mixTwo = 0x94D049BB133111EB
)

var goldenStep uint64 = 0x9E3779B97F4A7C15 // a variable, so that its multiples wrap

// dropouts writes the choice of rng.Keep for a row, with the same bits.
func dropouts(m *machine) {
	m.function("drop", "(y, x []float32, first, turned, least uint64, factor float32)", `

	for i := range y {
		bits := mix(mix(first + i*golden) ^ turned)
		y[i] = factor * x[i] if bits>>11 >= least, else 0
	}

with golden and mix of package rng. least is at most 1<<53.`)
	n, y, x := m.length("y"), m.pointer("y"), m.pointer("x")
	factor := m.scalar("factor")
	wide := func(name string) reg.VecVirtual {
		p, err := m.Param(name).Resolve()
		if err != nil {
			panic(err)
		}
		v := m.vec()
		m.VPBROADCASTQ(p.Addr, v)
		return v
	}
	turned, least := wide("turned"), wide("least")
	counters := []reg.VecVirtual{wide("first"), wide("first")}
	for h, c := range counters {
		m.VPADDQ(m.quads(m.strides(h*m.lanes/2)), c, c)
	}
	m.each(n, 1, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		v := m.load(at(x), t)
		m.VMULPS(factor, v, v)
		var bits [2]reg.VecVirtual
		for h, c := range counters {
			bits[h] = m.vec()
			m.VMOVUPS(c, bits[h])
			m.VPADDQ(m.quad(uint64(m.lanes)*goldenStep), c, c)
			m.mix(bits[h])
			m.xor(turned, bits[h])
			m.mix(bits[h])
			m.VPSRLQ(operand.U8(11), bits[h], bits[h])
		}
		m.dropBelow(v, bits, least)
		m.store(v, at(y), t)
	})
	m.leave()
}

// strides returns the counter's steps to 8 elements from element first on.
func (m *machine) strides(first int) (q [8]uint64) {
	for i := range q {
		q[i] = uint64(first+i) * goldenStep
	}
	return q
}

// mix computes package rng's mix in 64-bit lanes, in place.
func (m *machine) mix(z reg.VecVirtual) {
	high := m.vec()
	for _, r := range []struct {
		shift  uint8
		factor uint64
	}{{30, mixOne}, {27, mixTwo}, {31, 1}} {
		m.VPSRLQ(operand.U8(r.shift), z, high)
		m.xor(high, z)
		if r.factor != 1 {
			m.times(z, r.factor)
		}
	}
}

// xor computes z ^= x.
func (m *machine) xor(x, z reg.VecVirtual) {
	if m.zmm {
		m.VPXORQ(x, z, z)
	} else {
		m.VPXOR(x, z, z)
	}
}

// times multiplies 64-bit lanes. AVX2 only multiplies 32 bits: three of four partial products matter.
func (m *machine) times(z reg.VecVirtual, factor uint64) {
	if m.zmm {
		m.VPMULLQ(m.quad(factor), z, z)
		return
	}
	cross, low := m.vec(), m.vec()
	m.VPSRLQ(operand.U8(32), z, cross)
	m.VPMULUDQ(m.quad(factor), cross, cross)
	m.VPMULUDQ(m.quad(factor>>32), z, low)
	m.VPADDQ(low, cross, cross)
	m.VPSLLQ(operand.U8(32), cross, cross)
	m.VPMULUDQ(m.quad(factor), z, z)
	m.VPADDQ(cross, z, z)
}

// dropBelow zeroes the elements of v whose bits, in two halves of 64-bit lanes, are below least.
func (m *machine) dropBelow(v reg.VecVirtual, bits [2]reg.VecVirtual, least reg.VecVirtual) {
	if m.zmm {
		const notBelow = 5
		lo, hi := m.K(), m.K()
		m.VPCMPUQ(operand.U8(notBelow), least, bits[0], lo)
		m.VPCMPUQ(operand.U8(notBelow), least, bits[1], hi)
		m.KUNPCKBW(lo, hi, lo)
		m.VMOVAPS_Z(v, lo, v)
		return
	}
	for _, b := range bits {
		m.VPCMPGTQ(b, least, b)
	}
	m.VSHUFPS(operand.U8(0x88), bits[1], bits[0], bits[0]) // the lower words, by halves of the register
	m.VPERMQ(operand.U8(0xd8), bits[0], bits[0])
	m.VPANDN(v, bits[0], v)
}
