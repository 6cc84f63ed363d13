package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// micro is the matmul of one ISA: tiles of rows × two vectors of sums stay in registers while the products
// of one k after the other are added.
type micro struct {
	name  string
	rows  int
	bytes int // per element
	lanes int // per vector
	vecs  int // vectors per row of sums
	vec   func(i int) reg.VecPhysical

	load, store      func(c *build.Context, from, to operand.Op)
	broadcast        func(c *build.Context, from, to operand.Op)
	multiplyAdd, add func(c *build.Context, x, y, sum operand.Op)
	zero             func(c *build.Context, v operand.Op)
	// called once; called before masked loads or stores
	setup, masks             func(c *build.Context, t operand.Mem)
	maskedLoad, maskedStore  func(c *build.Context, v int, from, to operand.Op)
	first, factors, operands int  // numbers of vector registers: sums, a's elements, b's two vectors
	keeps                    bool // the first panel of rows can pack b while multiplying
}

// Offsets in the struct Strip of runtime/cpu/asm/strip.go.
const (
	stripC, stripA, stripB            = 0, 8, 16
	stripCS, stripAI, stripAP         = 24, 32, 40
	stripBP, stripPanel               = 48, 56
	stripM, stripK, stripAcc, stripNs = 64, 72, 80, 88
	stripMask, stripAt, stripNext     = 96, 160, 168
	stripLate, stripStep              = 176, 184
	stripFrom, stripFS                = 192, 200
	stripKeep                         = 216
	stripAsk, stripAskFrom            = 224, 232
	stripSecond                       = 240
)

// emit writes the function. For each panel of rows, as many whole ones as fit and then the rest, it
// computes
//
//	for r, j := range [rows, cols] { c[r,j] = sum_p a[r,p]*b[p,j] (+ from[r,j] if acc) }
//
// with one fused multiply-add for each p in order, from 0 on, so that the bits of an element depend only on
// its row and its column. It changes the strip's m, at, next and from. If the strip says where to keep b,
// there is one panel of rows, and b is packed there meanwhile.
func (m *micro) emit(c *build.Context) {
	function(c, m.name, "func(s *byte)",
		m.name+" computes the matmul of its strip, in panels of "+fmt.Sprint(m.rows)+" rows (runtime/cpu/asm/strip.go).",
		"s is a *Strip.")
	c.Pragma("noescape")
	g := &gemm{micro: m, c: c, t: operand.Mem{Base: c.Load(c.Param("s"), c.GP64())}}
	g.b, g.crow, g.ai = c.GP64(), c.GP64(), c.GP64()
	c.MOVQ(g.t.Offset(stripC), g.crow)
	c.MOVQ(g.t.Offset(stripAI), g.ai)
	first := c.GP64()
	c.MOVQ(g.t.Offset(stripA), first)
	c.MOVQ(first, g.t.Offset(stripAt))
	m.setup(c, g.t)
	if m.keeps {
		c.CMPQ(g.t.Offset(stripKeep), operand.U8(0))
		c.JNE(operand.LabelRef("keep"))
	}
	c.Label("panels")
	c.CMPQ(g.t.Offset(stripM), operand.U8(m.rows))
	c.JL(operand.LabelRef("tail"))
	g.panel(m.rows)
	next := c.GP64()
	c.MOVQ(g.t.Offset(stripPanel), next)
	c.ADDQ(next, g.t.Offset(stripAt))
	c.SUBQ(operand.U8(m.rows), g.t.Offset(stripM))
	c.JMP(operand.LabelRef("panels"))
	c.Label("tail")
	for r := 1; r < m.rows; r++ {
		c.CMPQ(g.t.Offset(stripM), operand.U8(r))
		c.JEQ(operand.LabelRef(fmt.Sprint("rows", r)))
	}
	c.VZEROUPPER()
	c.RET()
	for r := 1; r < m.rows; r++ {
		c.Label(fmt.Sprint("rows", r))
		g.panel(r)
		c.VZEROUPPER()
		c.RET()
	}
	if m.keeps {
		c.Label("keep")
		g.keep = c.GP64()
		g.keeping = true
		c.MOVQ(g.t.Offset(stripKeep), g.keep)
		g.panel(m.rows)
		c.VZEROUPPER()
		c.RET()
	}
}

// gemm is the state while a micro's function is written.
type gemm struct {
	*micro
	c       *build.Context
	t       operand.Mem
	b, crow reg.GPVirtual // address of b's row p; of c's row
	// in bytes: from row to row and from p to p of a, from p to p of b; the latter two only in loops for any
	// strides
	ai, ap, bp reg.GPVirtual
	keeping    bool          // the panel being written stores b while it loads it,
	keep       reg.GPVirtual // to this address
}

