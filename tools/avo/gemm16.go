package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm16 writes the matmul of bfloat16 with AVX512-BF16. It has the tiles of gemm512, but an element of a
// and b is a pair of neighbours in k, and one instruction adds both products to a float32 sum.
func gemm16(c *build.Context) {
	m := micro512("GemmBF16AVX512", 4, 16)
	m.load = func(c *build.Context, from, to operand.Op) { c.VMOVUPS(from, to) }
	m.store = m.load
	m.broadcast = func(c *build.Context, from, to operand.Op) { c.VBROADCASTSS(from, to) }
	m.add = func(c *build.Context, x, y, sum operand.Op) { c.VADDPS(x, y, sum) }
	m.multiplyAdd = dotPairs
	m.maskedLoad = func(c *build.Context, v int, from, to operand.Op) { c.VMOVUPS_Z(from, mask512[v], to) }
	m.maskedStore = func(c *build.Context, v int, from, to operand.Op) { c.VMOVUPS(from, mask512[v], to) }
	m.keeps = false
	m.emit(c)
	packPairs(c)
	narrowRows(c)
}

// dotPairs writes VDPBF16PS x, y, sum, which neither avo nor Go's assembler supports: EVEX.512.F3.0F38.W0
// 52 /r, with sum in ModRM.reg, y in vvvv and x in ModRM.rm. A prefix stores bits of register numbers
// inverted.
func dotPairs(c *build.Context, x, y, sum operand.Op) {
	number := func(v operand.Op) int { return int(v.(reg.Physical).PhysicalIndex()) }
	rm, v, r := number(x), number(y), number(sum)
	not := func(n, bit int) int { return 1 - n>>bit&1 }
	raw(c, "AVX512BF16", 0x62,
		byte(not(r, 3)<<7|not(rm, 4)<<6|not(rm, 3)<<5|not(r, 4)<<4|0b010),
		byte((v&15^15)<<3|1<<2|0b10),
		byte(0b10<<5|not(v, 4)<<3),
		0x52,
		byte(0b11<<6|r&7<<3|rm&7))
}

// packPairs packs pairs of rows of 16-bit words into panels: one panel of up to 32 pairs, or four whole
// ones.
func packPairs(c *build.Context) {
	for _, panels := range []int{1, 4} {
		name := map[int]string{1: "PackPairsAVX512", 4: "PackFourPairsAVX512"}[panels]
		function(c, name, "func(dst *byte, src *uint16, step, ld, rows, words, room, panel uintptr)",
			name+" computes", "",
			fmt.Sprintf("\tfor i, q, j := range [rows, %d, room] { dst[q*panel + i*step + j] = the pair of "+
				"src[2*i*ld + q*words + j] and src[(2*i+1)*ld + q*words + j] if j < words, else 0 }", panels), "",
			"with the first in the lower half. step, ld and panel are in bytes, words <= room <= 32, rows > 0.")
		c.Pragma("noescape")
		dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
		step, ld := c.Load(c.Param("step"), c.GP64()), c.Load(c.Param("ld"), c.GP64())
		rows, panel := c.Load(c.Param("rows"), c.GP64()), c.Load(c.Param("panel"), c.GP64())
		words, room := c.Load(c.Param("words"), c.GP64()), c.Load(c.Param("room"), c.GP64())
		wordMasks(c, words, reg.K1, reg.K2)
		wordMasks(c, room, reg.K3, reg.K4)
		pair := &pairPacker{c: c, panels: panels, dst: dst, panel: panel, from: [2]reg.Register{src, c.GP64()},
			words: words}
		if panels == 4 {
			pair.threeWords, pair.threePanels = c.GP64(), c.GP64()
			c.LEAQ(operand.Mem{Base: words, Index: words, Scale: 2}, pair.threeWords)
			c.LEAQ(operand.Mem{Base: panel, Index: panel, Scale: 2}, pair.threePanels)
		}
		c.MOVQ(src, pair.from[1])
		c.ADDQ(ld, pair.from[1])
		c.CMPQ(room, operand.U8(16))
		c.JLE(operand.LabelRef("pair1"))
		for _, halves := range []int{2, 1} { // of a panel of b, and of a
			label := fmt.Sprint("pair", halves)
			c.Label(label)
			pair.row(halves)
			c.LEAQ(operand.Mem{Base: pair.from[0], Index: ld, Scale: 2}, pair.from[0])
			c.LEAQ(operand.Mem{Base: pair.from[1], Index: ld, Scale: 2}, pair.from[1])
			c.ADDQ(step, dst)
			c.DECQ(rows)
			c.JNZ(operand.LabelRef(label))
			c.VZEROUPPER()
			c.RET()
		}
	}
}

// pairPacker is the state while packPairs is written.
type pairPacker struct {
	c                       *build.Context
	panels                  int
	dst, panel, threePanels reg.Register
	from                    [2]reg.Register // the rows of a pair
	words, threeWords       reg.Register
}

// row packs one pair of rows.
func (p *pairPacker) row(halves int) {
	for q := range p.panels {
		to := []operand.Mem{{Base: p.dst}, {Base: p.dst, Index: p.panel, Scale: 1}, {Base: p.dst, Index: p.panel,
			Scale: 2}, {Base: p.dst, Index: p.threePanels, Scale: 1}}[q]
		for half := range halves {
			v := zmm[4*q+2*half:]
			for i, row := range p.from {
				at := []operand.Mem{{Base: row}, {Base: row, Index: p.words, Scale: 2}, {Base: row, Index: p.words,
					Scale: 4}, {Base: row, Index: p.threeWords, Scale: 2}}[q]
				p.c.VPMOVZXWD_Z(at.Offset(32*half), []reg.OpmaskPhysical{reg.K1, reg.K2}[half], v[i])
			}
			p.c.VPSLLD(operand.U8(16), v[1], v[1])
			p.c.VPORD(v[1], v[0], v[0])
			p.c.VMOVUPS(v[0], []reg.OpmaskPhysical{reg.K3, reg.K4}[half], to.Offset(64*half))
		}
	}
}
