package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in the struct tiles of runtime/cpu/tiles_amd64.go.
const (
	tilesConfig = 0
	tilesA      = 56 + 8*iota
	tilesAI
	tilesALow
	tilesAPanel
	tilesB
	tilesBRight
	tilesC
	tilesCS
	tilesCLow
	tilesCRight
	tilesCPanel
	tilesFrom
	tilesFS
	tilesFLow
	tilesFPanel
	tilesSteps
	tilesPanels
	tilesAcc
	tilesAsk
)

// amx is the ISA of tiles.
const amx = "AMX_BF16"

// tileAsks is for how many rows of the next panel's sums a step asks, until all that the tiles say are asked for: 32 rows in 8 steps, some
// 500 cycles, is early enough.
const tileAsks = 4

// tileBytes is a tile's row, and pairRow is a row of a panel of op(b): 32 pairs.
const (
	tileBytes = 64
	pairRow   = 128
)

// tiles are the products of bfloat16 with AMX: four tiles of sums, 16 rows × 16 columns each, of two tiles of op(a), each 16 rows of
// 16 pairs of terms, and two of op(b), each 16 pairs of terms × 16 columns. A step loads four tiles for four products of tiles, which
// take 16 cycles each.
func tiles(c *build.Context) {
	function(c, "gemmBF16AMX", "func(t *byte)", "gemmBF16AMX multiplies as its tiles say (runtime/cpu/tiles_amd64.go).", "t is a *tiles.")
	c.Pragma("noescape")
	t := operand.Mem{Base: c.Load(c.Param("t"), reg.RDI)}
	const sum, a, b = 0, 4, 6 // numbers of tiles
	aAt, aLow, bAt, bRight := reg.RSI, reg.RAX, reg.RCX, reg.RBX
	ai, bp, row, step := reg.RDX, reg.R8, reg.R9, reg.R10
	low, count := reg.R11, reg.R12
	sums, unasked := row, low              // in steps
	memory(c, 0, 0b00, 0x49, reg.RDI, nil) // LDTILECFG (DI)
	c.MOVQ(t.Offset(tilesAI), ai)
	c.MOVQ(operand.U32(pairRow), bp)
	c.Label("panel")
	corners := func(at, stride, lower int, prefix byte) {
		c.MOVQ(t.Offset(at), row)
		c.MOVQ(t.Offset(stride), step)
		c.MOVQ(row, low)
		c.ADDQ(t.Offset(lower), low)
		for half, from := range []reg.GPPhysical{row, low} {
			memory(c, sum+2*half, prefix, 0x4b, from, step)
			c.ADDQ(t.Offset(tilesCRight), from)
			memory(c, sum+2*half+1, prefix, 0x4b, from, step)
		}
	}
	c.CMPQ(t.Offset(tilesAcc), operand.U8(0))
	c.JE(operand.LabelRef("zero"))
	corners(tilesFrom, tilesFS, tilesFLow, tileLoad)
	c.JMP(operand.LabelRef("begin"))
	c.Label("zero")
	for i := range 4 {
		raw(c, amx, 0xc4, 0xe2, 0x7b, 0x49, 0xc0|byte(sum+i)<<3) // TILEZERO
	}
	c.Label("begin")
	c.MOVQ(t.Offset(tilesA), aAt)
	c.MOVQ(aAt, aLow)
	c.ADDQ(t.Offset(tilesALow), aLow)
	c.MOVQ(t.Offset(tilesB), bAt)
	c.MOVQ(bAt, bRight)
	c.ADDQ(t.Offset(tilesBRight), bRight)
	c.MOVQ(t.Offset(tilesSteps), count)
	c.XORQ(unasked, unasked)
	c.CMPQ(t.Offset(tilesPanels), operand.U8(1))
	c.JE(operand.LabelRef("step"))
	c.MOVQ(t.Offset(tilesC), sums)
	c.ADDQ(t.Offset(tilesCPanel), sums)
	c.MOVQ(t.Offset(tilesAsk), unasked)
	c.Label("step")
	memory(c, b, tileLoad, 0x4b, bAt, bp)
	memory(c, a, tileLoad, 0x4b, aAt, ai)
	memory(c, b+1, tileLoad, 0x4b, bRight, bp)
	dotTiles(c, sum, a, b)
	memory(c, a+1, tileLoad, 0x4b, aLow, ai)
	dotTiles(c, sum+1, a, b+1)
	dotTiles(c, sum+2, a+1, b)
	c.TESTQ(unasked, unasked)
	c.JZ(operand.LabelRef("asked"))
	for range tileAsks {
		c.PREFETCHT0(operand.Mem{Base: sums})
		c.PREFETCHT0(operand.Mem{Base: sums, Disp: tileBytes})
		c.ADDQ(t.Offset(tilesCS), sums)
	}
	c.SUBQ(operand.U8(tileAsks), unasked)
	c.Label("asked")
	dotTiles(c, sum+3, a+1, b+1)
	for _, at := range []reg.GPPhysical{aAt, aLow} {
		c.ADDQ(operand.U8(tileBytes), at)
	}
	for _, at := range []reg.GPPhysical{bAt, bRight} {
		c.ADDQ(operand.U32(tileBytes/4*pairRow), at)
	}
	c.DECQ(count)
	c.JNZ(operand.LabelRef("step"))
	corners(tilesC, tilesCS, tilesCLow, tileStore)
	for _, move := range [][2]int{{tilesAPanel, tilesA}, {tilesCPanel, tilesC}, {tilesFPanel, tilesFrom}} {
		c.MOVQ(t.Offset(move[0]), row)
		c.ADDQ(row, t.Offset(move[1]))
	}
	c.DECQ(t.Offset(tilesPanels))
	c.JNZ(operand.LabelRef("panel"))
	raw(c, amx, 0xc4, 0xe2, 0x78, 0x49, 0xc0) // TILERELEASE
	c.RET()
}