// sum returns the register of vector v of a tile's row.
func (g *gemm) sum(r, v int) reg.VecPhysical { return g.vec(g.first + g.vecs*r + v) }

// cs returns the bytes from a row of c to the next.
func (g *gemm) cs() reg.GPVirtual {
	cs := g.c.GP64()
	g.c.MOVQ(g.t.Offset(stripCS), cs)
	return cs
}

// cell returns the address of c at vector v of the current row.
func (g *gemm) cell(v int) operand.Mem {
	return operand.Mem{Base: g.crow, Disp: v * g.lanes * g.bytes}
}

// panel multiplies rows rows, and leaves crow behind them.
func (g *gemm) panel(rows int) {
	c := g.c
	label := func(name string) string { return fmt.Sprint(name, "_", rows) }
	if g.keeping {
		label = func(name string) string { return name + "_keep" }
	}
	for r := range rows {
		for v := range g.vecs {
			g.zero(c, g.sum(r, v))
		}
	}
	bases := make([]reg.GPVirtual, (rows+2)/3) // of rows 0, 3, ...
	for i := range bases {
		bases[i] = c.GP64()
		if i == 0 {
			c.MOVQ(g.t.Offset(stripAt), bases[0])
			continue
		}
		c.LEAQ(operand.Mem{Base: bases[i-1], Index: g.ai, Scale: 2}, bases[i])
		c.ADDQ(g.ai, bases[i])
	}
	c.MOVQ(g.t.Offset(stripB), g.b)
	k := c.GP64()
	c.MOVQ(g.t.Offset(stripK), k)
	if rows == g.rows {
		g.fours(k, bases, label)
	}
	g.strides()
	c.Label(label("k"))
	g.step(rows, bases)
	c.DECQ(k)
	c.JNZ(operand.LabelRef(label("k")))
	c.Label(label("end"))
	g.addC(rows, label)
	g.end(rows, label)
}

// strides loads the distances of a and b from p to p.
func (g *gemm) strides() {
	g.ap, g.bp = g.c.GP64(), g.c.GP64()
	g.c.MOVQ(g.t.Offset(stripAP), g.ap)
	g.c.MOVQ(g.t.Offset(stripBP), g.bp)
}

// lateTerms is how many steps of k before the end c is prefetched: some hundred cycles, the latency of
// memory. The prefetch is divided into stages, each for a part of the rows, because prefetching all lines
// from memory at once would delay those of b.
const (
	lateTerms = 64
	stages    = 4
)

// fours computes steps of k four at a time, in a loop for a in rows and b packed, or in one for any
// strides. Meanwhile it prefetches addresses that the strip gives, one line each time, at the strip's
// distance. It prefetches the panel's part of c shortly before the end: lines prefetched earlier would have
// been evicted from the first-level cache by the panels of a and b.
func (g *gemm) fours(k reg.GPVirtual, bases []reg.GPVirtual, label func(string) string) {
	c := g.c
	c.SUBQ(operand.U8(4), k)
	c.JL(operand.LabelRef(label("few")))
	late := g.t.Offset(stripLate)
	c.MOVQ(operand.U32(0), late)
	c.CMPQ(k, operand.U8(lateTerms))
	c.JL(operand.LabelRef(label("now")))
	c.MOVQ(operand.U32(lateTerms), late)
	c.MOVQ(g.crow, g.t.Offset(stripAsk))
	from := c.GP64()
	c.MOVQ(g.t.Offset(stripFrom), from)
	c.MOVQ(from, g.t.Offset(stripAskFrom))
	c.SUBQ(operand.U8(lateTerms), k)
	c.Label(label("now"))
	if !g.keeping {
		c.CMPQ(g.t.Offset(stripBP), operand.I32(g.vecs*g.lanes*g.bytes))
		c.JNE(operand.LabelRef(label("any")))
		c.CMPQ(g.t.Offset(stripAP), operand.U8(g.bytes))
		c.JNE(operand.LabelRef(label("any")))
		g.loop(true, k, bases, label)
		c.JMP(operand.LabelRef(label("few")))
	}
	c.Label(label("any"))
	g.loop(false, k, bases, label)
	c.Label(label("few"))
	c.ADDQ(operand.U8(4), k)
	c.JZ(operand.LabelRef(label("end")))
}

