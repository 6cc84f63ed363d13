package gemm

import (
	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/team"
)

// engine is the matmul of one ISA for F. The sums of a panel of rows × two or three vectors of columns stay
// in registers. The portable path has no engine.
type engine[F elem.Float] struct {
	rows, cols int // of a panel
	multiply   func(s *byte)
	packRows   func(dst, src *byte, step, ld, rows, words, room uintptr)
	packFour   func(dst, src *byte, step, ld, rows, words, panel uintptr) // four panels at once
	// 16 columns of op(b). If these functions are nil, plain Go is used.
	packCols func(dst, src *float32, step, ld, n uintptr)

	pairs                    bool // elements have 16 bits, and a term is a pair: packed by the next two functions
	packPairs, packFourPairs pairPacker
	narrowRows               func(dst *uint16, src *float32, step, ld, rows, words uintptr) // rounds to bfloat16
	// op(a) is packed row by row: a row's pairs are contiguous
	together bool

	wide *engine[F] // the same with panels of fewer rows and more columns; nil if there is none or it does not pay

	split rowSplitter // if not nil, float32s are split for tiles (split.go),
	plain *engine[F]  // except what this engine multiplies

	crowds bool // rows of a that share few sets of the first-level cache are read in place anyway
}

// whole returns the engine that multiplies without splitting, or nil.
func (e *engine[F]) whole() *engine[F] {
	if e != nil && e.plain != nil {
		return e.plain
	}
	return e
}

// forTerms returns the engine for matmuls of k terms. Whether numbers are split depends only on k, because
// engines that split give other bits than those that do not.
func (e *engine[F]) forTerms(k int) *engine[F] {
	if k < leastTerms {
		return e.whole()
	}
	return e
}

// forCols returns the engine for matmuls of n columns: the wide one, unless it computes more than one
// padding column for mostPadded columns.
func (e *engine[F]) forCols(n int) *engine[F] {
	if w := e.wide; w != nil && (n+w.cols-1)/w.cols*w.cols <= max(n+n/mostPadded, (n+e.cols-1)/e.cols*e.cols) {
		return w
	}
	return e
}

// mostPadded is the number of columns for which one padding column may be computed, in exchange for fewer
// loads.
const mostPadded = 28

// The blocks of a matmul. The packed part of op(b) fits the third-level cache; a thread's part of op(a)
// fits its second-level cache, with a panel of op(b). Rows of an untransposed a are read in place, because
// packing them was slower on every shape tried, except rows that are a page apart, which are copied. Long
// chunks of terms are best: with twice as many terms, each element of c is loaded and stored half as often.
const (
	termsPacked = 1024      // of k, at most
	manyTerms   = 768       // per chunk, at most, if there are several: 256 rows of them fit thinBytes
	colsPacked  = 1024      // columns of op(b) that are packed together
	partBytes   = 400 << 10 // of op(a) per part, at most
	partRows    = 480       // per part, at most
	partCols    = 512
	thinBytes   = 800 << 10 // of a block of op(a), at most, if each panel of op(b) is packed when it is multiplied
	smallWork   = 1 << 20   // multiply-adds (m*n*k) below which one thread is faster than several
	fewRows     = 48        // too few rows to make packing rows of b worthwhile
	someRows    = 128       // too few if the rows of b lie within nearBytes
	nearBytes   = 512 << 10
)

// problem is a matmul to compute: c = a·b, plus from or c if there is one, with an epilogue.
type problem[F elem.Float] struct {
	e        *engine[F]
	c, a, b  Mat[F]
	from     Mat[F] // C operand that the result is added to, if there is one; ld 0: one row
	epilogue epilogue[F]
	m, n, k  int  // k in terms
	acc      bool // adds to c
	lone     bool // the matmul has one term, whose second number is missing
}

// block is the part of a matmul that is computed at present: mb rows from i0 on, nb columns, and kb terms.
type block struct{ i0, mb, j0, nb, p0, kb int }

// tiling says how a matmul is divided into blocks, and how these are read.
type tiling[F elem.Float] struct {
	problem[F]
	block
	maxRows  int // rows per part
	rowParts int // number of parts of the block's rows and of its columns
	colParts int
	packA    bool
	directB  bool
	// rows of op(a) fall into few sets of a cache: they are copied into contiguous memory
	copyA bool
	thin  bool // op(a) is so small that panels of op(b) are used once: each is packed when it is needed
}

// packer packs the operands of blocks.
type packer[F elem.Float] struct {
	tiling[F]
	pa, pb []F
}

// matmul is a matmul in progress, on one or more threads. It runs as jobs of three kinds that follow one
// another: pack blocks of b, pack blocks of a, multiply. The bits of an element do not depend on how the
// matmul is divided.
type matmul[F elem.Float] struct {
	splitter[F]
	after foreseen // the next block of op(a) that will be packed

	packing   bool // job: packs; else multiplies
	shares    int  // job: the number of shares of the rows and columns; 0: another job
	rowShares int
	colShares int
}

