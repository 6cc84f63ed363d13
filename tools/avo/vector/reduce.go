package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// half returns the lower half of a vector register.
func half(v reg.VecVirtual) reg.Register {
	if v.Size() == 64 {
		return v.AsY()
	}
	return v.AsX()
}

// widen converts a vector of float32s to two of float64s, in the order of the elements.
func (m *machine) widen(v reg.VecVirtual) (lo, hi reg.VecVirtual) {
	lo, hi = m.vec(), m.vec()
	m.VCVTPS2PD(half(v), lo)
	if m.zmm {
		m.VEXTRACTF64X4(operand.U8(1), v, hi.AsY())
	} else {
		m.VEXTRACTF128(operand.U8(1), v, hi.AsX())
	}
	m.VCVTPS2PD(half(hi), hi)
	return lo, hi
}

// zeros returns n registers of zeros.
func (m *machine) zeros(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = m.zero()
	}
	return v
}

// fold reduces registers to one with op, in a fixed order.
func (m *machine) fold(v []reg.VecVirtual, op func(...operand.Op)) reg.VecVirtual {
	for n := len(v); n > 1; n /= 2 {
		for i := range n / 2 {
			op(v[i+n/2], v[i], v[i])
		}
	}
	return v[0]
}

// across reduces the lanes of v to its first one with op: halves, quarters, and so on. wide says that lanes
// have 64 bits.
func (m *machine) across(v reg.VecVirtual, wide bool, op func(...operand.Op)) reg.VecVirtual {
	h := m.vec()
	if m.zmm {
		m.VEXTRACTF64X4(operand.U8(1), v, h.AsY())
		op(h.AsY(), v.AsY(), v.AsY())
		m.VEXTRACTF32X4(operand.U8(1), v.AsY(), h.AsX()) // VEXTRACTF128 supports only 16 registers
	} else {
		m.VEXTRACTF128(operand.U8(1), v.AsY(), h.AsX())
	}
	op(h.AsX(), v.AsX(), v.AsX())
	m.VPSHUFD(operand.U8(0x4e), v.AsX(), h.AsX())
	op(h.AsX(), v.AsX(), v.AsX())
	if !wide {
		m.VPSHUFD(operand.U8(0xb1), v.AsX(), h.AsX())
		op(h.AsX(), v.AsX(), v.AsX())
	}
	return v
}

// spread copies a register's first lane to all.
func (m *machine) spread(v reg.VecVirtual) reg.VecVirtual {
	m.VBROADCASTSS(v.AsX(), v)
	return v
}

// give returns the first lane of v as a result of the function.
func (m *machine) give(v reg.VecVirtual, result string) { m.Store(v.AsX(), m.Return(result)) }

// reductions writes sums in a fixed order, whatever the length: element i goes to lane i mod
// (unroll*lanes).
func reductions(m *machine) {
	wideSum := func(name, loop string, term func(v, sum reg.VecVirtual)) {
		m.function(name, "(x []float32) (s float64)", "\n\n\tfor i := range x { "+loop+" }\n\nin float64.")
		n, x := m.length("x"), m.pointer("x")
		sums := m.zeros(4)
		m.each(n, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			m.askOn(at(x))
			lo, hi := m.widen(m.load(at(x), t))
			term(lo, sums[2*u])
			term(hi, sums[2*u+1])
		})
		m.give(m.across(m.fold(sums, m.VADDPD), true, m.VADDPD), "s")
		m.leave()
	}
	wideSum("sum", "s += x[i]", func(v, sum reg.VecVirtual) { m.VADDPD(v, sum, sum) })
	wideSum("sumSquares", "s += x[i]*x[i]", func(v, sum reg.VecVirtual) { m.VFMADD231PD(v, v, sum) })

	m.function("largest", "(x []float32, least float32) (top float32)",
		"\n\n\ttop = least; for i := range x { top = max(top, x[i]) }\n\nof the x[i] that are numbers.")
	n, x := m.length("x"), m.pointer("x")
	tops := []reg.VecVirtual{m.scalar("least"), m.scalar("least"), m.scalar("least"), m.scalar("least")}
	m.each(n, 4, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		v := m.load(at(x), t)
		if t != nil {
			v = m.choose(t, v, m.scalar("least"))
		}
		m.VMAXPS(tops[u], v, tops[u]) // the second operand, if one is NaN
	})
	m.give(m.across(m.fold(tops, m.VMAXPS), false, m.VMAXPS), "top")
	m.leave()

	m.sumExp()
	m.element("expScale", "(y, a []float32, shift, factor float32)", "y[i] = factor * e^(a[i]-shift)", []string{"a"}, 2,
		[][]float32{expTop, expReduce, expPoly}, func(v []reg.VecVirtual) reg.VecVirtual {
			m.VSUBPS(m.scalar("shift"), v[0], v[0])
			e := m.exp(v[0])
			m.VMULPS(m.scalar("factor"), e, e)
			return e
		})
	m.expPart()
	m.sumRows()
}