// loop computes four steps of k at a time while there are four: first those before c is prefetched, then
// the rest, stage by stage. If a is in rows and b is packed, the addresses of the four steps differ by
// constants. For a packed a that would be slower: without an addition for each step, Intel's cores (family
// 6, model 167) assign more multiply-adds to one port than to the other, and reach 93 % of the limit
// instead of 99 %.
func (g *gemm) loop(rows bool, k reg.GPVirtual, bases []reg.GPVirtual, label func(string) string) {
	c, name := g.c, "any"
	want := c.GP64()
	c.MOVQ(g.t.Offset(stripNext), want)
	var next *nextPanel
	if rows {
		name, next = "rows", g.nextPanel(bases[0])
	} else {
		g.strides()
	}
	c.Label(label(name + "_fours"))
	for i := range 4 {
		if rows {
			g.stepAt(i, bases)
		} else {
			g.step(g.rows, bases)
		}
	}
	c.PREFETCHT1(operand.Mem{Base: want})
	c.ADDQ(g.t.Offset(stripStep), want)
	if rows {
		for _, base := range bases {
			c.ADDQ(operand.U8(4*g.bytes), base)
		}
		c.ADDQ(operand.I32(4*g.vecs*g.lanes*g.bytes), g.b)
		g.ask4(next, label)
	}
	c.SUBQ(operand.U8(4), k)
	c.JGE(operand.LabelRef(label(name + "_fours")))
	late := g.t.Offset(stripLate)
	c.CMPQ(late, operand.U8(0))
	c.JE(operand.LabelRef(label(name + "_all")))
	c.MOVQ(want, g.t.Offset(stripNext))
	g.prefetch(func(s string) string { return label(name + "_" + s) })
	c.MOVQ(g.t.Offset(stripNext), want)
	c.SUBQ(operand.U8(lateTerms/stages), late)
	c.ADDQ(operand.U8(lateTerms/stages), k)
	c.JMP(operand.LabelRef(label(name + "_fours")))
	c.Label(label(name + "_all"))
}

// nextPanel is what is prefetched of the next panel of a if it is in rows: the lines of some rows each
// time, and of all rows in as many times as a line has fours of k, or in fewer times that divide the rows.
// AVX2's 6 rows of float32 are prefetched in twos, in 3 times and not 4, so that one line in three is
// prefetched twice.
type nextPanel struct {
	// the address; the distance from the last row's line to the first row's next one; the number of times until
	// then
	at, back, count reg.GPVirtual
	times           int
}

// nextPanel starts prefetching the panel after this one.
func (g *gemm) nextPanel(panel reg.GPVirtual) *nextPanel {
	c := g.c
	n := &nextPanel{at: c.GP64(), back: c.GP64(), count: c.GP64(), times: 64 / g.bytes / 4}
	for g.rows%n.times != 0 {
		n.times--
	}
	c.MOVQ(panel, n.at)
	c.ADDQ(g.t.Offset(stripPanel), n.at)
	c.IMUL3Q(operand.I32(-g.rows), g.ai, n.back)
	c.ADDQ(operand.U8(4*n.times*g.bytes), n.back)
	c.MOVQ(operand.U64(uint64(n.times)), n.count)
	return n
}

// ask4 prefetches lines of some rows. It is called once per four steps of k.
func (g *gemm) ask4(n *nextPanel, label func(string) string) {
	c := g.c
	for range g.rows / n.times {
		c.PREFETCHT1(operand.Mem{Base: n.at})
		c.ADDQ(g.ai, n.at)
	}
	c.DECQ(n.count)
	c.JNZ(operand.LabelRef(label("same")))
	c.ADDQ(n.back, n.at)
	c.MOVQ(operand.U64(uint64(n.times)), n.count)
	c.Label(label("same"))
}

// step computes one k for rows rows and any strides.
func (g *gemm) step(rows int, bases []reg.GPVirtual) {
	c := g.c
	g.loadB(0)
	if g.keeping {
		g.pack()
	}
	g.multiply(rows, func(r int) operand.Mem { return g.row(bases, r) })
	for _, base := range bases {
		c.ADDQ(g.ap, base)
	}
	c.ADDQ(g.bp, g.b)
}

// stepAt computes k number i of four, if a is in rows and b is packed.
func (g *gemm) stepAt(i int, bases []reg.GPVirtual) {
	g.loadB(i * g.vecs * g.lanes * g.bytes)
	g.multiply(g.rows, func(r int) operand.Mem {
		at := g.row(bases, r)
		at.Disp = i * g.bytes
		return at
	})
}

// row returns the address of a's row r.
func (g *gemm) row(bases []reg.GPVirtual, r int) operand.Mem {
	at := operand.Mem{Base: bases[r/3]}
	if r%3 > 0 {
		at.Index, at.Scale = g.ai, uint8(r%3)
	}
	return at
}

// loadB loads a row of b at a distance from where b points.
func (g *gemm) loadB(from int) {
	for v := range g.vecs {
		g.load(g.c, operand.Mem{Base: g.b, Disp: from + v*g.lanes*g.bytes}, g.vec(g.operands+v))
	}
}

