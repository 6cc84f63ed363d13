package cpu

// An engine is one ISA's way to multiply matrices of F: the sums of a panel of rows × two or three vectors of columns
// stay in registers. The portable path has none.
type engine[F Float] struct {
	rows, cols int // of a panel
	multiply   func(s *byte)
	packRows   func(dst, src *byte, step, ld, rows, words, room uintptr)
	packFour   func(dst, src *byte, step, ld, rows, words, panel uintptr) // four panels at once
	// 16 columns of op(b). Where these are nil, plain Go does it.
	packCols func(dst, src *float32, step, ld, n uintptr)

	pairs                    bool // elements are of 16 bits, and a term is two of them: then these pack
	packPairs, packFourPairs pairPacker
	narrowRows               func(dst *uint16, src *float32, step, ld, rows, words uintptr) // rounds
	// op(a) is packed row by row: a row's pairs lie together
	together bool

	wide *engine[F] // the same with panels of fewer rows and more columns, nil if there is none or it does not pay

	split rowSplitter // not nil: float32s are split for tiles (gemmsplit.go),
	plain *engine[F]  // but for what this one multiplies

	crowds bool // rows of a that share few sets of the first cache are read where they lie all the same
}

// engines of the ISA in use; nil if that is Portable.
var (
	engine32 *engine[float32]
	engine64 *engine[float64]
	engine16 *engine[float32] // of bfloat16 with sums of float32
)

// engineOf is the engine in use for F.
func engineOf[F Float]() *engine[F] {
	switch e := any((*engine[F])(nil)).(type) {
	case *engine[float32]:
		return any(engine32).(*engine[F])
	case *engine[float64]:
		return any(engine64).(*engine[F])
	default:
		_ = e
		return nil
	}
}

// whole is the engine that multiplies numbers as they are, nil if there is none.
func (e *engine[F]) whole() *engine[F] {
	if e != nil && e.plain != nil {
		return e.plain
	}
	return e
}

// forTerms is the engine for products of k terms. Whether numbers are split depends on the terms alone: engines that do
// not split make the same bits as each other, which those that split do not.
func (e *engine[F]) forTerms(k int) *engine[F] {
	if k < leastTerms {
		return e.whole()
	}
	return e
}

// forCols is the engine for products of n columns: the wide one, unless it computes more columns that are not there
// than mostPadded for each of n.
func (e *engine[F]) forCols(n int) *engine[F] {
	if w := e.wide; w != nil && (n+w.cols-1)/w.cols*w.cols <= max(n+n/mostPadded, (n+e.cols-1)/e.cols*e.cols) {
		return w
	}
	return e
}

// mostPadded is of how many columns one may be computed that is not there, for fewer loads.
const mostPadded = 28

// The blocks of a product. What of op(b) is packed at a time stays in the third cache, a thread's part of op(a) in its
// second, with a panel of op(b). Rows of a that is not transposed are read where they lie: packing them was slower on
// every shape that was tried; those that lie a page apart are copied. Many terms at a time are best: with
// twice as many, each element of c comes and goes half as often.
const (
	termsPacked = 1024      // of k, at most
	manyTerms   = 768       // of a chunk, at most, where there are several: of 256 rows they fit thinBytes
	colsPacked  = 1024      // columns of op(b) that are packed together
	partBytes   = 400 << 10 // of op(a) of a part, at most
	partRows    = 480       // of a part, at most
	partCols    = 512
	thinBytes   = 800 << 10 // of a block of op(a), at most, where each panel of op(b) is packed when it is multiplied
	smallWork   = 1 << 20   // products (m*n*k) that one thread does faster than several
	fewRows     = 48        // too few to pay for packing rows of b
	someRows    = 128       // too few if the rows of b lie within nearBytes
	nearBytes   = 512 << 10
)

// A gemm is one product while it runs, on one or more threads, as jobs of three kinds that follow one another: pack
// blocks of b and a, multiply them. The bits of an element are the same however it is cut.
type gemm[F Float] struct {
	e       *engine[F]
	c, a, b mat[F]
	from    mat[F] // what the product is added to, if there are elements; ld 0: one row
	then    ending[F]
	m, n, k int  // k in terms
	acc     bool // it is added to c
	lone    bool // the product is of one term, of which the second number is not there

	shares         int // the job: so many products of a share of the rows and of the columns; 0: another job
	rowShares      int
	colShares      int
	packing        bool // the job: else it multiplies
	i0, mb         int  // the block: rows i0 to i0+mb-1,
	j0, nb         int  // columns,
	p0, kb         int  // and terms
	most           int  // rows of a part
	rowParts       int  // in how many parts rows are cut, and columns
	colParts       int
	packA, directB bool
	// rows of op(a) lie so that few sets of a cache hold them: they are copied beside each other
	copyA  bool
	thin   bool     // op(a) is so small that panels of op(b) are used once: each is packed when it is wanted
	after  foreseen // of op(a), what is packed after this block
	pa, pb []F
	marked marks // of what is split
}