// expPart writes the exponentials of a part of a softmax row relative to its maximum, and their sum. Lanes
// of some vectors are added as float32 first and then in float64, because widening costs as much as an
// exponential. It prefetches like sumExp.
func (m *machine) expPart() {
	m.function("expPart", "(y, a []float32, shift float32) (s float64)", `

	for i := range y { y[i] = e^(a[i]-shift); s += y[i] }

with the sum in float64 of sums of up to four in float32. No a[i] is above shift.`)
	m.hold(expTop[1:], expReduce, expPoly)
	left, y, a, next := m.length("y"), m.pointer("y"), m.pointer("a"), m.GP64()
	m.LEAQ(operand.Mem{Base: a, Index: left, Scale: 4}, next)
	shift, sums := m.scalar("shift"), m.zeros(2)
	exps := make([]reg.VecVirtual, m.both(4))
	body := func(at func(reg.Register) operand.Mem, u int, t *tail) {
		v := m.load(at(a), t)
		m.PREFETCHT1(at(next))
		m.VSUBPS(shift, v, v)
		exps[u] = m.expBelow(v)
		m.keep(exps[u], t)
		m.store(exps[u], at(y), t)
	}
	sum := func(e reg.VecVirtual) {
		lo, hi := m.widen(e)
		m.VADDPD(lo, sums[0], sums[0])
		m.VADDPD(hi, sums[1], sums[1])
	}
	l, i := m.labels("several"), m.GP64()
	many := len(exps) * m.lanes
	m.XORQ(i, i)
	m.Label(l("loop"))
	m.CMPQ(left, operand.I32(many))
	m.JLT(operand.LabelRef(l("end")))
	m.woven(len(exps), func(u int) { body(m.place(i, u), u, nil) })
	sum(m.fold(exps, m.VADDPS))
	m.ADDQ(operand.I32(many), i)
	m.SUBQ(operand.I32(many), left)
	m.JMP(operand.LabelRef(l("loop")))
	m.Label(l("end"))
	for _, base := range []reg.Register{y, a, next} {
		m.LEAQ(operand.Mem{Base: base, Index: i, Scale: 4}, base)
	}
	m.each(left, 1, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		body(at, 0, t)
		sum(exps[0])
	})
	m.give(m.across(m.fold(sums, m.VADDPD), true, m.VADDPD), "s")
	m.leave()
}

// sumExp writes the sum of a softmax row. It is bound by computation, and therefore prefetches as many
// bytes after the row as it reads: mostly the next row.
func (m *machine) sumExp() {
	m.function("sumExp", "(x []float32, shift float32) (s float64)",
		"\n\n\tfor i := range x { s += e^(x[i]-shift) }\n\nwith the sum in float64.")
	m.hold(expTop, expReduce, expPoly)
	n, x := m.length("x"), m.pointer("x")
	sums, next := m.zeros(4), m.GP64()
	m.LEAQ(operand.Mem{Base: x, Index: n, Scale: 4}, next)
	m.each(n, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
		v := m.load(at(x), t)
		m.PREFETCHT1(at(next))
		m.VSUBPS(m.scalar("shift"), v, v)
		e := m.exp(v)
		m.keep(e, t)
		lo, hi := m.widen(e)
		m.VADDPD(lo, sums[2*u], sums[2*u])
		m.VADDPD(hi, sums[2*u+1], sums[2*u+1])
	})
	m.give(m.across(m.fold(sums, m.VADDPD), true, m.VADDPD), "s")
	m.leave()
}

// onAhead is how many bytes ahead a loop over one slice prefetches: the hardware prefetcher stops at the
// end of a page.
const onAhead = 2048

// askOn prefetches what lies this far after a vector. Nothing is read, so it need not exist.
func (m *machine) askOn(at operand.Mem) {
	at.Disp += onAhead
	m.PREFETCHT0(at)
}

// choose returns v in the lanes of a tail and other in the rest.
func (m *machine) choose(t *tail, v, other reg.VecVirtual) reg.VecVirtual {
	if m.zmm {
		m.VBLENDMPS(v, other, t.k, v)
	} else {
		m.VBLENDVPS(t.v, v, other, v)
	}
	return v
}

