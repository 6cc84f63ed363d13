package cpu

import (
	"sync"
	"unsafe"
)

// An engine is one ISA's way to multiply matrices of F: the sums of a panel of rows × two vectors of columns stay in
// registers. The portable path has none.
type engine[F Float] struct {
	rows, cols int // of a panel
	multiply   func(s *byte)
	packRows   func(dst, src *byte, step, ld, rows, words, room uintptr)
	packFour   func(dst, src *byte, step, ld, rows, words, panel uintptr) // four panels at once
	packCols   func(dst, src *float32, step, ld, n uintptr)               // 16 columns of op(b). Where these are nil, plain Go does it.

	pairs                    bool // elements are of 16 bits, and a term is two of them: then these pack
	packPairs, packFourPairs pairPacker
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

// The blocks of a product. What of op(b) is packed at a time stays in the third cache, a thread's part of op(a) in its
// second, with a panel of op(b). Rows of a that is not transposed are read where they lie: packing them was slower on
// every shape that was tried, even those whose rows fall on few sets of a cache. Many terms at a time are best: with
// twice as many, each element of c comes and goes half as often.
const (
	termsPacked = 1024      // of k, at most
	colsPacked  = 1024      // columns of op(b) that are packed together
	partBytes   = 400 << 10 // of op(a) of a part, at most
	partRows    = 480       // of a part, at most
	partCols    = 512
	thinBytes   = 800 << 10 // of op(a), at most, where each panel of op(b) is packed right before it is multiplied
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
	m, n, k int // k in terms
	acc     bool
	lone    bool // the product is of one term, of which the second number is not there

	shares         int // the job: so many products of a share of the columns, or of the rows; 0: another job
	byRows         bool
	packing        bool // the job: else it multiplies
	i0, mb         int  // the block: rows i0 to i0+mb-1,
	j0, nb         int  // columns,
	p0, kb         int  // and terms
	most           int  // rows of a part
	rowParts       int  // in how many parts rows are cut, and columns
	colParts       int
	packA, directB bool
	thin           bool // op(a) is so small that panels of op(b) are used once: each is packed when it is wanted
	pa, pb         []F
}

// multiply is c = a·b (+ c if acc) on several threads.
func (g *gemm[F]) multiply(threads bool) {
	if g.k == 0 {
		g.nothing()
		return
	}
	if threads = threads && g.m*g.n*g.k >= smallWork; threads && g.share(int(teamSize.Load())) {
		run(g, g.shares)
		g.shares = 0
		return
	}
	g.packA = g.a.t && (g.n > g.e.cols || g.e.pairs) || g.lone
	chunks := (g.k + termsPacked - 1) / termsPacked
	terms := (g.k + chunks - 1) / chunks
	g.directB = !g.b.t && !g.e.pairs && (g.m <= fewRows || g.m <= someRows && terms*g.b.ld*int(sizeOf[F]()) <= nearBytes)
	g.thin = !threads && !g.directB && g.m*terms*int(sizeOf[F]()) <= thinBytes
	g.most = g.rowsOfPart(terms)
	rows, cols := g.rowsAtOnce(threads), colsPacked
	if g.thin {
		g.most, rows, cols = g.m, g.m, g.e.cols
	}
	for x := range chunks {
		g.p0 = x * g.k / chunks
		g.kb = (x+1)*g.k/chunks - g.p0
		for g.j0 = 0; g.j0 < g.n; g.j0 += cols {
			g.nb = min(cols, g.n-g.j0)
			for g.i0 = 0; g.i0 < g.m; g.i0 += rows {
				g.mb = min(rows, g.m-g.i0)
				g.block(threads)
			}
		}
	}
}

// rowsOfPart is how many rows of so many terms a part has at most: whole panels, four or a multiple of four where they
// are packed.
func (g *gemm[F]) rowsOfPart(terms int) int {
	step := g.e.rows
	if g.packA {
		step *= four
	}
	return max(1, min(partRows, partBytes/(int(sizeOf[F]())*terms))/step) * step
}

// rowsAtOnce is how many rows a block has: if they are packed, a part for each thread.
func (g *gemm[F]) rowsAtOnce(threads bool) int {
	switch {
	case !g.packA:
		return g.m
	case threads:
		return g.most * teamThreads()
	}
	return g.most
}

// nothing is the product of no terms.
func (g *gemm[F]) nothing() {
	if g.acc {
		return
	}
	for i := range g.m {
		clear(g.c.d[i*g.c.ld:][:g.n])
	}
}

// block packs what the block's product needs and multiplies.
func (g *gemm[F]) block(threads bool) {
	aPanels, bPanels := g.aPanels(), g.bPanels()
	g.cut(aPanels, bPanels, threads)
	packed := 0
	if g.packA && (g.j0 == 0 || !g.thin) {
		g.pa = room(g.pa, max(thinBytes/int(sizeOf[F]())+g.e.rows*termsPacked, teamThreads()*max(partBytes/int(sizeOf[F]()), four*g.e.rows*termsPacked)))
		packed += groups(aPanels)
	}
	if g.i0 == 0 {
		g.pb = room(g.pb, (colsPacked+g.e.cols)*termsPacked)
		packed += groups(bPanels)
	}
	g.packing = true
	g.run(packed, threads)
	g.packing = false
	g.run(g.rowParts*g.colParts, threads)
}

func (g *gemm[F]) aPanels() int { return (g.mb + g.e.rows - 1) / g.e.rows }
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
	if g.i0 == 0 {
		if n := groups(g.bPanels()); i < n {
			g.packB(i)
			return
		} else {
			i -= n
		}
	}
	g.packPanelsA(i)
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
	if lost(aPanels, rows)*g.mb < lost(bPanels, cols)*g.mb || lost(aPanels, rows) == lost(bPanels, cols) && g.mb >= g.nb {
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

// Pools of what products need: for each part, for each product of float32 and of float64.
var (
	strips  pool[strip]
	gemms32 pool[gemm[float32]]
	gemms64 pool[gemm[float64]]
)

// A pool keeps what it once lent: as many as were lent at a time.
type pool[T any] struct {
	mu   sync.Mutex
	free []*T
}

func (p *pool[T]) get() (x *T) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		x, p.free = p.free[n-1], p.free[:n-1]
	}
	p.mu.Unlock()
	if x == nil {
		x = new(T)
	}
	return x
}

