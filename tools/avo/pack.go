package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack512 writes the packing of matmul operands into panels with AVX-512.
func pack512(c *build.Context) {
	packRows(c)
	packFour(c)
	packColumns(c)
}

// packRows writes the copying of rows of up to 48 words of 4 bytes.
func packRows(c *build.Context) {
	function(c, "PackRowsAVX512", "func(dst, src *byte, step, ld, rows, words, room uintptr)",
		"PackRowsAVX512 computes", "",
		"\tfor i, j := range [rows, room] { dst[i*step + j] = src[i*ld + j] if j < words, else 0 }", "",
		"for words of 4 bytes. step and ld are in bytes, words <= room <= 48, rows > 0.")
	c.Pragma("noescape")
	dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
	step, ld := c.Load(c.Param("step"), c.GP64()), c.Load(c.Param("ld"), c.GP64())
	rows := c.Load(c.Param("rows"), c.GP64())
	there, filled := []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3}, []reg.OpmaskPhysical{reg.K4, reg.K5, reg.K6}
	wordMasks(c, c.Load(c.Param("words"), c.GP64()), there...)
	room := c.Load(c.Param("room"), c.GP64())
	wordMasks(c, room, filled...)
	vectorsOf(c, room, "row")
	for vecs := 3; vecs > 0; vecs-- { // of a panel of b, and of a
		label := fmt.Sprint("row", vecs)
		c.Label(label)
		for i := range vecs {
			c.VMOVUPS_Z(operand.Mem{Base: src, Disp: 64 * i}, there[i], zmm[i])
		}
		for i := range vecs {
			c.VMOVUPS(zmm[i], filled[i], operand.Mem{Base: dst, Disp: 64 * i})
		}
		c.ADDQ(ld, src)
		c.ADDQ(step, dst)
		c.DECQ(rows)
		c.JNZ(operand.LabelRef(label))
		c.VZEROUPPER()
		c.RET()
	}
}

// vectorsOf jumps to the label for rows of n words, which are one vector, two or three: the name followed
// by their number.
func vectorsOf(c *build.Context, n reg.Register, name string) {
	c.CMPQ(n, operand.U8(16))
	c.JLE(operand.LabelRef(name + "1"))
	c.CMPQ(n, operand.U8(32))
	c.JLE(operand.LabelRef(name + "2"))
}

// wordMasks sets the masks of the first n words of some vectors.
func wordMasks(c *build.Context, n reg.Register, masks ...reg.OpmaskPhysical) {
	bits := c.GP64()
	c.MOVQ(operand.I64(-1), bits)
	c.BZHIQ(n, bits, bits)
	for i, mask := range masks {
		if i > 0 {
			c.SHRQ(operand.U8(16), bits)
		}
		c.KMOVW(bits.As32(), mask)
	}
}

// packAhead is how many bytes ahead of the stores a panel is prefetched. It has mostly been evicted from
// the second-level cache since its last use, and a store that misses delays the following ones.
const packAhead = 1536

// packFour writes the copying of rows into four panels at once, so that contiguous parts of distant rows
// are read together.
func packFour(c *build.Context) {
	function(c, "PackFourAVX512", "func(dst, src *byte, step, ld, rows, words, panel uintptr)",
		"PackFourAVX512 computes", "",
		"\tfor i, q, j := range [rows, 4, words] { dst[q*panel + i*step + j] = src[i*ld + 4*words*q + j] }", "",
		"for words of 4 bytes. panel, step and ld are in bytes, words <= 48, rows > 0.")
	c.Pragma("noescape")
	dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
	step, ld := c.Load(c.Param("step"), c.GP64()), c.Load(c.Param("ld"), c.GP64())
	rows, panel := c.Load(c.Param("rows"), c.GP64()), c.Load(c.Param("panel"), c.GP64())
	words := c.Load(c.Param("words"), c.GP64())
	masks := []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3}
	wordMasks(c, words, masks...)
	// three panels; 3 times the words of one; the row to prefetch, some hundred cycles before it is read
	three, six, ahead := c.GP64(), c.GP64(), c.GP64()
	c.MOVQ(ld, ahead)
	c.SHLQ(operand.U8(5), ahead)
	c.ADDQ(src, ahead)
	c.LEAQ(operand.Mem{Base: panel, Index: panel, Scale: 2}, three)
	c.LEAQ(operand.Mem{Base: words, Index: words, Scale: 2}, six)
	vectorsOf(c, words, "four")
	for vecs := 3; vecs > 0; vecs-- { // of a panel of b, and of a
		label := fmt.Sprint("four", vecs)
		c.Label(label)
		for q := range 4 {
			from := []operand.Mem{{Base: src}, {Base: src, Index: words, Scale: 4}, {Base: src, Index: words,
				Scale: 8}, {Base: src, Index: six, Scale: 4}}[q]
			for i := range vecs {
				c.VMOVUPS_Z(from.Offset(64*i), masks[i], zmm[3*q+i])
			}
		}
		for line := range 3 * vecs {
			c.PREFETCHT0(operand.Mem{Base: ahead, Disp: 64 * line})
		}
		c.ADDQ(ld, ahead)
		for q := range 4 {
			to := []operand.Mem{{Base: dst}, {Base: dst, Index: panel, Scale: 1}, {Base: dst, Index: panel, Scale: 2},
				{Base: dst, Index: three, Scale: 1}}[q]
			for i := range vecs {
				c.PREFETCHT0(to.Offset(packAhead + 64*i))
				c.VMOVUPS(zmm[3*q+i], masks[i], to.Offset(64*i))
			}
		}
		c.ADDQ(ld, src)
		c.ADDQ(step, dst)
		c.DECQ(rows)
		c.JNZ(operand.LabelRef(label))
		c.VZEROUPPER()
		c.RET()
	}
}

