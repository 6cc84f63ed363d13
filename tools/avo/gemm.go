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
	vec   func(i int) reg.VecPhysical

	load, store              func(c *build.Context, from, to operand.Op)
	broadcast                func(c *build.Context, from, to operand.Op)
	multiplyAdd              func(c *build.Context, x, y, sum operand.Op)
	zero                     func(c *build.Context, v operand.Op)
	setup, masks             func(c *build.Context, t operand.Mem) // once; before masked loads or stores
	maskedLoad, maskedStore  func(c *build.Context, half int, from, to operand.Op)
	first, factors, operands int // numbers of vector registers: sums, a's elements, b's two vectors
}

// Offsets in the struct strip of runtime/cpu/strip.go.
const (
	stripC, stripA, stripB            = 0, 8, 16
	stripCS, stripAI, stripAP         = 24, 32, 40
	stripBP, stripPanel               = 48, 56
	stripM, stripK, stripAcc, stripNs = 64, 72, 80, 88
	stripMask                         = 96
)

// emit writes the function: for each panel of rows, as many as fit and then what is left,
//
//	for r, j := range [rows, cols] { c[r,j] = (c[r,j] if acc) + sum_p a[r,p]*b[p,j] }
//
// with one fused multiply-add for each p in its order. So an element's bits depend on its row and its column alone.
func (m *micro) emit(c *build.Context) {
	function(c, m.name, "func(s *byte)",
		m.name+" multiplies as its strip says, in panels of "+fmt.Sprint(m.rows)+" rows (runtime/cpu/strip.go).", "s is a *strip.")
	c.Pragma("noescape")
	g := &gemm{micro: m, c: c, t: operand.Mem{Base: c.Load(c.Param("s"), c.GP64())}}
	g.a, g.b, g.crow, g.left = c.GP64(), c.GP64(), c.GP64(), c.GP64()
	g.ai, g.ap, g.bp, g.cs = c.GP64(), c.GP64(), c.GP64(), c.GP64()
	for _, x := range []struct {
		to reg.GPVirtual
		at int
	}{{g.a, stripA}, {g.crow, stripC}, {g.left, stripM}, {g.ai, stripAI}, {g.ap, stripAP}, {g.bp, stripBP}, {g.cs, stripCS}} {
		c.MOVQ(g.t.Offset(x.at), x.to)
	}
	m.setup(c, g.t)
	c.Label("panels")
	c.CMPQ(g.left, operand.U8(m.rows))
	c.JL(operand.LabelRef("tail"))
	g.panel(m.rows)
	c.ADDQ(g.t.Offset(stripPanel), g.a)
	c.SUBQ(operand.U8(m.rows), g.left)
	c.JMP(operand.LabelRef("panels"))
	c.Label("tail")
	for r := 1; r < m.rows; r++ {
		c.CMPQ(g.left, operand.U8(r))
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
}

// gemm is a micro while its function is written.
type gemm struct {
	*micro
	c              *build.Context
	t              operand.Mem
	a, b           reg.GPVirtual // this panel's first element, b's row p
	crow, left     reg.GPVirtual // c's row, rows to do
	ai, ap, bp, cs reg.GPVirtual // bytes: a's from row to row and p to p, b's from p to p, c's from row to row
}

// sum is the register of a tile's row and half.
func (g *gemm) sum(r, half int) reg.VecPhysical { return g.vec(g.first + 2*r + half) }

// cell is c at the current row.
func (g *gemm) cell(half int) operand.Mem {
	return operand.Mem{Base: g.crow, Disp: half * g.lanes * g.bytes}
}

// panel multiplies so many rows and leaves crow behind them.
func (g *gemm) panel(rows int) {
	c := g.c
	label := func(name string) string { return fmt.Sprint(name, "_", rows) }
	g.begin(rows, label)
	if rows == g.rows {
		g.prefetch()
	}
	bases := make([]reg.GPVirtual, (rows+2)/3) // of rows 0, 3, ...
	for i := range bases {
		bases[i] = c.GP64()
		if i == 0 {
			c.MOVQ(g.a, bases[0])
			continue
		}
		c.LEAQ(operand.Mem{Base: bases[i-1], Index: g.ai, Scale: 2}, bases[i])
		c.ADDQ(g.ai, bases[i])
	}
	c.MOVQ(g.t.Offset(stripB), g.b)
	k := c.GP64()
	c.MOVQ(g.t.Offset(stripK), k)
	c.Label(label("k"))
	for half := range 2 {
		g.load(c, operand.Mem{Base: g.b, Disp: half * g.lanes * g.bytes}, g.vec(g.operands+half))
	}
	for r := range rows {
		f := g.vec(g.factors + r%(g.first-g.factors))
		at := operand.Mem{Base: bases[r/3]}
		if r%3 > 0 {
			at.Index, at.Scale = g.ai, uint8(r%3)
		}
		g.broadcast(c, at, f)
		for half := range 2 {
			g.multiplyAdd(c, g.vec(g.operands+half), f, g.sum(r, half))
		}
	}
	for _, base := range bases {
		c.ADDQ(g.ap, base)
	}
	c.ADDQ(g.bp, g.b)
	c.DECQ(k)
	c.JNZ(operand.LabelRef(label("k")))
	g.end(rows, label)
}

// prefetch asks for the next panel's part of c.
func (g *gemm) prefetch() {
	row := g.c.GP64()
	g.c.MOVQ(g.cs, row)
	g.c.IMUL3Q(operand.U8(g.rows), row, row)
	g.c.ADDQ(g.crow, row)
	for r := range g.rows {
		g.c.PREFETCHT0(operand.Mem{Base: row})
		if g.lanes*g.bytes == 64 {
			g.c.PREFETCHT0(operand.Mem{Base: row, Disp: 64})
		}
		if r < g.rows-1 {
			g.c.ADDQ(g.cs, row)
		}
	}
}

// begin sets the sums to 0, or to c if acc.
func (g *gemm) begin(rows int, label func(string) string) {
	c := g.c
	c.CMPQ(g.t.Offset(stripAcc), operand.U8(0))
	c.JNE(operand.LabelRef(label("acc")))
	for r := range rows {
		for half := range 2 {
			g.zero(c, g.sum(r, half))
		}
	}
	c.JMP(operand.LabelRef(label("begun")))
	c.Label(label("acc"))
	g.masks(c, g.t)
	row := c.GP64()
	c.MOVQ(g.crow, row)
	for r := range rows {
		for half := range 2 {
			at := g.cell(half)
			at.Base = row
			g.maskedLoad(c, half, at, g.sum(r, half))
		}
		c.ADDQ(g.cs, row)
	}
	c.Label(label("begun"))
}

// end stores the sums.
func (g *gemm) end(rows int, label func(string) string) {
	c := g.c
	c.CMPQ(g.t.Offset(stripNs), operand.U8(2*g.lanes))
	c.JNE(operand.LabelRef(label("narrow")))
	g.each(rows, func(r, half int) { g.store(c, g.sum(r, half), g.cell(half)) })
	c.JMP(operand.LabelRef(label("stored")))
	c.Label(label("narrow"))
	g.masks(c, g.t)
	g.each(rows, func(r, half int) { g.maskedStore(c, half, g.sum(r, half), g.cell(half)) })
	c.Label(label("stored"))
}

// each does something with each half of each row of c.
func (g *gemm) each(rows int, do func(r, half int)) {
	for r := range rows {
		for half := range 2 {
			do(r, half)
		}
		g.c.ADDQ(g.cs, g.crow)
	}
}
