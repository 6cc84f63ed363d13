package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/team"
)

// Matmuls of float32 on bfloat16 tiles. A number is the sum of three bfloat16 parts: its rounding, the
// rounding of the remainder, and the rest (Henry, Tang, Heinecke: Leveraging the bfloat16 Artificial
// Intelligence Datatype For Higher-Precision Computations, ARITH 2019). Of the nine products of two
// numbers' parts, six are summed in float32. The others together are less than 2^-24 of the exact value, which
// is the error of rounding it to float32. A tile sums 16 terms before it rounds to the running
// sum, so that the error of the sums is smaller than that of successive multiply-adds (TestSplitExact).
//
// Numbers below 2^-102 lose those of their parts that are below 2^-126, the least normal number, and so do
// sums, because tiles treat smaller numbers as 0. Rows of op(a) and columns of op(b) with numbers that are
// not finite, or that round to infinity, are multiplied without tiles.

const (
	splitStep  = 32        // terms per step: pairs of a term and the one 16 later
	splitTile  = 16        // rows of op(a), or columns of op(b), per tile
	splitUnit  = 768       // size of a tile's three parts of a step, in float32s
	splitSteps = 16        // per chunk of terms, at most
	splitBytes = 600 << 10 // of a split block of op(a), at most
	splitWhole = 840 << 10 // if there is only one block, and it and splitCols of op(b) exceed the second-level cache
	splitRows  = 4096      // of a block, at most
	// columns of op(b) that are split together if there are several blocks of rows; the result stays in the
	// second-level cache
	splitCols = 512
	splitOnce = 128 // the same if there is one block, so that each is used once: contiguous lines are loaded together
	// rows of op(a) that are prefetched; twice as many of op(b), of which fewer numbers are split at a time
	splitAhead = 4
	splitTurn  = 64 // rows of op(a), or a quarter of the terms of op(b), that are transposed together
	leastTerms = 32 // fewer terms are multiplied without tiles
)

// rowSplitter splits rows of pairs (splitRowsAVX512).
type rowSplitter = func(dst, src *byte, ld, far, next, to, ahead, rows, count uintptr, words uint32) uint32

// marks record which tiles of a block contain numbers that tiles cannot multiply.
type marks struct {
	a   [splitRows / splitTile / 64]uint64
	b   [(splitCols + 64*splitTile - 1) / (64 * splitTile)]uint64
	any bool
}

// multiplySplit is multiply for an engine that splits.
func (g *matmul[F]) multiplySplit(threads bool) {
	if threads && team.Size() > 1 && g.m*g.n*g.k >= smallWork {
		g.rowShares, g.colShares = g.grid(team.Size())
		g.shares = g.rowShares * g.colShares
		team.Run(g, g.shares)
		g.shares = 0
		return
	}
	steps := (g.k + splitStep - 1) / splitStep
	chunks := (steps + splitSteps - 1) / splitSteps
	for x := range chunks {
		first, end := x*steps/chunks, (x+1)*steps/chunks
		g.p0 = first * splitStep
		g.kb = min(end*splitStep, g.k) - g.p0
		g.multiplyTerms(end - first)
	}
}

// grid returns how threads share a matmul, by rows and by columns. It minimizes the time of the largest
// share, assuming that splitting a panel takes as long as multiplying it by another.
func (g *problem[F]) grid(threads int) (rows, cols int) {
	aPanels, bPanels := g.aPanelsOf(g.m), (g.n+g.e.cols-1)/g.e.cols
	least := 0
	for r := 1; r <= min(threads, aPanels); r++ {
		c := min(threads/r, bPanels)
		a, b := (aPanels+r-1)/r, (bPanels+c-1)/c
		if time := a*b + a + b; least == 0 || time < least {
			least, rows, cols = time, r, c
		}
	}
	return rows, cols
}

// multiplyTerms multiplies a chunk of terms: each block of rows of op(a) that fits the second-level cache
// by all columns.
func (g *matmul[F]) multiplyTerms(steps int) {
	blocks := splitBlocks(g.aPanelsOf(g.m), g.e.rows, 4*tileApart(steps))
	cols := splitCols
	if blocks == 1 {
		cols = splitOnce
	}
	g.pa = Room(g.pa, splitWhole/4)
	g.pb = Room(g.pb, splitCols/splitTile*tileApart(splitSteps))
	for g.j0 = 0; g.j0 < g.n; g.j0 += cols {
		g.nb = min(cols, g.n-g.j0)
		for y := range blocks {
			g.i0, g.mb = g.rowsOfBlock(y, blocks)
			if g.j0 == 0 || blocks > 1 {
				g.splitA(steps)
			}
			if y == 0 {
				g.splitB(steps)
			}
			g.multiplySplitBlock(steps)
		}
	}
}

