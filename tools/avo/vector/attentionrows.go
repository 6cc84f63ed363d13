package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops here process all rows of a block of scores in one call, so that the next row's work fills the
// latency of one row.

// least is below every shift of a row that has a score: e^(-Inf - least) is 0, whereas -Inf - -Inf would be
// NaN.
const least = -3e38

// matrix loads parameters cols and stride, the latter in bytes.
func (m *machine) matrix() (cols, stride reg.GPVirtual) {
	cols, stride = m.GP64(), m.GP64()
	m.Load(m.Param("cols"), cols)
	m.Load(m.Param("stride"), stride)
	m.SHLQ(operand.U8(2), stride)
	return cols, stride
}

// unseen zeroes elements n to cols-1 of rows.
func (m *machine) unseen(n, cols reg.Register, rows ...reg.Register) {
	from, left, zero := m.GP64(), m.GP64(), m.zero()
	m.MOVQ(cols, left)
	m.SUBQ(n, left)
	m.each(left, 1, func(at func(reg.Register) operand.Mem, _ int, t *tail) {
		for _, row := range rows {
			m.LEAQ(operand.Mem{Base: row, Index: n, Scale: 4}, from)
			m.store(zero, at(from), t)
		}
	})
}

// topRows writes the maxima of rows of scores. A row's maximum is a chain of dependent steps, and its
// exponentials depend on it. Therefore they are separate loops, in each of which the next rows' work fills
// the latency.
func (m *machine) topRows() {
	m.function("topRows", "(top, x []float32, seen []int, stride int, scale float32)", `

	for i, n := range seen { for j := range n { top[i] = max(top[i], scale*x[i*stride+j]) } }

ignoring NaN. scale must be above 0.`)
	low := float32(math.Inf(-1))
	m.hold([]float32{low})
	rows, seen, x := m.length("seen"), m.pointer("seen"), m.pointer("x")
	stride := m.GP64()
	m.Load(m.Param("stride"), stride)
	scale, top := m.scalar("scale"), m.pointer("top")
	m.down(rows, func() {
		n := m.GP64()
		m.MOVQ(operand.Mem{Base: seen}, n)
		tops := make([]reg.VecVirtual, 4)
		for i := range tops {
			tops[i] = m.vec()
			m.move(m.c(low), tops[i])
		}
		m.each(n, len(tops), func(at func(reg.Register) operand.Mem, u int, t *tail) {
			v := m.load(at(x), t)
			if t != nil {
				v = m.choose(t, v, m.cv(low))
			}
			m.VMAXPS(tops[u], v, tops[u]) // the second operand, if one is NaN
		})
		most := m.across(m.fold(tops, m.VMAXPS), false, m.VMAXPS).AsX()
		m.VMULSS(scale.AsX(), most, most)
		m.VMAXSS(operand.Mem{Base: top}, most, most)
		m.VMOVSS(most, operand.Mem{Base: top})
	}, func() {
		m.ADDQ(operand.U8(8), seen)
		m.ADDQ(operand.U8(4), top)
		m.LEAQ(operand.Mem{Base: x, Index: stride, Scale: 4}, x)
	})
	m.leave()
}

// expRows writes the exponentials of rows of scores, with their sums.
func (m *machine) expRows() {
	m.function("expRows", "(x []float32, seen []int, cols, stride int, scale float32, top []float32, sum []float64)", `

	for i, n := range seen {
		row := x[i*stride:][:cols]
		for j := range n { row[j] = e^(scale*row[j]-top[i]) }
		clear(row[n:]); sum[i] = the sum of row
	}

with exponentials of -Inf 0 whatever top[i] is, and sums in float64. No scale*row[j] is above top[i].`)
	m.hold([]float32{least}, expTop[1:], expReduce, expPoly)
	rows, seen, x := m.length("seen"), m.pointer("seen"), m.pointer("x")
	cols, stride := m.matrix()
	scale, top, sum := m.scalar("scale"), m.pointer("top"), m.pointer("sum")
	m.down(rows, func() {
		n, shift := m.GP64(), m.vec()
		m.MOVQ(operand.Mem{Base: seen}, n)
		m.VBROADCASTSS(operand.Mem{Base: top}, shift)
		m.VMAXPS(m.c(least), shift, shift)
		sums := m.zeros(4)
		m.each(n, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			v := m.load(at(x), t)
			m.VFMSUB213PS(shift, scale, v)
			e := m.expBelow(v)
			m.keep(e, t)
			m.store(e, at(x), t)
			lo, hi := m.widen(e)
			m.VADDPD(lo, sums[2*u], sums[2*u])
			m.VADDPD(hi, sums[2*u+1], sums[2*u+1])
		})
		m.VMOVSD(m.across(m.fold(sums, m.VADDPD), true, m.VADDPD).AsX(), operand.Mem{Base: sum})
		m.unseen(n, cols, x)
	}, func() {
		m.ADDQ(operand.U8(8), seen)
		m.ADDQ(operand.U8(4), top)
		m.ADDQ(operand.U8(8), sum)
		m.ADDQ(stride, x)
	})
	m.leave()
}

