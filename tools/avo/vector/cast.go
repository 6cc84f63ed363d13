package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// casts writes conversions of whole vectors. Their callers process the rest, because AVX2 has no masks for
// 16-bit elements.
func casts(m *machine) {
	m.cast("fromBF16", "(y []float32, a []uint16)", "y[i] = the bfloat16 a[i]", func(from, to operand.Mem) {
		v := m.vec()
		m.VPMOVZXWD(from, v)
		m.VPSLLD(operand.U8(16), v, v)
		m.VMOVUPS(v, to)
	})
	m.cast("fromF16", "(y []float32, a []uint16)", "y[i] = the float16 a[i]", func(from, to operand.Mem) {
		v := m.vec()
		m.VCVTPH2PS(from, v)
		m.VMOVUPS(v, to)
	})
	m.cast("toBF16", "(y []uint16, a []float32)", "y[i] = the bfloat16 nearest to a[i], ties to even",
		func(from, to operand.Mem) {
			v := m.vec()
			m.VMOVUPS(from, v)
			m.bf16(v)
			if m.zmm {
				m.VPMOVDW(v, to)
				return
			}
			m.VPACKUSDW(v, v, v)
			m.VPERMQ(operand.U8(0x08), v, v)
			m.VMOVUPS(v.AsX(), to)
		})
	m.cast("toF16", "(y []uint16, a []float32)", "y[i] = the float16 nearest to a[i], ties to even",
		func(from, to operand.Mem) {
			v := m.vec()
			m.VMOVUPS(from, v)
			m.VCVTPS2PH(operand.U8(0), v, to)
		})
}

// cast writes a loop over the whole vectors of y.
func (m *machine) cast(name, args, loop string, body func(from, to operand.Mem)) {
	m.function(name, args, "\n\n\tfor i := range y { "+loop+" }\n\nlen(y) must be a multiple of "+
		map[bool]string{false: "8", true: "16"}[m.zmm]+".")
	n, y, a := m.length("y"), m.pointer("y"), m.pointer("a")
	into, from := 4, 2
	if name[:2] == "to" {
		into, from = 2, 4
	}
	l := m.labels("cast")
	i := m.GP64()
	m.XORQ(i, i)
	m.Label(l("next"))
	m.CMPQ(i, n)
	m.JGE(operand.LabelRef(l("done")))
	body(operand.Mem{Base: a, Index: i, Scale: uint8(from)}, operand.Mem{Base: y, Index: i, Scale: uint8(into)})
	m.ADDQ(operand.I32(m.lanes), i)
	m.JMP(operand.LabelRef(l("next")))
	m.Label(l("done"))
	m.leave()
}

// bf16 computes in each lane the bits of the nearest bfloat16: half of the last kept bit is added, less one
// if that bit is even. A NaN keeps its upper bits and becomes quiet.
func (m *machine) bf16(v reg.VecVirtual) {
	up, quiet := m.vec(), m.vec()
	m.VPSRLD(operand.U8(16), v, up)
	if m.zmm {
		m.VPANDD(m.w(1), up, up)
	} else {
		m.VPAND(m.w(1), up, up)
	}
	m.VPADDD(m.w(0x7fff), up, up)
	m.VPADDD(v, up, up)
	m.VPSRLD(operand.U8(16), up, up)
	m.VPSRLD(operand.U8(16), v, quiet)
	const unordered = 3
	if m.zmm {
		k := m.K()
		m.VPORD(m.w(0x40), quiet, quiet)
		m.VCMPPS(operand.U8(unordered), v, v, k)
		m.VPBLENDMD(quiet, up, k, v)
		return
	}
	m.VPOR(m.w(0x40), quiet, quiet)
	m.VCMPPS(operand.U8(unordered), v, v, v)
	m.VBLENDVPS(v, quiet, up, v)
}
