package main

import (
	"encoding/binary"
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in the struct tiles of runtime/cpu/asm/tiles_amd64.go.
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
	tilesTall
	tilesBroad
)

// amx is the ISA of tiles.
const amx = "AMX_BF16"

// tileAsks is the number of rows of the next panel's sums that a step prefetches, until all are prefetched:
// 32 rows in 8 steps, some 500 cycles, is early enough.
const tileAsks = 4

// tileBytes is the size of a tile's row. pairRow is that of a row of a panel of op(b): 32 pairs.
const (
	tileBytes = 64
	pairRow   = 128
)

// tiles writes the matmuls with AMX.
func tiles(c *build.Context) {
	tilesOfPairs(c)
	tilesOfParts(c)
}

// Numbers of tiles: four of sums, two of op(a) and two of op(b).
const (
	tileSum = 0
	tileA   = 4
	tileB   = 6
)

// tiler writes a matmul of tiles. For each panel of rows it has four tiles of sums, 16 rows × 16 columns
// each, two tiles of op(a), 16 rows of 16 pairs of terms each, and two tiles of op(b), 16 pairs of terms ×
// 16 columns each.
type tiler struct {
	c *build.Context
	t operand.Mem
	// addresses of the upper and lower tile of op(a), and of the left and right tile of op(b)
	at             [2][2]reg.GPPhysical
	strides        [2]reg.GPPhysical // distance of a tile's rows, of op(a) and op(b)
	row, step, low reg.GPPhysical
	count          reg.GPPhysical
	sums, unasked  reg.GPPhysical // within steps
	names          string         // prefix of labels
}

func newTiler(c *build.Context) *tiler {
	return &tiler{
		c:       c,
		t:       operand.Mem{Base: c.Load(c.Param("t"), reg.RDI)},
		at:      [2][2]reg.GPPhysical{{reg.RSI, reg.RAX}, {reg.RCX, reg.RBX}},
		strides: [2]reg.GPPhysical{reg.RDX, reg.R8},
		row:     reg.R9, step: reg.R10, low: reg.R11, count: reg.R12,
		sums: reg.R9, unasked: reg.R11,
	}
}

// matmul writes the matmul for 1 or 2 tiles of rows and of columns. step writes one step's loads and
// multiplications, and further is how far it advances in op(a) and op(b).
func (w *tiler) matmul(rows, cols int, step func(), further [2]int) {
	c, label := w.c, func(name string) string { return w.names + name }
	c.Label(label("panel"))
	c.CMPQ(w.t.Offset(tilesAcc), operand.U8(0))
	c.JE(operand.LabelRef(label("zero")))
	w.corners(rows, cols, tilesFrom, tilesFS, tilesFLow, tileLoad)
	c.JMP(operand.LabelRef(label("begin")))
	c.Label(label("zero"))
	for i := range rows {
		for j := range cols {
			raw(c, amx, 0xc4, 0xe2, 0x7b, 0x49, 0xc0|byte(tileSum+2*i+j)<<3) // TILEZERO
		}
	}
	c.Label(label("begin"))
	for i, first := range [2][2]int{{tilesA, tilesALow}, {tilesB, tilesBRight}} {
		c.MOVQ(w.t.Offset(first[0]), w.at[i][0])
		c.MOVQ(w.at[i][0], w.at[i][1])
		c.ADDQ(w.t.Offset(first[1]), w.at[i][1])
	}
	c.MOVQ(w.t.Offset(tilesSteps), w.count)
	c.XORQ(w.unasked, w.unasked)
	c.CMPQ(w.t.Offset(tilesPanels), operand.U8(1))
	c.JE(operand.LabelRef(label("step")))
	c.MOVQ(w.t.Offset(tilesC), w.sums)
	c.ADDQ(w.t.Offset(tilesCPanel), w.sums)
	c.MOVQ(w.t.Offset(tilesAsk), w.unasked)
	c.Label(label("step"))
	step()
	for i, at := range w.at {
		c.ADDQ(operand.U32(further[i]), at[0])
		c.ADDQ(operand.U32(further[i]), at[1])
	}
	c.DECQ(w.count)
	c.JNZ(operand.LabelRef(label("step")))
	w.corners(rows, cols, tilesC, tilesCS, tilesCLow, tileStore)
	for _, move := range [][2]int{{tilesAPanel, tilesA}, {tilesCPanel, tilesC}, {tilesFPanel, tilesFrom}} {
		c.MOVQ(w.t.Offset(move[0]), w.row)
		c.ADDQ(w.row, w.t.Offset(move[1]))
	}
	c.DECQ(w.t.Offset(tilesPanels))
	c.JNZ(operand.LabelRef(label("panel")))
	raw(c, amx, 0xc4, 0xe2, 0x78, 0x49, 0xc0) // TILERELEASE
	c.RET()
}

