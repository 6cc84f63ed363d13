package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/team"
)

// A split tile of op(a) or op(b) has the layout [steps][parts][16][16] pairs, and tiles are consecutive.
// The rows are 16 rows of op(a), or 16 pairs of terms of op(b).

// splitter packs split operands.
type splitter[F elem.Float] struct {
	packer[F]
	marked marks
}

// splitting is working memory for transposed and padded operands.
type splitting struct {
	d   [splitTurn * splitStep]float32
	few [splitTile * splitTurn]float32
}

var splittings team.Pool[splitting]

// tileApart returns the distance of tiles of so many steps, in float32s: an odd number of KB, so that they
// begin in different sets of the caches.
func tileApart(steps int) int { return (3*steps | 1) * splitUnit / 3 }

// byteOf returns the address of element i.
func byteOf[F elem.Float](x []F, i int) *byte { return (*byte)(unsafe.Pointer(&x[i])) }

// splitA splits the block of op(a).
func (g *splitter[F]) splitA(steps int) {
	clear(g.marked.a[:])
	t := splittings.Get()
	if g.a.T {
		for x := range steps {
			for r := 0; r < g.mb; r += splitTurn {
				g.turnA(t, x, r, min(splitTurn, g.mb-r), steps)
			}
		}
	} else {
		g.rowsA(t, steps)
	}
	splittings.Put(t)
}

// rowsA splits an untransposed op(a).
func (g *splitter[F]) rowsA(t *splitting, steps int) {
	whole, ld := g.kb/splitStep, g.a.LD
	for r := 0; r < g.mb; r += splitTile {
		n := min(splitTile, g.mb-r)
		to, from := g.pa[r/splitTile*tileApart(steps):], g.a.D[(g.i0+r)*ld+g.p0:]
		_ = from[(n-1)*ld+g.kb-1]
		if whole > 0 {
			g.markA(r, g.e.split(byteOf(to, 0), byteOf(from, 0), uintptr(4*ld), 64, 4*splitStep, 4*splitUnit,
				uintptr(4*splitAhead*ld), uintptr(n), uintptr(whole), 0xffff))
		}
		if whole == steps {
			continue
		}
		clear(t.d[:n*splitStep])
		for i := range n {
			copyWords(t.d[i*splitStep:], from[i*ld+whole*splitStep:], g.kb-whole*splitStep)
		}
		g.markA(r, g.e.split(byteOf(to, whole*splitUnit), byteOf(t.d[:], 0), 4*splitStep, 64, 0, 0, 0,
			uintptr(n), 1, 0xffff))
	}
}

// turnA splits a step of rows of a transposed op(a).
func (g *splitter[F]) turnA(t *splitting, x, r, rows, steps int) {
	for half := range 2 {
		p := x*splitStep + half*splitTile
		ld, n := g.a.LD, min(splitTile, g.kb-p)
		if n <= 0 {
			for i := range rows {
				clear(t.d[i*splitStep+half*splitTile:][:splitTile])
			}
			continue
		}
		src := g.a.D[(g.p0+p)*ld+g.i0+r:]
		_ = src[(n-1)*ld+rows-1]
		from := byteOf(src, 0)
		if n < splitTile {
			for i := range n {
				copyWords(t.few[i*splitTurn:], src[i*ld:], rows)
			}
			clear(t.few[n*splitTurn:])
			from, ld = byteOf(t.few[:], 0), splitTurn
		}
		g.e.packCols(&t.d[half*splitTile], (*float32)(unsafe.Pointer(from)), 4*splitStep, uintptr(4*ld), uintptr(rows))
	}
	for i := 0; i < rows; i += splitTile {
		to := g.pa[(r+i)/splitTile*tileApart(steps)+x*splitUnit:]
		g.markA(r+i, g.e.split(byteOf(to, 0), byteOf(t.d[:], i*splitStep), 4*splitStep, 64, 0, 0, 0,
			uintptr(min(splitTile, rows-i)), 1, 0xffff))
	}
}

// markA marks the tile of a row of the block if its numbers are bad.
func (g *splitter[F]) markA(row int, bad uint32) {
	if tile := row / splitTile; bad != 0 {
		g.marked.a[tile/64] |= 1 << (tile % 64)
	}
}