// multiply computes c = a·b (+ c if acc) on several threads.
func (g *matmul[F]) multiply(threads bool) {
	if g.k == 0 {
		g.nothing()
		if g.epilogue.c.D != nil {
			g.epilogueRows(0, g.m, g.n)
		}
		return
	}
	if g.e.split != nil {
		g.multiplySplit(threads)
		return
	}
	threads = threads && team.Size() > 1 && g.m*g.n*g.k >= smallWork
	if threads && g.share(team.Size()) {
		team.Run(g, g.shares)
		g.shares = 0
		return
	}
	g.packA = g.a.T && (g.n > g.e.cols || g.e.pairs) || g.lone
	g.copyA = !g.packA && g.crowded()
	chunks := g.chunks()
	terms := (g.k + chunks - 1) / chunks
	g.directB = !g.b.T && !g.e.pairs &&
		(g.m <= fewRows || g.m <= someRows && terms*g.b.LD*int(elem.Size[F]()) <= nearBytes)
	g.thin = !threads && !g.directB && g.isThin(terms)
	g.maxRows = g.rowsOfPart(terms)
	rows, cols := g.rowsAtOnce(threads), colsPacked
	for x := range chunks {
		g.p0, g.kb = g.terms(x, chunks)
		if g.thin {
			g.multiplyThin(x, chunks)
			continue
		}
		for g.j0 = 0; g.j0 < g.n; g.j0 += cols {
			g.nb = min(cols, g.n-g.j0)
			for g.i0 = 0; g.i0 < g.m; g.i0 += rows {
				g.mb = min(rows, g.m-g.i0)
				g.multiplyBlock(threads)
			}
		}
	}
}

// terms returns the first term of a chunk and their number.
func (g *problem[F]) terms(x, chunks int) (first, n int) {
	first = x * g.k / chunks
	return first, (x+1)*g.k/chunks - first
}

// multiplyThin multiplies chunk x of the terms: each block of op(a), whose rows fit the second-level cache,
// by every panel of op(b).
func (g *matmul[F]) multiplyThin(x, chunks int) {
	blocks := g.blocksOfRows(g.kb)
	for y := range blocks {
		g.i0, g.mb = g.rowsOfBlock(y, blocks)
		g.maxRows = g.mb
		g.foresee(x, chunks, y, blocks)
		cols := g.thinCols()
		for g.j0 = 0; g.j0 < g.n; g.j0 += cols {
			g.nb = min(cols, g.n-g.j0)
			g.multiplyBlock(false)
		}
	}
}

// thinCols returns the number of columns of op(b) that are packed and multiplied at a time if the matmul is
// thin: those of one panel, or of four panels for tiles, whose speed requires that contiguous lines of a
// row are loaded together.
func (g *problem[F]) thinCols() int {
	if g.e.together {
		return four * g.e.cols
	}
	return g.e.cols
}

// rowsOfBlock returns the first row of a block of op(a) and their number.
func (g *problem[F]) rowsOfBlock(y, blocks int) (first, n int) {
	panels := g.aPanelsOf(g.m)
	first = y * panels / blocks * g.e.rows
	return first, min((y+1)*panels/blocks*g.e.rows, g.m) - first
}

// blocksOfRows returns the number of blocks of at most thinBytes for the rows of op(a) with the given
// number of terms.
func (g *problem[F]) blocksOfRows(terms int) int {
	size := g.m * terms * int(elem.Size[F]())
	return (size + thinBytes - 1) / thinBytes
}

// isThin reports whether each panel of op(b) is packed where it is multiplied: if there is one block of
// rows, or if the first panel of rows packs it while multiplying.
func (g *problem[F]) isThin(terms int) bool {
	return !g.b.T && !g.e.pairs || g.blocksOfRows(terms) == 1
}

// rowsOfPart returns the maximum number of rows of a part: whole panels, and a multiple of four panels if
// they are packed.
func (g *tiling[F]) rowsOfPart(terms int) int {
	step := g.e.rows
	if g.packA || g.copyA {
		step *= four
	}
	return max(1, min(partRows, partBytes/(int(elem.Size[F]())*terms))/step) * step
}

// rowsAtOnce returns the number of rows of a block: if they are packed, a part for each thread.
func (g *tiling[F]) rowsAtOnce(threads bool) int {
	switch {
	case !g.packA && !g.copyA:
		return g.m
	case threads:
		return g.maxRows * team.Size()
	}
	return g.maxRows
}

// nothing computes the matmul of no terms.
func (g *problem[F]) nothing() {
	switch {
	case g.from.D != nil:
		g.c.copyFrom(g.from, g.m, g.n)
	case !g.acc:
		for i := range g.m {
			clear(g.c.D[i*g.c.LD:][:g.n])
		}
	}
}

