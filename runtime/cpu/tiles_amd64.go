package cpu

import "unsafe"

// Rows and columns of a tile of sums, and the pairs of terms that a step multiplies.
const (
	tileRows  = 16
	tileCols  = 16
	tilePairs = 16
)

// tiles is the argument of gemmBF16AMX and gemmF32AMX (gemmsplitpack.go describes the operands of the
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
	a      uintptr
	ai     uintptr // from row to row
	aLow   uintptr // from row 0 to row 16
	aPanel uintptr // from panel to panel
	b      uintptr
	bRight uintptr // from column 0 to column 16
	c      uintptr
	cs     uintptr
	cLow   uintptr
	cRight uintptr
	cPanel uintptr
	from   uintptr
	fs     uintptr
	fLow   uintptr
	fPanel uintptr
	steps  int
	panels int
	acc    int
	ask    int // number of rows of the next panel's sums to prefetch: a multiple of 4
	tall   int // number of tiles of rows, 1 or 2: only for split numbers,
	broad  int // and of columns
	rows   int // of the present configuration: rows,
	cols   int // columns,
	pairs  int // pairs
}

// configure sets the tiles' sizes (Intel's manual of instruction set extensions, chapter on AMX: palette 1
// has the bytes of rows from byte 16 on, two each, and the rows from byte 48 on).
func (t *tiles) configure(rows, cols, pairs int) {
	t.aLow, t.cLow, t.fLow = tileRows*t.ai, tileRows*t.cs, tileRows*t.fs
	t.bRight, t.cRight = 4*tileCols, 4*tileCols
	if rows <= tileRows {
		t.aLow, t.cLow, t.fLow = 0, 0, 0
	}
	if cols <= tileCols {
		t.bRight, t.cRight = 0, 0
	}
	if t.rows == rows && t.cols == cols && t.pairs == pairs {
		return
	}
	t.rows, t.cols, t.pairs = rows, cols, pairs
	upper, left := min(rows, tileRows), min(cols, tileCols)
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

// gemmTiles multiplies a strip of pairs if the rows of op(a) hold them contiguously: whole panels of rows,
// then the rest. It changes the strip's m and from like other engines.
func gemmTiles(p *byte) {
	s := (*strip)(unsafe.Pointer(p))
	if s.tiles == nil {
		s.tiles = unsafe.Pointer(new(tiles))
	}
	t := (*tiles)(s.tiles)
	const panel = 2 * tileRows
	t.ask = panel
	if s.near {
		t.ask = 0
	}
	t.multiply(s, 0, s.m/panel, panel)
	t.multiply(s, s.m/panel, 1, s.m%panel)
	s.from += uintptr(s.m) * s.fs
	s.m = 0
}

// multiply computes n panels of rows rows each, from panel q on.
func (t *tiles) multiply(s *strip, q, n, rows int) {
	if n == 0 || rows == 0 {
		return
	}
	const panel = 2 * tileRows
	above := uintptr(q * panel)
	a, c := uintptr(s.a)+uintptr(q)*s.panel, uintptr(s.c)+above*s.cs
	from, fs, acc, steps := s.from+above*s.fs, s.fs, s.acc, s.k/tilePairs
	t.ai, t.aPanel, t.cs, t.cPanel = s.ai, s.panel, s.cs, panel*s.cs
	for _, part := range [2][3]int{{0, steps, tilePairs}, {steps * tilePairs, 1, s.k % tilePairs}} {
		p0, steps, pairs := part[0], part[1], part[2]
		if steps == 0 || pairs == 0 {
			continue
		}
		t.a, t.b, t.c = a+4*uintptr(p0), uintptr(s.b)+uintptr(p0)*s.bp, c
		t.from, t.fs, t.fPanel = from, fs, panel*fs
		t.steps, t.panels, t.acc = steps, n, acc
		t.configure(rows, s.cols, pairs)
		gemmBF16AMX((*byte)(unsafe.Pointer(t)))
		from, fs, acc = c, s.cs, 1 // the rest of the terms is added to these sums
	}
}

// gemmParts multiplies a strip of split numbers: whole panels of rows, then the rest. Its k counts steps,
// and bp is the distance of tiles of op(b). It changes the strip's m and from like other engines.
func gemmParts(p *byte) {
	s := (*strip)(unsafe.Pointer(p))
	if s.tiles == nil {
		s.tiles = unsafe.Pointer(new(tiles))
	}
	const panel = 2 * tileRows
	t := (*tiles)(s.tiles)
	t.multiplyParts(s, 0, s.m/panel, panel)
	t.multiplyParts(s, s.m/panel, 1, s.m%panel)
	s.from += uintptr(s.m) * s.fs
	s.m = 0
}

// multiplyParts computes n panels of rows rows each, from panel q on.
func (t *tiles) multiplyParts(s *strip, q, n, rows int) {
	if n == 0 || rows == 0 {
		return
	}
	const panel = 2 * tileRows
	above := uintptr(q * panel)
	t.a, t.b, t.c, t.from = uintptr(s.a)+uintptr(q)*s.panel, uintptr(s.b), uintptr(s.c)+above*s.cs, s.from+above*s.fs
	t.ai, t.aPanel, t.cs, t.cPanel, t.fs, t.fPanel = 0, s.panel, s.cs, panel*s.cs, s.fs, panel*s.fs
	t.steps, t.panels, t.acc, t.ask = s.k, n, s.acc, panel
	t.configure(rows, s.cols, tilePairs)
	t.aLow, t.bRight = s.bp, s.bp
	t.tall, t.broad = (rows+tileRows-1)/tileRows, (s.cols+tileCols-1)/tileCols
	gemmF32AMX((*byte)(unsafe.Pointer(t)))
}
