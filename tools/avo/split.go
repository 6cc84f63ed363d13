package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// partBytes is the size of a tile of one of the three parts of split numbers: 16 rows of 16 pairs.
const partBytes = 16 * tileBytes

// orAnd is the function x|y&z of VPTERNLOGD.
const orAnd = 0xf8

// unordered is the predicate of VCMPPS that is true if a number is NaN.
const unordered = 3

// split512 writes the splitting of float32s into three bfloat16s each for tiles, with AVX-512.
func split512(c *build.Context) {
	function(c, "SplitRowsAVX512", "func(dst, src *byte, ld, far, next, to, ahead, rows, count uintptr, words "+
		"uint32) uint32", "SplitRowsAVX512 computes", "",
		"\tfor i, x, q, j := range [rows, count, 3, 16] {",
		"\t\tdst[i*64 + x*to + q*1024 + 4*j] = the pair of part q of src[i*ld + x*next + 4*j] and of the number far "+
			"bytes after it",
		"\t}", "",
		"with the first in the lower half, and 0 for j that are not in the mask words. Distances are in "+
			"bytes, rows and "+
			"count > 0. Part 0 of a",
		"number is the number rounded to bfloat16, ties away from 0. Part 1 is the remainder, rounded in the "+
			"same way. "+
			"Part 2 is the rest,",
		"which is a bfloat16 except for bits below 2^-133, which are truncated. The result says whether a number is "+
			"not finite or rounds to infinity; its parts are then NaN.")
	c.Pragma("noescape")
	dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
	ld, far := c.Load(c.Param("ld"), c.GP64()), c.Load(c.Param("far"), c.GP64())
	next, to := c.Load(c.Param("next"), c.GP64()), c.Load(c.Param("to"), c.GP64())
	rows, ahead := c.Load(c.Param("rows"), c.GP64()), c.Load(c.Param("ahead"), c.GP64())
	farAhead := c.GP64()
	c.LEAQ(operand.Mem{Base: ahead, Index: far, Scale: 1}, farAhead)
	s := splitter{c: c, half: zmm[28], high: zmm[29], bad: zmm[30]}
	word := c.GP32()
	c.Load(c.Param("words"), word)
	c.KMOVW(word, reg.K1)
	c.MOVL(operand.U32(0x8000), word)
	c.VPBROADCASTD(word, s.half)
	c.MOVL(operand.U32(0xffff0000), word)
	c.VPBROADCASTD(word, s.high)
	c.VPXORQ(s.bad, s.bad, s.bad)
	from, at, left := c.GP64(), c.GP64(), c.GP64()
	c.Label("row")
	c.MOVQ(src, from)
	c.MOVQ(dst, at)
	c.Load(c.Param("count"), left)
	c.Label("pair")
	c.PREFETCHT0(operand.Mem{Base: from, Index: ahead, Scale: 1})
	c.PREFETCHT0(operand.Mem{Base: from, Index: farAhead, Scale: 1})
	c.VMOVUPS_Z(operand.Mem{Base: from}, reg.K1, zmm[0])
	c.VMOVUPS_Z(operand.Mem{Base: from, Index: far, Scale: 1}, reg.K1, zmm[1])
	s.pairs([2]reg.VecPhysical{zmm[0], zmm[1]}, operand.Mem{Base: at})
	c.ADDQ(next, from)
	c.ADDQ(to, at)
	c.DECQ(left)
	c.JNZ(operand.LabelRef("pair"))
	c.ADDQ(ld, src)
	c.ADDQ(operand.U8(tileBytes), dst)
	c.DECQ(rows)
	c.JNZ(operand.LabelRef("row"))
	c.VCMPPS(operand.U8(unordered), s.bad, s.bad, reg.K2)
	c.KMOVW(reg.K2, word)
	c.Store(word, c.ReturnIndex(0))
	c.VZEROUPPER()
	c.RET()
}

// splitter writes the instructions that split vectors of numbers.
type splitter struct {
	c          *build.Context
	half, high reg.VecPhysical // for every word: the addend that rounds its upper half, and the mask of that half
	bad        reg.VecPhysical // a sum that becomes NaN as soon as a part is NaN
}

// pairs stores the pairs of both vectors' three parts, a tile's size apart.
func (s *splitter) pairs(v [2]reg.VecPhysical, to operand.Mem) {
	c := s.c
	for q := range 3 {
		part := [2]reg.VecPhysical{zmm[2+2*q], zmm[3+2*q]}
		for i := range 2 {
			if q == 2 {
				part[i] = v[i]
				continue
			}
			c.VPADDD(s.half, v[i], part[i])
			c.VPANDD(s.high, part[i], part[i])
			c.VSUBPS(part[i], v[i], v[i])
		}
		if q == 2 {
			c.VFMADD231PS(part[0], part[1], s.bad)
		}
		c.VPSRLD(operand.U8(16), part[0], part[0])
		c.VPTERNLOGD(operand.U8(orAnd), s.high, part[1], part[0])
		c.VMOVUPS(part[0], to.Offset(q*partBytes))
	}
}