// packColumns writes the transposition of 16 rows, 16 columns at a time.
func packColumns(c *build.Context) {
	const rows, name = 16, "PackColumnsAVX512"
	function(c, name, "func(dst, src *float32, step, ld, n uintptr)", name+" computes", "",
		fmt.Sprintf("\tfor p, j := range [n, %d] { dst[p*step + j] = src[j*ld + p] }", rows), "",
		"step and ld are in bytes, n > 0.")
	c.Pragma("noescape")
	dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
	step, ld := c.Load(c.Param("step"), c.GP64()), c.Load(c.Param("ld"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	full := c.GP64()
	c.MOVQ(operand.U32(0xffff), full)
	c.KMOVW(full.As32(), reg.K1)
	c.Label("block")
	c.CMPQ(n, operand.U8(16))
	c.JGE(operand.LabelRef("whole"))
	c.MOVQ(operand.I64(-1), full)
	c.BZHIQ(n, full, full)
	c.KMOVW(full.As32(), reg.K1)
	c.Label("whole")
	row := c.GP64()
	c.MOVQ(src, row)
	for j := range rows {
		c.VMOVUPS_Z(operand.Mem{Base: row}, reg.K1, zmm[j])
		if j < rows-1 {
			c.ADDQ(ld, row)
		}
	}
	out := transpose16(c)
	for p, v := range out {
		c.VMOVUPS(v, operand.Mem{Base: dst})
		if p < 15 {
			c.CMPQ(n, operand.U8(p+1))
			c.JE(operand.LabelRef("done"))
		}
		c.ADDQ(step, dst)
	}
	c.ADDQ(operand.U8(64), src)
	c.SUBQ(operand.U8(16), n)
	c.JNZ(operand.LabelRef("block"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// transpose16 transposes the 16×16 words of Z0 to Z15, and returns the registers of the result's rows in
// order.
func transpose16(c *build.Context) []reg.VecPhysical {
	in, out := zmm[:16], zmm[16:]
	pairs := func(f func(i int)) {
		for i := range 8 {
			f(i)
		}
	}
	// Pairs of rows, word by word: out[2i] has columns 0, 1 and out[2i+1] columns 2, 3 of each quarter.
	pairs(func(i int) {
		c.VUNPCKLPS(in[2*i+1], in[2*i], out[2*i])
		c.VUNPCKHPS(in[2*i+1], in[2*i], out[2*i+1])
	})
	// Fours of rows: in[4i+q] has column q of each quarter, of rows 4i to 4i+3.
	for i := range 4 {
		for q := range 2 {
			c.VUNPCKLPD(out[4*i+2+q], out[4*i+q], in[4*i+2*q])
			c.VUNPCKHPD(out[4*i+2+q], out[4*i+q], in[4*i+2*q+1])
		}
	}
	// Quarters: out[q] has columns q and q+8 of rows 0-7, out[4+q] q+4 and q+12; out[8+q], out[12+q] those of rows
	// 8-15.
	for q := range 4 {
		for h := range 2 {
			lo, hi := in[8*h+q], in[8*h+4+q]
			c.VSHUFF32X4(operand.U8(0x88), hi, lo, out[8*h+q])
			c.VSHUFF32X4(operand.U8(0xdd), hi, lo, out[8*h+4+q])
		}
	}
	rows := make([]reg.VecPhysical, 16)
	for q := range 8 {
		c.VSHUFF32X4(operand.U8(0x88), out[8+q], out[q], in[q])
		c.VSHUFF32X4(operand.U8(0xdd), out[8+q], out[q], in[8+q])
		rows[q], rows[8+q] = in[q], in[8+q]
	}
	return rows
}
