package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A micro is how one ISA multiplies: tiles of rows × two vectors of sums stay in registers while the products of one k
// after another are added.
type micro struct {
	name  string
	rows  int
	bytes int // of an element
	lanes int // of a vector
	vecs  int // vectors of a row of sums
	vec   func(i int) reg.VecPhysical

	load, store              func(c *build.Context, from, to operand.Op)
	broadcast                func(c *build.Context, from, to operand.Op)
	multiplyAdd, add         func(c *build.Context, x, y, sum operand.Op)
	zero                     func(c *build.Context, v operand.Op)
	setup, masks             func(c *build.Context, t operand.Mem) // once; before masked loads or stores
	maskedLoad, maskedStore  func(c *build.Context, v int, from, to operand.Op)
	first, factors, operands int  // numbers of vector registers: sums, a's elements, b's two vectors
	keeps                    bool // b can be packed by the first panel that it is multiplied by
}

// Offsets in the struct strip of runtime/cpu/strip.go.
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

// emit writes the function: for each panel of rows, as many as fit and then what is left,
//
//	for r, j := range [rows, cols] { c[r,j] = sum_p a[r,p]*b[p,j] (+ from[r,j] if acc) }
//
// with one fused multiply-add for each p in its order, from 0 on. It changes the strip's m, at, next and from. So an
// element's bits depend on its row and its column alone. If the strip says where to keep b, it is one panel of rows
// that is multiplied, and b is packed there meanwhile.
func (m *micro) emit(c *build.Context) {
	function(c, m.name, "func(s *byte)",
		m.name+" multiplies as its strip says, in panels of "+fmt.Sprint(m.rows)+" rows (runtime/cpu/strip.go).",
		"s is a *strip.")
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

// gemm is a micro while its function is written.
type gemm struct {
	*micro
	c       *build.Context
	t       operand.Mem
	b, crow reg.GPVirtual // b's row p, c's row
	// bytes: a's from row to row and p to p, b's from p to p; the latter two in loops for any strides
	ai, ap, bp reg.GPVirtual
	keeping    bool          // the panel that is written stores b as it comes,
	keep       reg.GPVirtual // here
}

// sum is the register of vector v of a tile's row.
func (g *gemm) sum(r, v int) reg.VecPhysical { return g.vec(g.first + g.vecs*r + v) }

// cs is the bytes from a row of c to the next.
func (g *gemm) cs() reg.GPVirtual {
	cs := g.c.GP64()
	g.c.MOVQ(g.t.Offset(stripCS), cs)
	return cs
}

// cell is c at vector v of the current row.
func (g *gemm) cell(v int) operand.Mem {
	return operand.Mem{Base: g.crow, Disp: v * g.lanes * g.bytes}
}

// panel multiplies so many rows and leaves crow behind them.
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

// strides loads those of a and b from p to p.
func (g *gemm) strides() {
	g.ap, g.bp = g.c.GP64(), g.c.GP64()
	g.c.MOVQ(g.t.Offset(stripAP), g.ap)
	g.c.MOVQ(g.t.Offset(stripBP), g.bp)
}

// lateTerms is how many steps of k before the end c is asked for: some hundred cycles, which a line from memory takes.
// That is done in so many stages, a part of the rows each: lines that come from memory all at once keep those of b
// waiting.
const (
	lateTerms = 64
	stages    = 4
)

// fours does steps of k four at a time, in a loop for a in rows and b packed, or in one for any strides. Meanwhile it
// asks for some of what the strip says is wanted next, a line each time, so far apart as the strip says. It asks for
// the panel's part of c soon before the end: what is asked for earlier has left the first cache by then, through which
// the panels of a and b pass.
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

// loop does four steps of k at a time while there are four, first without those before which c is asked for, then
// these, stage by stage. Where a is known to lie in rows and b to be packed, addresses of the four differ by numbers.
// For a that is packed that would be slower: without an addition for each of them, Intel's cores (family 6, model 167)
// bind more multiply-adds to one port than to the other, and 93 % of the limit is left of 99.
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

// A nextPanel is what of the next panel of a, which lies in rows, is asked for: some rows' lines each time, of all rows
// in so many times as a line holds fours of k, or in fewer, which divide the rows: AVX2's 6 of float32 go by twos, in 3
// times and not 4, so that one line in three is asked for twice.
type nextPanel struct {
	at, back, count reg.GPVirtual // the address; from the last row's line to the first one's next; times till then
	times           int
}

// nextPanel begins to ask for the panel behind one.
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

// ask4 asks for lines of some rows, as often as there are four steps of k.
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

// step is one k of so many rows, for any strides.
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

// stepAt is k number i of four, where a lies in rows and b is packed.
func (g *gemm) stepAt(i int, bases []reg.GPVirtual) {
	g.loadB(i * g.vecs * g.lanes * g.bytes)
	g.multiply(g.rows, func(r int) operand.Mem {
		at := g.row(bases, r)
		at.Disp = i * g.bytes
		return at
	})
}

// row is a's row r.
func (g *gemm) row(bases []reg.GPVirtual, r int) operand.Mem {
	at := operand.Mem{Base: bases[r/3]}
	if r%3 > 0 {
		at.Index, at.Scale = g.ai, uint8(r%3)
	}
	return at
}

// loadB loads a row of b, so far from where b points.
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

// keepAhead is how many rows of b ahead it is asked for where it is packed: they lie apart, so the processor does not.
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

// prefetch asks for a stage's rows of the panel's part of c, and of what is added where that is other rows.
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

// ask asks for a stage's rows, so far apart, from where the strip says, which it counts up: into the first cache, or
// into the second.
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

// addC adds what the strip says to the sums. All its loads come before the stores, which may lie at the same place of a
// page, or be the same.
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

// each does something with each vector of each row of c.
func (g *gemm) each(rows int, do func(r, v int)) {
	cs := g.cs()
	for r := range rows {
		for v := range g.vecs {
			do(r, v)
		}
		g.c.ADDQ(cs, g.crow)
	}
}
