package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// multiplyPart multiplies the rows' part i by the columns' part j.
func (g *matmul[F]) multiplyPart(i, j int) {
	e, aPanels, bPanels := g.e, g.aPanels(), g.bPanels()
	r0, r1 := i*aPanels/g.rowParts*e.rows, min((i+1)*aPanels/g.rowParts*e.rows, g.mb)
	s := strips.Get()
	s.K, s.Acc, s.Near, s.Second = g.kb, 0, g.c.H != nil, tuned.second
	if g.acc || g.p0 > 0 || g.from.D != nil {
		s.Acc = 1
	}
	g.locateA(s, r0)
	first, end := j*bPanels/g.colParts, (j+1)*bPanels/g.colParts
	if s.Near {
		g.multiplyRounded(s, r0, r1, first, end)
	} else {
		from := g.c
		if g.p0 == 0 && g.from.D != nil {
			from = g.from
		}
		s.CS, s.FS = uintptr(g.c.LD)*elem.Size[F](), uintptr(from.LD)*elem.Size[F]()
		for q := first; q < end; q++ {
			col := g.j0 + q*e.cols
			s.From = uintptr(unsafe.Pointer(&from.D[(g.i0+r0)*from.LD+col]))
			g.multiplyPanel(s, q, r1-r0, unsafe.Pointer(&g.c.D[(g.i0+r0)*g.c.LD+col]))
		}
	}
	s.C, s.A, s.B = nil, nil, nil
	strips.Put(s)
}

// multiplyPanel multiplies the rows by the columns of panel q, into c.
func (g *matmul[F]) multiplyPanel(s *asm.Strip, q, rows int, c unsafe.Pointer) {
	size, e, col := elem.Size[F](), g.e, q*g.e.cols
	s.SetCols(min(e.cols, g.nb-col), int(size/4))
	if g.directB && s.Cols == e.cols {
		s.B, s.BP = unsafe.Pointer(&g.b.D[g.p0*g.b.LD+g.j0+col]), uintptr(g.b.LD)*size
	} else {
		s.B, s.BP = unsafe.Pointer(&g.pb[col*g.kb]), uintptr(e.cols)*size
	}
	s.C, s.M = c, rows
	if g.c.H != nil { // sums that will be rounded are accumulated in place
		s.From, s.FS = uintptr(c), s.CS
	}
	if g.keepsB() {
		g.multiplyKeeping(s)
		return
	}
	if g.thin && !e.together && !(g.b.T && e.pairs) {
		a := s.A
		g.multiplyAhead(s)
		s.A = a
		return
	}
	s.Next, s.Step = uintptr(s.B)+uintptr(g.kb)*s.BP, 64
	if g.thin {
		s.Next, s.Step = uintptr(s.B), 0
	}
	g.multiplyStrip(s)
}

// multiplyKeeping multiplies a thin matmul's panel of b, which the first panel of rows packs.
func (g *matmul[F]) multiplyKeeping(s *asm.Strip) {
	size, e, a, rows := elem.Size[F](), g.e, s.A, s.M
	s.B, s.BP = unsafe.Pointer(&g.b.D[g.p0*g.b.LD+g.j0]), uintptr(g.b.LD)*size
	s.Keep, s.M = unsafe.Pointer(&g.pb[0]), e.rows
	s.Next, s.Step = uintptr(a), 0
	g.multiplyStrip(s)
	s.B, s.BP, s.Keep = s.Keep, uintptr(e.cols)*size, nil
	s.M = rows - e.rows
	if s.M > 0 {
		s.A, s.C = unsafe.Add(a, s.Panel), unsafe.Add(s.C, uintptr(e.rows)*s.CS)
		g.multiplyAhead(s)
	}
	s.A = a
}

// locateA points a strip at op(a) from the block's row r0 on.
func (g *packer[F]) locateA(s *asm.Strip, r0 int) {
	size := elem.Size[F]()
	rows, ld := uintptr(g.e.rows), uintptr(g.a.LD)
	switch {
	case !g.packA && g.e.pairs:
		s.A = unsafe.Pointer(&g.a.H[(g.i0+r0)*g.a.LD+2*g.p0])
		s.AI, s.AP, s.Panel = 2*ld, size, 2*rows*ld
	case g.packA && g.e.together:
		step := uintptr(g.pairsPacked())
		s.A = unsafe.Pointer(&g.pa[r0*int(step)])
		s.AI, s.AP, s.Panel = size*step, size, rows*size*step
	case g.copyA:
		step := uintptr(g.rowCopied())
		s.A = unsafe.Pointer(&g.pa[r0*int(step)])
		s.AI, s.AP, s.Panel = size*step, size, rows*size*step
	case g.packA:
		s.A = unsafe.Pointer(&g.pa[r0*g.kb])
		s.AI, s.AP, s.Panel = size, rows*size, rows*uintptr(g.kb)*size
	case g.a.T:
		s.A = unsafe.Pointer(&g.a.D[g.p0*g.a.LD+g.i0+r0])
		s.AI, s.AP, s.Panel = size, ld*size, rows*size
	default:
		s.A = unsafe.Pointer(&g.a.D[(g.i0+r0)*g.a.LD+g.p0])
		s.AI, s.AP, s.Panel = ld*size, size, rows*ld*size
	}
}