func (p *pool[T]) put(x *T) {
	p.mu.Lock()
	p.free = append(p.free, x)
	p.mu.Unlock()
}

// gemmsOf is the pool of F's products.
func gemmsOf[F Float]() *pool[gemm[F]] {
	if p, ok := any(&gemms32).(*pool[gemm[F]]); ok {
		return p
	}
	return any(&gemms64).(*pool[gemm[F]])
}

// borrowGemm is a product to fill in, with an engine in use; giveBack returns it.
func borrowGemm[F Float](e *engine[F]) *gemm[F] {
	g := gemmsOf[F]().get()
	g.e = e
	return g
}

func (g *gemm[F]) giveBack() {
	g.c, g.a, g.b = mat[F]{}, mat[F]{}, mat[F]{}
	gemmsOf[F]().put(g)
}

// matMulFast is MatMul by the engine in use.
func matMulFast[F Float](c, a, b []F, m, n, k int, ta, tb, acc bool) {
	if m == 0 || n == 0 {
		return
	}
	lda, ldb := k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	g := borrowGemm(engineOf[F]())
	g.c, g.a, g.b = mat[F]{d: c[:m*n], ld: n}, mat[F]{d: a[:m*k], ld: lda, t: ta}, mat[F]{d: b[:n*k], ld: ldb, t: tb}
	g.m, g.n, g.k, g.acc = m, n, k, acc
	g.multiply(true)
	g.giveBack()
}

// multiplyPart does the products of the rows' part i and the columns' part j.
func (g *gemm[F]) multiplyPart(i, j int) {
	e, aPanels, bPanels := g.e, g.aPanels(), g.bPanels()
	r0, r1 := i*aPanels/g.rowParts*e.rows, min((i+1)*aPanels/g.rowParts*e.rows, g.mb)
	s := strips.get()
	s.k, s.acc = g.kb, 0
	if g.acc || g.p0 > 0 {
		s.acc = 1
	}
	g.locateA(s, r0)
	from, to := j*bPanels/g.colParts, (j+1)*bPanels/g.colParts
	if g.c.h != nil {
		g.multiplyRounded(s, r0, r1, from, to)
	} else {
		s.cs = uintptr(g.c.ld) * sizeOf[F]()
		for q := from; q < to; q++ {
			g.multiplyPanel(s, q, r1-r0, unsafe.Pointer(&g.c.d[(g.i0+r0)*g.c.ld+g.j0+q*e.cols]))
		}
	}
	s.c, s.a, s.b = nil, nil, nil
	strips.put(s)
}

