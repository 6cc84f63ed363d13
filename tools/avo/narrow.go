package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// narrowRows writes the rounding of float32 rows to bfloat16, padded to whole rows of a tile.
func narrowRows(c *build.Context) {
	function(c, "NarrowRowsBF16", "func(dst *uint16, src *float32, step, ld, rows, words uintptr)",
		"NarrowRowsBF16 computes", "",
		"\tfor i, j := range [rows, words rounded up to a multiple of 32] { dst[i*step + j] = bfloat16(src[i*ld + "+
			"j]) if j < words, else 0 }", "",
		"where numbers below 2^-126 become zero. step and ld are in bytes, rows > 0.")
	c.Pragma("noescape")
	dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
	step, ld := c.Load(c.Param("step"), c.GP64()), c.Load(c.Param("ld"), c.GP64())
	rows, words := c.Load(c.Param("rows"), c.GP64()), c.Load(c.Param("words"), c.GP64())
	tail, from, to, whole := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.MOVQ(words, tail)
	c.ANDQ(operand.U8(31), tail)
	wordMasks(c, tail, reg.K1, reg.K2)
	c.SHRQ(operand.U8(5), words)
	c.Label("row")
	c.MOVQ(src, from)
	c.MOVQ(dst, to)
	c.MOVQ(words, whole)
	c.TESTQ(whole, whole)
	c.JZ(operand.LabelRef("last"))
	c.Label("next")
	c.VMOVUPS(operand.Mem{Base: from}, reg.Z0)
	c.VMOVUPS(operand.Mem{Base: from, Disp: 64}, reg.Z1)
	roundPairs(c)
	c.VMOVUPS(reg.Z2, operand.Mem{Base: to})
	c.ADDQ(operand.U32(128), from)
	c.ADDQ(operand.U8(64), to)
	c.DECQ(whole)
	c.JNZ(operand.LabelRef("next"))
	c.Label("last")
	c.TESTQ(tail, tail)
	c.JZ(operand.LabelRef("done"))
	c.VMOVUPS_Z(operand.Mem{Base: from}, reg.K1, reg.Z0)
	c.VMOVUPS_Z(operand.Mem{Base: from, Disp: 64}, reg.K2, reg.Z1)
	roundPairs(c)
	c.VMOVUPS(reg.Z2, operand.Mem{Base: to})
	c.Label("done")
	c.ADDQ(ld, src)
	c.ADDQ(step, dst)
	c.DECQ(rows)
	c.JNZ(operand.LabelRef("row"))
	c.VZEROUPPER()
	c.RET()
}

// roundPairs writes VCVTNE2PS2BF16 Z0, Z1, Z2, which neither avo nor Go's assembler supports:
// EVEX.512.F2.0F38.W0 72 /r, with Z2 in ModRM.reg, Z1 (the upper half) in vvvv and Z0 in ModRM.rm.
func roundPairs(c *build.Context) {
	raw(c, "AVX512BF16", 0x62, 0xf2, (15-1)<<3|1<<2|0b11, 0b10<<5|1<<3, 0x72, 0b11<<6|2<<3|0)
}