// multiply is c = a·b (+ c if acc) on several threads.
func (g *gemm[F]) multiply(threads bool) {
	if g.k == 0 {
		g.nothing()
		if g.then.c.d != nil {
			g.endRows(0, g.m, g.n)
		}
		return
	}
	if g.e.split != nil {
		g.multiplySplit(threads)
		return
	}
	threads = threads && teamThreads() > 1 && g.m*g.n*g.k >= smallWork
	if threads && g.share(int(teamSize.Load())) {
		run(g, g.shares)
		g.shares = 0
		return
	}
	g.packA = g.a.t && (g.n > g.e.cols || g.e.pairs) || g.lone
	g.copyA = !g.packA && g.crowded()
	chunks := g.chunks()
	terms := (g.k + chunks - 1) / chunks
	g.directB = !g.b.t && !g.e.pairs &&
		(g.m <= fewRows || g.m <= someRows && terms*g.b.ld*int(sizeOf[F]()) <= nearBytes)
	g.thin = !threads && !g.directB && g.isThin(terms)
	g.most = g.rowsOfPart(terms)
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
				g.block(threads)
			}
		}
	}
}

// terms are those of a chunk, the first and how many.
func (g *gemm[F]) terms(x, chunks int) (first, n int) {
	first = x * g.k / chunks
	return first, (x+1)*g.k/chunks - first
}

// multiplyThin multiplies chunk x of the terms: as many rows of op(a) at a time as the second cache holds, each such
// block by every panel of op(b).
func (g *gemm[F]) multiplyThin(x, chunks int) {
	blocks := g.blocksOfRows(g.kb)
	for y := range blocks {
		g.i0, g.mb = g.rowsOfBlock(y, blocks)
		g.most = g.mb
		g.foresee(x, chunks, y, blocks)
		cols := g.thinCols()
		for g.j0 = 0; g.j0 < g.n; g.j0 += cols {
			g.nb = min(cols, g.n-g.j0)
			g.block(false)
		}
	}
}

// thinCols is how many columns of op(b) are packed, and multiplied, at a time where it is thin: those of a panel; of
// four for tiles, which multiply so fast that the lines of a row, which memory has together, are to come together.
func (g *gemm[F]) thinCols() int {
	if g.e.together {
		return four * g.e.cols
	}
	return g.e.cols
}

// rowsOfBlock are the rows of a block of op(a), the first and how many.
func (g *gemm[F]) rowsOfBlock(y, blocks int) (first, n int) {
	panels := g.aPanelsOf(g.m)
	first = y * panels / blocks * g.e.rows
	return first, min((y+1)*panels/blocks*g.e.rows, g.m) - first
}

// blocksOfRows is in how many blocks the rows of op(a), of so many terms, are of at most thinBytes.
func (g *gemm[F]) blocksOfRows(terms int) int {
	size := g.m * terms * int(sizeOf[F]())
	return (size + thinBytes - 1) / thinBytes
}

// isThin tells whether each panel of op(b) is packed where it is multiplied: if there is one block of rows, or the
// first panel of each packs it on its way.
func (g *gemm[F]) isThin(terms int) bool {
	return !g.b.t && !g.e.pairs || g.blocksOfRows(terms) == 1
}

// rowsOfPart is how many rows of so many terms a part has at most: whole panels, four or a multiple of four where they
// are packed.
func (g *gemm[F]) rowsOfPart(terms int) int {
	step := g.e.rows
	if g.packA || g.copyA {
		step *= four
	}
	return max(1, min(partRows, partBytes/(int(sizeOf[F]())*terms))/step) * step
}

// rowsAtOnce is how many rows a block has: if they are packed, a part for each thread.
func (g *gemm[F]) rowsAtOnce(threads bool) int {
	switch {
	case !g.packA && !g.copyA:
		return g.m
	case threads:
		return g.most * teamThreads()
	}
	return g.most
}

// nothing is the product of no terms.
func (g *gemm[F]) nothing() {
	switch {
	case g.from.d != nil:
		g.c.copyFrom(g.from, g.m, g.n)
	case !g.acc:
		for i := range g.m {
			clear(g.c.d[i*g.c.ld:][:g.n])
		}
	}
}

