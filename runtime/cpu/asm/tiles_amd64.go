package asm

import "unsafe"

// Rows and columns of a tile of sums, and the pairs of terms that a step multiplies.
const (
	TileRows  = 16
	TileCols  = 16
	tilePairs = 16
)

// tiles is the argument of GemmBF16AMX and GemmF32AMX (runtime/cpu/gemm/splitpack.go describes the operands of the
// latter). They multiply panels of up to 32 rows of op(a), as rows of pairs, by up to 32 columns of a
// packed panel of op(b),
//
//	for r, j := range [rows, cols] { c[r,j] = (from[r,j] if acc) + sum_p a[r,p]·b[p,j] }
//
// where p counts the pairs, steps times the number in the configuration. Strides and distances are in
// bytes. The generator in tools/avo uses the offsets. Addresses are numbers, because the assembly advances
// them past the end; the strip keeps the memory alive. If there are at most 16 rows or columns, the lower
// or right tiles equal the upper or left ones: both are loaded before either is stored.
type tiles struct {
	config [64]byte
	a      tileOperand
	b      uintptr
	bRight uintptr // from column 0 to column 16
	c      uintptr
	cs     uintptr // from row to row
	cLow   uintptr // from row 0 to row 16
	cRight uintptr // from column 0 to column 16
	cPanel uintptr // from panel to panel
	from   tileOperand
	steps  int
	panels int
	acc    int
	ask    int // number of rows of the next panel's sums to prefetch: a multiple of 4
	tall   int // number of tiles of rows, 1 or 2: only for split numbers,
	broad  int // and of columns
	now    tileSizes
}

// tileOperand is an operand of tiles, which is read by rows.
type tileOperand struct {
	at    uintptr // its address
	row   uintptr // from row to row
	low   uintptr // from row 0 to row 16
	panel uintptr // from panel to panel
}

// tileSizes are those of the present configuration.
type tileSizes struct{ rows, cols, pairs int }

// configure sets the tiles' sizes (Intel's manual of instruction set extensions, chapter on AMX: palette 1
// has the bytes of rows from byte 16 on, two each, and the rows from byte 48 on).
func (t *tiles) configure(rows, cols, pairs int) {
	t.a.low, t.cLow, t.from.low = TileRows*t.a.row, TileRows*t.cs, TileRows*t.from.row
	t.bRight, t.cRight = 4*TileCols, 4*TileCols
	if rows <= TileRows {
		t.a.low, t.cLow, t.from.low = 0, 0, 0
	}
	if cols <= TileCols {
		t.bRight, t.cRight = 0, 0
	}
	wanted := tileSizes{rows, cols, pairs}
	if t.now == wanted {
		return
	}
	t.now = wanted
	upper, left := min(rows, TileRows), min(cols, TileCols)
	lower, right := rows-upper, cols-left
	if lower == 0 {
		lower = upper
	}
	if right == 0 {
		right = left
	}
	t.config[0] = 1
	for i, size := range [8][2]int{{upper, left}, {upper, right}, {lower, left}, {lower, right}, {upper, pairs},
		{lower, pairs}, {pairs, left}, {pairs, right}} {
		t.config[16+2*i], t.config[48+i] = byte(4*size[1]), byte(size[0])
	}
}

// GemmTiles multiplies a strip of pairs if the rows of op(a) hold them contiguously: whole panels of rows,
// then the rest. It changes the strip's m and from like other engines.
func GemmTiles(p *byte) {
	s := (*Strip)(unsafe.Pointer(p))
	if s.tiles == nil {
		s.tiles = unsafe.Pointer(new(tiles))
	}
	t := (*tiles)(s.tiles)
	const panel = 2 * TileRows
	t.ask = panel
	if s.Near {
		t.ask = 0
	}
	t.multiply(s, 0, s.M/panel, panel)
	t.multiply(s, s.M/panel, 1, s.M%panel)
	s.From += uintptr(s.M) * s.FS
	s.M = 0
}

// multiply computes n panels of rows rows each, from panel q on.
func (t *tiles) multiply(s *Strip, q, n, rows int) {
	if n == 0 || rows == 0 {
		return
	}
	const panel = 2 * TileRows
	above := uintptr(q * panel)
	a, c := uintptr(s.A)+uintptr(q)*s.Panel, uintptr(s.C)+above*s.CS
	from, fs, acc, steps := s.From+above*s.FS, s.FS, s.Acc, s.K/tilePairs
	t.a.row, t.a.panel, t.cs, t.cPanel = s.AI, s.Panel, s.CS, panel*s.CS
	for _, part := range [2][3]int{{0, steps, tilePairs}, {steps * tilePairs, 1, s.K % tilePairs}} {
		p0, steps, pairs := part[0], part[1], part[2]
		if steps == 0 || pairs == 0 {
			continue
		}
		t.a.at, t.b, t.c = a+4*uintptr(p0), uintptr(s.B)+uintptr(p0)*s.BP, c
		t.from.at, t.from.row, t.from.panel = from, fs, panel*fs
		t.steps, t.panels, t.acc = steps, n, acc
		t.configure(rows, s.Cols, pairs)
		GemmBF16AMX((*byte)(unsafe.Pointer(t)))
		from, fs, acc = c, s.CS, 1 // the rest of the terms is added to these sums
	}
}

// GemmParts multiplies a strip of split numbers: whole panels of rows, then the rest. Its k counts steps,
// and bp is the distance of tiles of op(b). It changes the strip's m and from like other engines.
func GemmParts(p *byte) {
	s := (*Strip)(unsafe.Pointer(p))
	if s.tiles == nil {
		s.tiles = unsafe.Pointer(new(tiles))
	}
	const panel = 2 * TileRows
	t := (*tiles)(s.tiles)
	t.multiplyParts(s, 0, s.M/panel, panel)
	t.multiplyParts(s, s.M/panel, 1, s.M%panel)
	s.From += uintptr(s.M) * s.FS
	s.M = 0
}

// multiplyParts computes n panels of rows rows each, from panel q on.
func (t *tiles) multiplyParts(s *Strip, q, n, rows int) {
	if n == 0 || rows == 0 {
		return
	}
	const panel = 2 * TileRows
	above := uintptr(q * panel)
	t.b, t.c, t.cs, t.cPanel = uintptr(s.B), uintptr(s.C)+above*s.CS, s.CS, panel*s.CS
	t.a.at, t.a.row, t.a.panel = uintptr(s.A)+uintptr(q)*s.Panel, 0, s.Panel
	t.from.at, t.from.row, t.from.panel = s.From+above*s.FS, s.FS, panel*s.FS
	t.steps, t.panels, t.acc, t.ask = s.K, n, s.Acc, panel
	t.configure(rows, s.Cols, tilePairs)
	t.a.low, t.bRight = s.BP, s.BP
	t.tall, t.broad = (rows+TileRows-1)/TileRows, (s.Cols+TileCols-1)/TileCols
	GemmF32AMX((*byte)(unsafe.Pointer(t)))
}