// corners loads or stores the tiles of sums.
func (w *tiler) corners(rows, cols, at, stride, lower int, prefix byte) {
	c := w.c
	c.MOVQ(w.t.Offset(at), w.row)
	c.MOVQ(w.t.Offset(stride), w.step)
	c.MOVQ(w.row, w.low)
	c.ADDQ(w.t.Offset(lower), w.low)
	for i, from := range []reg.GPPhysical{w.row, w.low}[:rows] {
		memory(c, tileSum+2*i, prefix, 0x4b, from, w.step)
		if cols == 2 {
			c.ADDQ(w.t.Offset(tilesCRight), from)
			memory(c, tileSum+2*i+1, prefix, 0x4b, from, w.step)
		}
	}
}

// load loads a tile of op(a), or of op(b), at a displacement.
func (w *tiler) load(operand, which int, disp int32) {
	memoryAt(w.c, [2]int{tileA, tileB}[operand]+which, tileLoad, 0x4b, w.at[operand][which], w.strides[operand], disp)
}

// dot multiplies the tile of op(a) by that of op(b).
func (w *tiler) dot(i, j int) { dotTiles(w.c, tileSum+2*i+j, tileA+i, tileB+j) }

// ask prefetches tileAsks rows of the next panel's sums, if some are left. name is the label behind it.
func (w *tiler) ask(name string) {
	c, behind := w.c, w.names+name
	c.TESTQ(w.unasked, w.unasked)
	c.JZ(operand.LabelRef(behind))
	for range tileAsks {
		c.PREFETCHT0(operand.Mem{Base: w.sums})
		c.PREFETCHT0(operand.Mem{Base: w.sums, Disp: tileBytes})
		c.ADDQ(w.t.Offset(tilesCS), w.sums)
	}
	c.SUBQ(operand.U8(tileAsks), w.unasked)
	c.Label(behind)
}

// tilesOfPairs writes the matmul of bfloat16. A step loads four tiles for four tile multiplications, which
// take 16 cycles each.
func tilesOfPairs(c *build.Context) {
	function(c, "GemmBF16AMX", "func(t *byte)",
		"GemmBF16AMX computes the matmul of its tiles (runtime/cpu/asm/tiles_amd64.go).", "t is a *tiles.")
	c.Pragma("noescape")
	w := newTiler(c)
	memory(c, 0, 0b00, 0x49, reg.RDI, nil) // LDTILECFG (DI)
	c.MOVQ(w.t.Offset(tilesAI), w.strides[0])
	c.MOVQ(operand.U32(pairRow), w.strides[1])
	w.matmul(2, 2, func() {
		w.load(1, 0, 0)
		w.load(0, 0, 0)
		w.load(1, 1, 0)
		w.dot(0, 0)
		w.load(0, 1, 0)
		w.dot(0, 1)
		w.dot(1, 0)
		w.ask("asked")
		w.dot(1, 1)
	}, [2]int{tileBytes, tileBytes / 4 * pairRow})
}

// partsTimes lists the products of two split numbers' parts that are computed, part of op(a) and of op(b),
// in an order in which most loads serve two of them. The omitted products, 1·2, 2·1 and 2·2, are less than
// 2^-24 of the product.
var partsTimes = [][2]int{{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}, {0, 2}}