// markB marks the tile of a column of the block if its numbers are bad.
func (g *splitter[F]) markB(col int, bad uint32) {
	if tile := col / splitTile; bad != 0 {
		g.marked.b[tile/64] |= 1 << (tile % 64)
	}
}

// splitB splits the block of op(b).
func (g *splitter[F]) splitB(steps int) {
	clear(g.marked.b[:])
	t := splittings.Get()
	switch {
	case g.b.T:
		for col := 0; col < g.nb; col += splitTile {
			g.turnB(t, col, min(splitTile, g.nb-col), steps)
		}
	default:
		for col := 0; col < g.nb; col += splitOnce {
			for x := range steps {
				g.rowsB(t, x, steps, col, min(splitOnce, g.nb-col))
			}
		}
	}
	splittings.Put(t)
}

// rowsB splits a step's rows of op(b), from a column of the block on: 16 columns of all rows, then the next
// 16.
func (g *splitter[F]) rowsB(t *splitting, x, steps, col, cols int) {
	ld, apart := g.b.LD, tileApart(steps)
	to, from := g.pb[col/splitTile*apart+x*splitUnit:], g.b.D[(g.p0+x*splitStep)*ld+g.j0+col:]
	terms := min(splitStep, g.kb-x*splitStep)
	_ = from[(terms-1)*ld+cols-1]
	far, whole := splitTile*ld, cols/splitTile
	if terms < splitStep {
		ld, far, whole = splitTile, splitTile*splitTile, 0
	}
	if whole > 0 && g.e.split(byteOf(to, 0), byteOf(from, 0), uintptr(4*ld), uintptr(4*far), 4*splitTile,
		uintptr(4*apart), uintptr(4*2*splitAhead*ld), splitTile, uintptr(whole), 0xffff) != 0 {
		for i := range whole { // finds which tiles are bad
			g.markB(col+i*splitTile, g.e.split(byteOf(to, i*apart), byteOf(from, i*splitTile), uintptr(4*ld),
				uintptr(4*far), 0, 0, 0, splitTile, 1, 0xffff))
		}
	}
	for i := whole * splitTile; i < cols; i += splitTile {
		n, src := min(splitTile, cols-i), byteOf(from, i)
		if terms < splitStep {
			clear(t.d[:splitStep*splitTile])
			for p := range terms {
				copyWords(t.d[p*splitTile:], from[p*g.b.LD+i:], n)
			}
			src = byteOf(t.d[:], 0)
		}
		g.markB(col+i, g.e.split(byteOf(to, i/splitTile*apart), src, uintptr(4*ld), uintptr(4*far), 0, 0, 0,
			splitTile, 1, 1<<n-1))
	}
}

// turnB splits up to 16 columns of a transposed op(b).
func (g *splitter[F]) turnB(t *splitting, col, cols, steps int) {
	const atOnce = splitTurn / splitTile * splitStep // terms
	ld, to := g.b.LD, g.pb[col/splitTile*tileApart(steps):]
	src := g.b.D[(g.j0+col)*ld+g.p0:]
	_ = src[(cols-1)*ld+g.kb-1]
	for p := 0; p < g.kb; p += atOnce {
		n := min(atOnce, g.kb-p)
		whole := (n + splitStep - 1) / splitStep
		if n < whole*splitStep || cols < splitTile {
			clear(t.d[:])
		}
		if cols == splitTile {
			g.e.packCols(&t.d[0], (*float32)(unsafe.Pointer(&src[p])), 4*splitTile, uintptr(4*ld), uintptr(n))
		} else {
			for j := range cols {
				row := unsafe.Slice((*float32)(unsafe.Pointer(&src[j*ld+p])), n)
				for i, v := range row {
					t.d[i*splitTile+j] = v
				}
			}
		}
		g.markB(col, g.e.split(byteOf(to, p/splitStep*splitUnit), byteOf(t.d[:], 0), 4*splitTile,
			4*splitTile*splitTile, 4*splitStep*splitTile, 4*splitUnit, 0, splitTile, uintptr(whole), 0xffff))
	}
}

// copyWords copies n float32s of a matmul's operand.
func copyWords[F elem.Float](to []float32, from []F, n int) {
	copy(to[:n], unsafe.Slice((*float32)(unsafe.Pointer(&from[0])), n))
}