// multiply adds the products of b's row and a's elements to the sums.
func (g *gemm) multiply(rows int, at func(r int) operand.Mem) {
	for r := range rows {
		f := g.vec(g.factors + r%(g.first-g.factors))
		g.broadcast(g.c, at(r), f)
		for v := range g.vecs {
			g.multiplyAdd(g.c, g.vec(g.operands+v), f, g.sum(r, v))
		}
	}
}

// keepAhead is how many rows of b are prefetched while it is packed: rows are far apart, so the hardware
// prefetcher does not help.
const keepAhead = 8

// pack stores b's row.
func (g *gemm) pack() {
	width := g.lanes * g.bytes
	for v := range g.vecs {
		if v*width%64 == 0 {
			g.c.PREFETCHT0(operand.Mem{Base: g.b, Index: g.bp, Scale: keepAhead, Disp: v * width})
		}
		g.store(g.c, g.vec(g.operands+v), operand.Mem{Base: g.keep, Disp: v * width})
	}
	g.c.ADDQ(operand.I32(g.vecs*width), g.keep)
}

// prefetch prefetches a stage's rows of the panel's part of c, and of the rows that are added if these are
// different.
func (g *gemm) prefetch(label func(string) string) {
	c, step := g.c, g.cs()
	g.ask(stripAsk, step, func(s string) string { return label("c_" + s) })
	c.CMPQ(g.t.Offset(stripAcc), operand.U8(0))
	c.JE(operand.LabelRef(label("asked")))
	c.MOVQ(g.t.Offset(stripFS), step)
	c.TESTQ(step, step) // one row
	c.JE(operand.LabelRef(label("asked")))
	c.CMPQ(g.crow, g.t.Offset(stripFrom)) // c itself
	c.JE(operand.LabelRef(label("asked")))
	g.ask(stripAskFrom, step, func(s string) string { return label("from_" + s) })
	c.Label(label("asked"))
}

// ask prefetches a stage's rows at the given distance, from the strip's address, which it advances: into
// the first-level cache, or into the second.
func (g *gemm) ask(at int, step reg.GPVirtual, label func(string) string) {
	c, row := g.c, g.c.GP64()
	c.MOVQ(g.t.Offset(at), row)
	rows := func(prefetch func(operand.Op)) {
		for range (g.rows + stages - 1) / stages {
			for line := 0; line < g.vecs*g.lanes*g.bytes; line += 64 {
				prefetch(operand.Mem{Base: row, Disp: line})
			}
			c.ADDQ(step, row)
		}
	}
	c.CMPQ(g.t.Offset(stripSecond), operand.U8(0))
	c.JNE(operand.LabelRef(label("second")))
	rows(c.PREFETCHT0)
	c.JMP(operand.LabelRef(label("all")))
	c.Label(label("second"))
	rows(c.PREFETCHT1)
	c.Label(label("all"))
	c.MOVQ(row, g.t.Offset(at))
}

// addC adds the strip's from to the sums. All its loads come before the stores, which may have the same
// address within a page, or be the same.
func (g *gemm) addC(rows int, label func(string) string) {
	c := g.c
	c.CMPQ(g.t.Offset(stripAcc), operand.U8(0))
	c.JE(operand.LabelRef(label("added")))
	row, step := c.GP64(), c.GP64()
	c.MOVQ(g.t.Offset(stripFrom), row)
	c.MOVQ(g.t.Offset(stripFS), step)
	g.masks(c, g.t)
	for r := range rows {
		for v := range g.vecs {
			at, x := g.cell(v), g.vec(g.factors+v)
			at.Base = row
			g.maskedLoad(c, v, at, x)
			g.add(c, x, g.sum(r, v), g.sum(r, v))
		}
		c.ADDQ(step, row)
	}
	c.MOVQ(row, g.t.Offset(stripFrom))
	c.Label(label("added"))
}

// end stores the sums.
func (g *gemm) end(rows int, label func(string) string) {
	c := g.c
	c.CMPQ(g.t.Offset(stripNs), operand.U8(g.vecs*g.lanes))
	c.JNE(operand.LabelRef(label("narrow")))
	g.each(rows, func(r, v int) { g.store(c, g.sum(r, v), g.cell(v)) })
	c.JMP(operand.LabelRef(label("stored")))
	c.Label(label("narrow"))
	g.masks(c, g.t)
	g.each(rows, func(r, v int) { g.maskedStore(c, v, g.sum(r, v), g.cell(v)) })
	c.Label(label("stored"))
}

// each calls do for each vector of each row of c.
func (g *gemm) each(rows int, do func(r, v int)) {
	cs := g.cs()
	for r := range rows {
		for v := range g.vecs {
			do(r, v)
		}
		g.c.ADDQ(cs, g.crow)
	}
}
