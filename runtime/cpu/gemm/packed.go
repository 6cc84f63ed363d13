package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// TileStep is the number of terms that a tile multiplies.
const TileStep = 32

// upToTile rounds x up to a multiple of tileStep.
func upToTile(x int) int { return (x + TileStep - 1) &^ (TileStep - 1) }

// tilesOf returns the engine that multiplies pairs of bfloat16 and sums in F.
func tilesOf[F elem.Float]() *engine[F] { return any(engine16).(*engine[F]) }

// Packed is op(b) of attention's matmuls: rows of a head or their transpose, which are multiplied by many
// rows of op(a). If there is an engine, its panels are packed once; otherwise b is read in place. For
// 16-bit numbers a term is a pair, and if their number is odd, the second number of the last pair is zero.
type Packed[F elem.Float] struct {
	e           *engine[F]
	At          Mat[F]
	Rows        int // of at, or of its transpose
	Terms, Cols int
	d           []F // [panels][terms][columns of a panel]
}

// InPlace reports whether b is read in place: there is no engine.
func (p *Packed[F]) InPlace() bool { return p.e == nil }

// PanelRows and panelCols return the rows of op(a) and the columns that the engine multiplies at a time.
func (p *Packed[F]) PanelRows() int { return p.e.rows }
func (p *Packed[F]) PanelCols() int { return p.e.cols }

// Forget forgets b, so that it can be freed.
func (p *Packed[F]) Forget() { p.At = Mat[F]{} }

// Pack packs op(b) with the given numbers of terms and columns.
func (p *Packed[F]) Pack(b Mat[F], terms, cols int) {
	p.e, p.At, p.Rows, p.Terms, p.Cols = engineOf[F]().whole(), b, terms, terms, cols
	if b.H != nil {
		p.e, p.Terms = tilesOf[F](), (terms+1)/2
	}
	if p.e == nil {
		return
	}
	g := borrowGemm(p.e)
	g.b, g.p0, g.kb, g.j0, g.nb, g.directB = b, 0, p.Terms, 0, cols, false
	p.d = Room(p.d, g.bPanels()*p.e.cols*p.Terms)
	own := g.pb
	g.pb = p.d
	if b.H != nil && terms%2 == 1 {
		g.packOdd(terms)
	} else {
		for i := range groups(g.bPanels()) {
			g.packB(i)
		}
	}
	g.pb = own
	g.giveBack()
}

// TermsOf returns which terms a product of terms lo to hi-1 multiplies: the position of the first in rows
// of op(a), and the range of the packed ones. For pairs these are whole tiles, in which the other terms of
// op(a) are 0.
func (p *Packed[F]) TermsOf(lo, hi int) (first, p0, p1 int) {
	if p.At.H == nil {
		return lo, lo, hi
	}
	lo = lo &^ (TileStep - 1)
	return lo, lo / 2, min(upToTile(hi)/2, p.Terms)
}

// packOdd packs pairs of an odd number of rows.
func (g *packer[F]) packOdd(terms int) {
	x, w := g.linesOfB(), g.e.cols
	to := unsafe.Slice((*uint32)(unsafe.Pointer(&g.pb[0])), g.bPanels()*w*g.kb)
	for at := range to {
		q, p, j := at/(w*g.kb), at/w%g.kb, at%w
		pair, line := uint32(0), q*w+j
		if line < x.n {
			pair = uint32(x.h[x.at(line, 2*p)])
		}
		if line < x.n && 2*p+1 < terms {
			pair |= uint32(x.h[x.at(line, 2*p+1)]) << 16
		}
		to[at] = pair
	}
}

// PackedRows describes m rows that are multiplied by the panel of b that begins at column col, with b's terms
// p0 to p1-1: c = a·b (+ c if acc).
type PackedRows[F elem.Float] struct {
	C         *F
	CLD       int            // elements from row to row of c
	First     unsafe.Pointer // the first number of a, for term p0
	A         Mat[F]         // only its layout is read
	Col       int
	M, P0, P1 int
	Acc       bool
}

// Multiply multiplies rows by a panel. s is working memory, and must be kept from call to call.
func (p *Packed[F]) Multiply(s *asm.Strip, x *PackedRows[F]) {
	e := p.e
	size, rows, ld := elem.Size[F](), uintptr(e.rows), uintptr(x.A.LD)*x.A.Size()
	s.A, s.AI, s.AP, s.Panel, s.Near = x.First, ld, size, rows*ld, e.together
	if x.A.T {
		s.AI, s.AP, s.Panel = size, ld, rows*size
	}
	s.C, s.CS = unsafe.Pointer(x.C), uintptr(x.CLD)*size
	s.From, s.FS, s.Acc = uintptr(s.C), s.CS, 0
	if x.Acc {
		s.Acc = 1
	}
	s.B, s.BP = unsafe.Pointer(&p.d[x.Col*p.Terms+x.P0*e.cols]), uintptr(e.cols)*size
	s.Next, s.Step = uintptr(s.B), 0
	s.M, s.K = x.M, x.P1-x.P0
	s.SetCols(min(e.cols, p.Cols-x.Col), int(size/4))
	e.multiply((*byte)(unsafe.Pointer(s)))
}

// Narrow returns rows rows of n numbers of x, rounded to bfloat16 in to if the engine multiplies pairs of them,
// else x. As far as tiles read, zeros follow the n numbers, and an odd number of rows. Rows of to are ld apart.
func (p *Packed[F]) Narrow(to []uint16, x Mat[F], rows, n, ld int) Mat[F] {
	from := any(x.D).([]float32)
	_, _ = to[(rows-1)*ld:][:upToTile(n)], from[(rows-1)*x.LD:][:n]
	p.e.narrowRows(&to[0], &from[0], uintptr(2*ld), uintptr(4*x.LD), uintptr(rows), uintptr(n))
	if rows%2 == 1 {
		clear(to[rows*ld:][:upToTile(n)])
	}
	return Mat[F]{H: to, LD: ld}
}

// TakesPairs reports whether the engine multiplies pairs of bfloat16s of rows of op(a).
func (p *Packed[F]) TakesPairs() bool { return p.e != nil && p.e.together }

// TransposePairs returns the transpose of rows rows of n 16-bit numbers of x, in to.
func TransposePairs[F elem.Float](to []F, x Mat[F], rows, n int) Mat[F] {
	g := borrowGemm(tilesOf[F]())
	g.kb = (rows + 1) / 2
	step, own := g.pairsPacked(), g.pa
	g.pa = to
	g.packTogether(lines{h: x.H, ld: x.LD, across: true, n: n, w: g.e.rows}, 0, n)
	g.pa = own
	g.giveBack()
	return Mat[F]{H: unsafe.Slice((*uint16)(unsafe.Pointer(&to[0])), 2*len(to)), LD: 2 * step}
}