// The prefixes of a VEX instruction that loads a tile, and that stores one, as its bits pp have them.
const (
	tileLoad  = 0b11 // F2
	tileStore = 0b10 // F3
)

// memory writes an instruction of a tile and memory, which neither avo nor Go's assembler knows: VEX.128.pp.0F38.W0 opcode /r, with the
// tile in ModRM.reg. Where there is an index, it is the bytes from row to row. A prefix's bits of registers are stored inverted.
func memory(c *build.Context, tile int, pp, opcode byte, base reg.GPPhysical, index reg.GPPhysical) {
	number := func(r reg.GPPhysical) byte { return byte(r.PhysicalIndex()) }
	x, sib := byte(0), []byte(nil)
	rm := number(base) & 7
	if rm == 5 || index == nil && rm == 4 {
		panic(fmt.Sprint("an address that is not written here: ", base))
	}
	if index != nil {
		x, sib, rm = number(index)>>3, []byte{number(index)&7<<3 | rm}, 4
	}
	raw(c, amx, append([]byte{0xc4, 1<<7 | (1-x)<<6 | (1-number(base)>>3)<<5 | 0b00010, 0b1111<<3 | pp, opcode, byte(tile)<<3 | rm}, sib...)...)
}

// dotTiles writes TDPBF16PS: VEX.128.F3.0F38.W0 5C /r, with sum in ModRM.reg, a in ModRM.rm and b in vvvv.
func dotTiles(c *build.Context, sum, a, b int) {
	raw(c, amx, 0xc4, 0xe2, byte(15-b)<<3|0b10, 0x5c, 0xc0|byte(sum)<<3|byte(a))
}

// raw writes the bytes of an instruction of an ISA.
func raw(c *build.Context, isa string, code ...byte) {
	for i, width := 0, 0; i < len(code); i += width {
		width = 4
		for width > len(code)-i {
			width /= 2
		}
		word := uint64(0)
		for j := width - 1; j >= 0; j-- {
			word = word<<8 | uint64(code[i+j])
		}
		opcode := map[int]string{4: "LONG", 2: "WORD", 1: "BYTE"}[width]
		c.Instruction(&ir.Instruction{Opcode: opcode, Operands: []operand.Op{operand.Imm(word)}, ISA: []string{isa}})
	}
}