// splitBlocks returns the number of blocks into which panels of op(a) with the given rows are divided, if a
// tile takes tile bytes.
func splitBlocks(panels, rows, tile int) int {
	size := rows / splitTile * tile
	limit := min(splitBytes/size, splitRows/rows)
	if panels*size <= splitWhole && splitCols/splitTile*tile > splitWhole {
		limit = panels
	}
	return (panels + limit - 1) / limit
}

// multiplySplitBlock multiplies the block, one panel of columns after the other.
func (g *matmul[F]) multiplySplitBlock(steps int) {
	x := &g.marked
	x.any = x.a != [len(x.a)]uint64{} || x.b != [len(x.b)]uint64{}
	s := strips.Get()
	s.K, s.Acc, s.Near = steps, 0, false
	if g.acc || g.p0 > 0 || g.from.D != nil {
		s.Acc = 1
	}
	from := g.c
	if g.p0 == 0 && g.from.D != nil {
		from = g.from
	}
	s.A, s.Panel, s.BP = unsafe.Pointer(&g.pa[0]), uintptr(2*4*tileApart(steps)), uintptr(4*tileApart(steps))
	s.CS, s.FS = uintptr(g.c.LD)*4, uintptr(from.LD)*4
	for col := 0; col < g.nb; col += g.e.cols {
		s.Cols, s.Words = min(g.e.cols, g.nb-col), 0
		s.B, s.M = unsafe.Pointer(&g.pb[col/splitTile*tileApart(steps)]), g.mb
		s.C = unsafe.Pointer(&g.c.D[g.i0*g.c.LD+g.j0+col])
		s.From = uintptr(unsafe.Pointer(&from.D[g.i0*from.LD+g.j0+col]))
		g.multiplyStrip(s)
	}
	s.C, s.A, s.B = nil, nil, nil
	strips.Put(s)
}

// multiplyMarked multiplies a strip of a block that contains numbers that tiles cannot multiply.
func (g *matmul[F]) multiplyMarked(s *asm.Strip) {
	first := int(uintptr(s.A)-uintptr(unsafe.Pointer(&g.pa[0]))) / int(s.Panel) * g.e.rows
	col := int(uintptr(s.B)-uintptr(unsafe.Pointer(&g.pb[0]))) / int(s.BP) * splitTile
	a, c, rows := s.A, s.C, s.M
	for r := 0; r < rows; r += g.e.rows {
		s.A, s.C = unsafe.Add(a, uintptr(r/g.e.rows)*s.Panel), unsafe.Add(c, uintptr(r)*s.CS)
		s.M = min(g.e.rows, rows-r)
		if marked(g.marked.a[:], first+r) || marked(g.marked.b[:], col) {
			g.multiplyBoth(s, first+r, col)
		} else {
			g.e.multiply((*byte)(unsafe.Pointer(s)))
		}
	}
	s.A, s.C, s.M = a, c, 0
}

// marked reports whether one of a panel's tiles is marked, from the row or column on.
func marked(x []uint64, at int) bool {
	tile := at / splitTile
	return x[tile/64]>>(tile%64)&3 > 0
}

// multiplyBoth multiplies a panel of rows by one of columns with tiles and without. It uses the result
// without tiles only for rows and columns with numbers that tiles cannot multiply, so that the bits of the
// others do not depend on them.
func (g *matmul[F]) multiplyBoth(s *asm.Strip, row, col int) {
	const ld = 2 * splitTile
	i, j, m := g.i0+row, g.j0+col, s.M
	t := sumsPool.Get()
	t.d = Room(t.d, ld*ld)
	x := borrowGemm(g.e.plain)
	x.m, x.n, x.k, x.acc = m, s.Cols, g.kb, false
	x.c = Mat[F]{D: unsafe.Slice((*F)(unsafe.Pointer(&t.d[0])), ld*ld), LD: ld}
	x.a, x.b = g.a.from(i).to(g.p0), g.b.from(g.p0).to(j)
	if s.Acc == 1 && g.p0 == 0 && g.from.D != nil {
		x.from = g.from.Rows(i).to(j)
	} else if s.Acc == 1 {
		x.from = g.c.Rows(i).to(j)
	}
	x.multiply(false)
	g.e.multiply((*byte)(unsafe.Pointer(s)))
	var cols [ld]bool
	for q := range s.Cols {
		cols[q] = !g.splits(x.b, q, true)
	}
	for r := range m {
		whole := !g.splits(x.a, r, false)
		for q := range s.Cols {
			if whole || cols[q] {
				g.c.D[(i+r)*g.c.LD+j+q] = x.c.D[r*ld+q]
			}
		}
	}
	x.giveBack()
	sumsPool.Put(t)
}

// splits reports whether tiles can multiply the block's terms of a row or column of x.
func (g *tiling[F]) splits(x Mat[F], line int, column bool) bool {
	const limit = 0x1.ff00p127 // rounds to infinity
	for p := range g.kb {
		i, j := line, p
		if column {
			i, j = p, line
		}
		if v := float64(x.At(i, j)); !(v < limit && v > -limit) {
			return false
		}
	}
	return true
}