// gradRows writes rows of weights and the gradient of their scores.
func (m *machine) gradRows() {
	m.function("gradRows", "(p, dp []float32, seen []int, cols, stride int, scale, factor float32, shift, d "+
		"[]float32)", `

	for i := range seen {
		row, grad, n := p[i*stride:][:cols], dp[i*stride:][:cols], seen[i]
		for j := range n {
			row[j] = e^(scale*row[j]-shift[i])
			grad[j] = row[j] * (grad[j]-d[i]) * factor
		}
		clear(row[n:]); clear(grad[n:])
	}`)
	m.hold(expTop, expReduce, expPoly)
	rows, seen, p, dp := m.length("seen"), m.pointer("seen"), m.pointer("p"), m.pointer("dp")
	cols, stride := m.matrix()
	scale, factor, shifts, ds := m.scalar("scale"), m.scalar("factor"), m.pointer("shift"), m.pointer("d")
	m.down(rows, func() {
		n, shift, d := m.GP64(), m.vec(), m.vec()
		m.MOVQ(operand.Mem{Base: seen}, n)
		m.VBROADCASTSS(operand.Mem{Base: shifts}, shift)
		m.VBROADCASTSS(operand.Mem{Base: ds}, d)
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
		m.unseen(n, cols, p, dp)
	}, func() {
		m.ADDQ(operand.U8(8), seen)
		m.ADDQ(operand.U8(4), shifts)
		m.ADDQ(operand.U8(4), ds)
		m.ADDQ(stride, p)
		m.ADDQ(stride, dp)
	})
	m.leave()
}

// dotRows writes the dot products of two matrices' rows.
func (m *machine) dotRows() {
	m.function("dotRows", "(d, x, y []float32, cols, stride, yStride int)",
		"\n\n\tfor i := range d { d[i] = sum_{j < cols} x[i*stride+j]*y[i*yStride+j] }\n\nwith sums in float64.")
	rows, d, x, y := m.length("d"), m.pointer("d"), m.pointer("x"), m.pointer("y")
	cols, stride := m.matrix()
	yStride := m.GP64()
	m.Load(m.Param("yStride"), yStride)
	m.down(rows, func() {
		sums := m.zeros(4)
		m.each(cols, 2, func(at func(reg.Register) operand.Mem, u int, t *tail) {
			xl, xh := m.widen(m.load(at(x), t))
			yl, yh := m.widen(m.load(at(y), t))
			m.VFMADD231PD(xl, yl, sums[2*u])
			m.VFMADD231PD(xh, yh, sums[2*u+1])
		})
		sum := m.across(m.fold(sums, m.VADDPD), true, m.VADDPD).AsX()
		m.VCVTSD2SS(sum, sum, sum)
		m.VMOVSS(sum, operand.Mem{Base: d})
	}, func() {
		m.ADDQ(operand.U8(4), d)
		m.ADDQ(stride, x)
		m.LEAQ(operand.Mem{Base: y, Index: yStride, Scale: 4}, y)
	})
	m.leave()
}

// askRows writes the prefetching of rows. The last line may begin in the row and end behind it.
func (m *machine) askRows() {
	m.function("askRows", "(x []float32, rows, cols, stride int)", `

	for i := range rows { prefetch x[i*stride:][:cols] }

into the second-level cache. Nothing is read, and the rows need not exist.`)
	x, rows := m.pointer("x"), m.GP64()
	m.Load(m.Param("rows"), rows)
	cols, stride := m.matrix()
	m.SHLQ(operand.U8(2), cols)
	m.down(rows, func() {
		line, end := m.GP64(), m.GP64()
		m.MOVQ(x, line)
		m.ANDQ(operand.I8(-64), line)
		m.LEAQ(operand.Mem{Base: x, Index: cols, Scale: 1}, end)
		l := m.labels("ask")
		m.Label(l("line"))
		m.CMPQ(line, end)
		m.JAE(operand.LabelRef(l("done")))
		m.PREFETCHT1(operand.Mem{Base: line})
		m.ADDQ(operand.U8(64), line)
		m.JMP(operand.LabelRef(l("line")))
		m.Label(l("done"))
	}, func() { m.ADDQ(stride, x) })
	m.leave()
}