// copyFrom copies m rows of n elements.
func (x mat[F]) copyFrom(from mat[F], m, n int) {
	for i := range m {
		copy(x.d[i*x.ld:][:n], from.d[i*from.ld:])
	}
}

// block packs what the block's product needs and multiplies.
func (g *gemm[F]) block(threads bool) {
	aPanels, bPanels := g.aPanels(), g.bPanels()
	g.cut(aPanels, bPanels, threads)
	packed := 0
	if (g.packA || g.copyA) && (g.j0 == 0 || !g.thin) {
		g.pa = room(g.pa, g.roomOfA())
		packed += groups(aPanels)
	}
	if g.i0 == 0 || g.thin {
		g.pb = room(g.pb, (colsPacked+g.e.cols)*termsPacked)
	}
	if g.packsB() {
		packed += groups(bPanels)
	}
	g.packing = true
	g.run(packed, threads)
	g.packing = false
	g.run(g.rowParts*g.colParts, threads)
}

// roomOfA is how many elements op(a) packed, or copied, has at most. Copied rows are longer, each by at most apart;
// those of a block where it is thin are m, or as many as make up thinBytes and fill the last panel.
func (g *gemm[F]) roomOfA() int {
	size, group, longer := int(sizeOf[F]()), four*g.e.rows, 0
	if g.copyA {
		terms := g.k / g.chunks() // of a chunk, at least
		longer = min(g.m, thinBytes/(terms*size)+2*g.e.rows) * apart
	}
	part := max(partBytes/size, group*termsPacked) + partRows*apart/size
	most := max((thinBytes+longer)/size+g.e.rows*(termsPacked+apart), teamThreads()*part)
	if g.e.together { // rows of 17 pairs take the room of 32
		most *= 2
	}
	return most
}

func (g *gemm[F]) aPanels() int { return g.aPanelsOf(g.mb) }

// aPanelsOf is how many panels so many rows are.
func (g *gemm[F]) aPanelsOf(rows int) int { return (rows + g.e.rows - 1) / g.e.rows }

func (g *gemm[F]) bPanels() int { return (g.nb + g.e.cols - 1) / g.e.cols }

// room is x with space for n elements, whatever they are: at once for the largest block, of which a process takes the
// memory that it touches.
func room[F Float](x []F, n int) []F {
	if len(x) < n {
		x = aligned[F](n)
	}
	return x
}

func (g *gemm[F]) run(parts int, threads bool) {
	if threads {
		run(g, parts)
		return
	}
	for i := range parts {
		g.part(i)
	}
}

// part packs panels, of b before those of a, or multiplies a part of the rows by one of the columns; or it is a share.
func (g *gemm[F]) part(i int) {
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

// packsB tells whether the block's op(b) is to be packed before it is multiplied.
func (g *gemm[F]) packsB() bool {
	if g.thin {
		return !g.keepsB()
	}
	return g.i0 == 0
}

// keepsB tells whether the first panel of rows packs the block's panel of op(b) while it multiplies it: it reads whole
// rows, from where they lie.
func (g *gemm[F]) keepsB() bool {
	return g.thin && !g.b.t && !g.e.pairs && g.nb == g.e.cols && g.mb >= g.e.rows
}

// cut decides into how many parts the block's panels are cut: of a size that suits the caches, a multiple of the
// threads in the direction that leaves less over.
func (g *gemm[F]) cut(aPanels, bPanels int, threads bool) {
	g.rowParts = (g.mb + g.most - 1) / g.most
	g.colParts = (g.nb + partCols - 1) / partCols
	n := teamSize.Load()
	if !threads || n < 2 {
		return
	}
	rows, cols := upTo(g.rowParts, int(n)), upTo(g.colParts, int(n))
	if lost(aPanels, rows)*g.mb < lost(bPanels, cols)*g.mb || lost(aPanels, rows) == lost(bPanels, cols) &&
		g.mb >= g.nb {
		g.rowParts = min(rows, aPanels)
	} else {
		g.colParts = min(cols, bPanels)
	}
}

// upTo is the first multiple of n from x on.
func upTo(x, n int) int { return (x + n - 1) / n * n }

// lost is what the largest of so many parts has more than its share, in thousandths of that.
func lost(panels, parts int) int {
	return 1000 * ((panels+parts-1)/parts*parts - panels) / panels
}

// chunks is in how many chunks the terms are multiplied, and added to c.
func (g *gemm[F]) chunks() int {
	switch {
	case g.k <= termsPacked:
		return 1
	case g.a.t && !g.e.pairs:
		return (g.k + tuned.packed - 1) / tuned.packed
	}
	return (g.k + manyTerms - 1) / manyTerms
}