// multiplyPanel does the products of so many rows and the columns of panel q, which go to c.
func (g *gemm[F]) multiplyPanel(s *strip, q, rows int, c unsafe.Pointer) {
	size, e, col := sizeOf[F](), g.e, q*g.e.cols
	s.setCols(min(e.cols, g.nb-col), int(size/4))
	if g.directB && s.cols == e.cols {
		s.b, s.bp = unsafe.Pointer(&g.b.d[g.p0*g.b.ld+g.j0+col]), uintptr(g.b.ld)*size
	} else {
		s.b, s.bp = unsafe.Pointer(&g.pb[col*g.kb]), uintptr(e.cols)*size
	}
	s.c, s.m = c, rows
	if g.thin && !g.b.t && g.j0+2*e.cols <= g.n {
		a := s.a
		g.multiplyAhead(s)
		s.a = a
		return
	}
	s.next, s.step = uintptr(s.b)+uintptr(g.kb)*s.bp, 64
	if g.thin {
		s.next, s.step = uintptr(s.b), 0
	}
	e.multiply((*byte)(unsafe.Pointer(s)))
}

// multiplyAhead multiplies a thin product's panel while it asks for what the next panel of b will be packed from: a line
// of each row with so many panels of a as it takes, then the next line.
func (g *gemm[F]) multiplyAhead(s *strip) {
	size, e := sizeOf[F](), g.e
	row, lines, panels := uintptr(g.b.ld)*size, uintptr(e.cols)*size/64, 4
	if e.pairs { // two rows of half the length
		row, lines, panels = uintptr(g.b.ld)*2, 1, 8
	}
	a, c, left := s.a, s.c, s.m
	for x := uintptr(0); left > 0; x++ {
		s.m, s.step, s.next = left, 0, uintptr(s.b)
		if x < lines {
			s.m, s.step, s.next = min(left, panels*e.rows), row, g.sourceOfB(e.cols)+64*x
		}
		s.a, s.c = a, c
		n := s.m
		e.multiply((*byte)(unsafe.Pointer(s)))
		if left -= n; left > 0 {
			a, c = unsafe.Add(a, uintptr(n/e.rows)*s.panel), unsafe.Add(c, uintptr(n)*s.cs)
		}
	}
}

// sourceOfB is where the block's op(b), not transposed, begins that lies so many columns on.
func (g *gemm[F]) sourceOfB(cols int) uintptr {
	if g.e.pairs {
		return uintptr(unsafe.Pointer(&g.b.h[2*g.p0*g.b.ld+g.j0+cols]))
	}
	return uintptr(unsafe.Pointer(&g.b.d[g.p0*g.b.ld+g.j0+cols]))
}

// locateA points a strip at op(a) from the block's row r0 on.
func (g *gemm[F]) locateA(s *strip, r0 int) {
	size := sizeOf[F]()
	rows, ld := uintptr(g.e.rows), uintptr(g.a.ld)
	switch {
	case !g.packA && g.e.pairs:
		s.a = unsafe.Pointer(&g.a.h[(g.i0+r0)*g.a.ld+2*g.p0])
		s.ai, s.ap, s.panel = 2*ld, size, 2*rows*ld
	case g.packA:
		s.a = unsafe.Pointer(&g.pa[r0*g.kb])
		s.ai, s.ap, s.panel = size, rows*size, rows*uintptr(g.kb)*size
	case g.a.t:
		s.a = unsafe.Pointer(&g.a.d[g.p0*g.a.ld+g.i0+r0])
		s.ai, s.ap, s.panel = size, ld*size, rows*size
	default:
		s.a = unsafe.Pointer(&g.a.d[(g.i0+r0)*g.a.ld+g.p0])
		s.ai, s.ap, s.panel = ld*size, size, rows*ld*size
	}
}