// tilesOfParts writes the matmul of float32s that are split into three bfloat16s each: six tile
// multiplications per step and tile of sums.
func tilesOfParts(c *build.Context) {
	function(c, "GemmF32AMX", "func(t *byte)",
		"GemmF32AMX computes the matmul of split numbers of its tiles (runtime/cpu/gemm/split.go).", "t is a *tiles.")
	c.Pragma("noescape")
	w := newTiler(c)
	memory(c, 0, 0b00, 0x49, reg.RDI, nil) // LDTILECFG (DI)
	for i := range 2 {
		c.MOVQ(operand.U32(tileBytes), w.strides[i])
	}
	sizes := [][2]int{{2, 2}, {2, 1}, {1, 2}, {1, 1}}
	for _, z := range sizes[1:] {
		c.CMPQ(w.t.Offset(tilesTall), operand.U8(z[0]))
		c.JNE(operand.LabelRef(fmt.Sprintf("not%d%d", z[0], z[1])))
		c.CMPQ(w.t.Offset(tilesBroad), operand.U8(z[1]))
		c.JE(operand.LabelRef(fmt.Sprintf("tiles%d%dpanel", z[0], z[1])))
		c.Label(fmt.Sprintf("not%d%d", z[0], z[1]))
	}
	for _, z := range sizes {
		w.names = fmt.Sprintf("tiles%d%d", z[0], z[1])
		w.matmul(z[0], z[1], func() { w.parts(z[0], z[1]) }, [2]int{3 * partBytes, 3 * partBytes})
	}
}

// near prefetches, while the step multiplies parts number x, some of the lines of a tile that the next step
// loads first, until all 16 are prefetched. Prefetching earlier, or all at once, gains less.
func (w *tiler) near(x, side, which int) {
	const lines = 4
	x -= len(partsTimes) - 16/lines
	if x < 0 {
		return
	}
	at := operand.Mem{Base: w.at[side][which], Disp: (3+partsTimes[0][side])*partBytes + x*lines*tileBytes}
	for i := range lines {
		w.c.PREFETCHT0(at.Offset(i * tileBytes))
	}
}

// parts writes a step of tilesOfParts. A load comes right before its first use, so that tile
// multiplications continue meanwhile.
func (w *tiler) parts(rows, cols int) {
	had := [2]int{-1, -1}
	for x, times := range partsTimes {
		var loaded [2][2]bool
		need := func(operand, which int) {
			if times[operand] != had[operand] && !loaded[operand][which] {
				w.load(operand, which, int32(times[operand]*partBytes))
				loaded[operand][which] = true
			}
		}
		order := [][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}}
		if had[1] == times[1] { // op(a)'s tiles are new
			order[1], order[2] = order[2], order[1]
		}
		for _, at := range order {
			if at[0] < rows && at[1] < cols {
				need(0, at[0])
				need(1, at[1])
				w.dot(at[0], at[1])
				w.near(x, at[1], at[0])
			}
		}
		if x%2 == 1 {
			w.ask(fmt.Sprint("asked", x))
		}
		had = times
	}
}

// The pp bits of the prefix of a VEX instruction that loads a tile, and of one that stores a tile.
const (
	tileLoad  = 0b11 // F2
	tileStore = 0b10 // F3
)

// memory is memoryAt without a displacement.
func memory(c *build.Context, tile int, pp, opcode byte, base reg.GPPhysical, index reg.GPPhysical) {
	memoryAt(c, tile, pp, opcode, base, index, 0)
}

// memoryAt writes an instruction with a tile and memory, which neither avo nor Go's assembler supports:
// VEX.128.pp.0F38.W0 opcode /r, with the tile in ModRM.reg. The index, if any, is the bytes from row to
// row. A prefix stores bits of register numbers inverted.
func memoryAt(c *build.Context, tile int, pp, opcode byte, base, index reg.GPPhysical, disp int32) {
	number := func(r reg.GPPhysical) byte { return byte(r.PhysicalIndex()) }
	x, sib := byte(0), []byte(nil)
	rm := number(base) & 7
	if rm == 5 || index == nil && rm == 4 {
		panic(fmt.Sprint("unsupported address: ", base))
	}
	if index != nil {
		x, sib, rm = number(index)>>3, []byte{number(index)&7<<3 | rm}, 4
	}
	if disp != 0 {
		rm |= 0b10 << 6
		sib = binary.LittleEndian.AppendUint32(sib, uint32(disp))
	}
	raw(c, amx, append([]byte{0xc4, 1<<7 | (1-x)<<6 | (1-number(base)>>3)<<5 | 0b00010, 0b1111<<3 | pp, opcode,
		byte(tile)<<3 | rm}, sib...)...)
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