// columns runs body over the columns of rows of n elements. body sums rows for up to unroll vectors at a
// time; it gets their beginning and the mask of the last one.
func (m *machine) columns(n reg.Register, unroll int, body func(i reg.Register, k int, t *tail)) {
	l := m.labels("columns")
	i, left := m.GP64(), m.GP64()
	m.XORQ(i, i)
	m.MOVQ(n, left)
	for _, k := range []int{unroll, 1} {
		name := l([]string{"one", "many"}[min(k-1, 1)])
		m.Label(name)
		m.CMPQ(left, operand.I32(k*m.lanes))
		m.JLT(operand.LabelRef(name + "end"))
		body(i, k, nil)
		m.ADDQ(operand.I32(k*m.lanes), i)
		m.SUBQ(operand.I32(k*m.lanes), left)
		m.JMP(operand.LabelRef(name))
		m.Label(name + "end")
	}
	m.TESTQ(left, left)
	m.JE(operand.LabelRef(l("done")))
	body(i, 1, m.tail(left))
	m.Label(l("done"))
}

// down runs body once for each of rows rows, which may be zero. next advances its pointers.
func (m *machine) down(rows reg.Register, body func(), next func()) {
	l := m.labels("down")
	left := m.GP64()
	m.MOVQ(rows, left)
	m.Label(l("row"))
	m.TESTQ(left, left)
	m.JE(operand.LabelRef(l("done")))
	body()
	next()
	m.DECQ(left)
	m.JMP(operand.LabelRef(l("row")))
	m.Label(l("done"))
}

// rowsAhead is how many rows ahead memory is prefetched in sums over rows of some columns: the rows are too
// far apart for the hardware prefetcher.
const rowsAhead = 16

// ahead returns the distance of rowsAhead rows in bytes, for rows that are stride elements apart.
func (m *machine) ahead(stride reg.Register) reg.Register {
	bytes := m.GP64()
	m.IMUL3Q(operand.I32(4*rowsAhead), stride, bytes)
	return bytes
}

// ask prefetches k vectors at this distance after a row. Nothing is read, so they need not exist.
func (m *machine) ask(row, ahead reg.Register, k int) {
	for at := 0; at < 4*k*m.lanes; at += 64 {
		m.PREFETCHT0(operand.Mem{Base: row, Index: ahead, Scale: 1, Disp: at})
	}
}

// addWide adds float64 sums, two registers for each vector, to the float32s at out.
func (m *machine) addWide(sums []reg.VecVirtual, out func(u int) operand.Mem, t *tail) {
	for u := range len(sums) / 2 {
		v := m.load(out(u), t)
		m.VADDPS(m.narrow(sums[2*u], sums[2*u+1]), v, v)
		m.store(v, out(u), t)
	}
}

// narrow converts two vectors of float64s to one of float32s.
func (m *machine) narrow(lo, hi reg.VecVirtual) reg.VecVirtual {
	v, h := m.vec(), m.vec()
	if m.zmm {
		m.VCVTPD2PS(lo, v.AsY())
		m.VCVTPD2PS(hi, h.AsY())
		m.VINSERTF64X4(operand.U8(1), h.AsY(), v, v)
	} else {
		m.VCVTPD2PSY(lo, v.AsX())
		m.VCVTPD2PSY(hi, h.AsX())
		m.VINSERTF128(operand.U8(1), h.AsX(), v, v)
	}
	return v
}

// sumRows writes the sum over rows of each column.
func (m *machine) sumRows() {
	m.function("sumRows", "(out, x []float32, rows, stride int)",
		"\n\n\tfor j := range out { s := 0.0; for i := range rows { s += x[i*stride+j] }; out[j] += s }\n\nwith s "+
			"in float64.")
	n, out, x := m.length("out"), m.pointer("out"), m.pointer("x")
	rows, stride := m.Load(m.Param("rows"), m.GP64()), m.Load(m.Param("stride"), m.GP64())
	ahead := m.ahead(stride)
	m.columns(n, 4, func(i reg.Register, k int, t *tail) {
		sums, at := m.zeros(2*k), m.GP64()
		m.LEAQ(operand.Mem{Base: x, Index: i, Scale: 4}, at)
		m.down(rows, func() {
			m.ask(at, ahead, k)
			for u := range k {
				lo, hi := m.widen(m.load(operand.Mem{Base: at, Disp: 4 * u * m.lanes}, t))
				m.VADDPD(lo, sums[2*u], sums[2*u])
				m.VADDPD(hi, sums[2*u+1], sums[2*u+1])
			}
		}, func() { m.LEAQ(operand.Mem{Base: at, Index: stride, Scale: 4}, at) })
		m.addWide(sums, func(u int) operand.Mem { return m.place(i, u)(out) }, t)
	})
	m.leave()
}