// multiplyBlock packs the operands of the block's matmul and multiplies them.
func (g *matmul[F]) multiplyBlock(threads bool) {
	aPanels, bPanels := g.aPanels(), g.bPanels()
	g.cut(aPanels, bPanels, threads)
	packed := 0
	if (g.packA || g.copyA) && (g.j0 == 0 || !g.thin) {
		g.pa = Room(g.pa, g.roomOfA())
		packed += groups(aPanels)
	}
	if g.i0 == 0 || g.thin {
		g.pb = Room(g.pb, (colsPacked+g.e.cols)*termsPacked)
	}
	if g.packsB() {
		packed += groups(bPanels)
	}
	g.packing = true
	g.run(packed, threads)
	g.packing = false
	g.run(g.rowParts*g.colParts, threads)
}

// roomOfA returns the maximum number of elements of a packed or copied op(a). Copied rows are longer, each
// by at most apart. The rows of a block of a thin matmul are m, or as many as fill thinBytes and the last
// panel.
func (g *tiling[F]) roomOfA() int {
	size, group, longer := int(elem.Size[F]()), four*g.e.rows, 0
	if g.copyA {
		terms := g.k / g.chunks() // of a chunk, at least
		longer = min(g.m, thinBytes/(terms*size)+2*g.e.rows) * apart
	}
	part := max(partBytes/size, group*termsPacked) + partRows*apart/size
	limit := max((thinBytes+longer)/size+g.e.rows*(termsPacked+apart), team.Size()*part)
	if g.e.together { // rows of 17 pairs take the space of 32
		limit *= 2
	}
	return limit
}

func (g *tiling[F]) aPanels() int { return g.aPanelsOf(g.mb) }

// aPanelsOf returns the number of panels for a number of rows.
func (g *problem[F]) aPanelsOf(rows int) int { return (rows + g.e.rows - 1) / g.e.rows }

func (g *tiling[F]) bPanels() int { return (g.nb + g.e.cols - 1) / g.e.cols }

// Room returns x with space for n elements, with undefined contents. Callers pass the size of the largest
// block at once; a process uses only the memory that it touches.
func Room[F elem.Float](x []F, n int) []F {
	if len(x) < n {
		x = aligned[F](n)
	}
	return x
}

func (g *matmul[F]) run(parts int, threads bool) {
	if threads {
		team.Run(g, parts)
		return
	}
	for i := range parts {
		g.Part(i)
	}
}

// Part packs panels, those of b before those of a, or multiplies a part of the rows by a part of the
// columns, or computes a share.
func (g *matmul[F]) Part(i int) {
	if g.shares > 0 {
		multiplyShare(g, i)
		return
	}
	if !g.packing {
		g.multiplyPart(i/g.colParts, i%g.colParts)
		return
	}
	if g.packsB() {
		if n := groups(g.bPanels()); i < n {
			g.packB(i)
			return
		} else {
			i -= n
		}
	}
	g.packPanelsA(i)
}

// packsB reports whether the block's op(b) must be packed before it is multiplied.
func (g *tiling[F]) packsB() bool {
	if g.thin {
		return !g.keepsB()
	}
	return g.i0 == 0
}

// keepsB reports whether the first panel of rows packs the block's panel of op(b) while it multiplies it:
// it reads whole rows in place.
func (g *tiling[F]) keepsB() bool {
	return g.thin && !g.b.T && !g.e.pairs && g.nb == g.e.cols && g.mb >= g.e.rows
}

// cut decides into how many parts the block's panels are divided: parts that suit the caches, and a
// multiple of the threads in the direction that balances better.
func (g *tiling[F]) cut(aPanels, bPanels int, threads bool) {
	g.rowParts = (g.mb + g.maxRows - 1) / g.maxRows
	g.colParts = (g.nb + partCols - 1) / partCols
	n := team.Size()
	if !threads || n < 2 {
		return
	}
	rows, cols := upTo(g.rowParts, n), upTo(g.colParts, n)
	if lost(aPanels, rows)*g.mb < lost(bPanels, cols)*g.mb || lost(aPanels, rows) == lost(bPanels, cols) &&
		g.mb >= g.nb {
		g.rowParts = min(rows, aPanels)
	} else {
		g.colParts = min(cols, bPanels)
	}
}

// upTo rounds x up to a multiple of n.
func upTo(x, n int) int { return (x + n - 1) / n * n }

// lost returns how much the largest of so many parts exceeds its share, in thousandths.
func lost(panels, parts int) int {
	return 1000 * ((panels+parts-1)/parts*parts - panels) / panels
}

// chunks returns the number of chunks in which the terms are multiplied and added to c.
func (g *problem[F]) chunks() int {
	switch {
	case g.k <= termsPacked:
		return 1
	case g.a.T && !g.e.pairs:
		return (g.k + tuned.packed - 1) / tuned.packed
	}
	return (g.k + manyTerms - 1) / manyTerms
}
