package cpu

import "unsafe"

// multiplyPart multiplies the rows' part i by the columns' part j.
func (g *gemm[F]) multiplyPart(i, j int) {
	e, aPanels, bPanels := g.e, g.aPanels(), g.bPanels()
	r0, r1 := i*aPanels/g.rowParts*e.rows, min((i+1)*aPanels/g.rowParts*e.rows, g.mb)
	s := strips.get()
	s.k, s.acc, s.near, s.second = g.kb, 0, g.c.h != nil, tuned.second
	if g.acc || g.p0 > 0 || g.from.d != nil {
		s.acc = 1
	}
	g.locateA(s, r0)
	first, end := j*bPanels/g.colParts, (j+1)*bPanels/g.colParts
	if s.near {
		g.multiplyRounded(s, r0, r1, first, end)
	} else {
		from := g.c
		if g.p0 == 0 && g.from.d != nil {
			from = g.from
		}
		s.cs, s.fs = uintptr(g.c.ld)*sizeOf[F](), uintptr(from.ld)*sizeOf[F]()
		for q := first; q < end; q++ {
			col := g.j0 + q*e.cols
			s.from = uintptr(unsafe.Pointer(&from.d[(g.i0+r0)*from.ld+col]))
			g.multiplyPanel(s, q, r1-r0, unsafe.Pointer(&g.c.d[(g.i0+r0)*g.c.ld+col]))
		}
	}
	s.c, s.a, s.b = nil, nil, nil
	strips.put(s)
}

// multiplyPanel multiplies the rows by the columns of panel q, into c.
func (g *gemm[F]) multiplyPanel(s *strip, q, rows int, c unsafe.Pointer) {
	size, e, col := sizeOf[F](), g.e, q*g.e.cols
	s.setCols(min(e.cols, g.nb-col), int(size/4))
	if g.directB && s.cols == e.cols {
		s.b, s.bp = unsafe.Pointer(&g.b.d[g.p0*g.b.ld+g.j0+col]), uintptr(g.b.ld)*size
	} else {
		s.b, s.bp = unsafe.Pointer(&g.pb[col*g.kb]), uintptr(e.cols)*size
	}
	s.c, s.m = c, rows
	if g.c.h != nil { // sums that will be rounded are accumulated in place
		s.from, s.fs = uintptr(c), s.cs
	}
	if g.keepsB() {
		g.multiplyKeeping(s)
		return
	}
	if g.thin && !e.together && !(g.b.t && e.pairs) {
		a := s.a
		g.multiplyAhead(s)
		s.a = a
		return
	}
	s.next, s.step = uintptr(s.b)+uintptr(g.kb)*s.bp, 64
	if g.thin {
		s.next, s.step = uintptr(s.b), 0
	}
	g.multiplyStrip(s)
}

// multiplyKeeping multiplies a thin matmul's panel of b, which the first panel of rows packs.
func (g *gemm[F]) multiplyKeeping(s *strip) {
	size, e, a, rows := sizeOf[F](), g.e, s.a, s.m
	s.b, s.bp = unsafe.Pointer(&g.b.d[g.p0*g.b.ld+g.j0]), uintptr(g.b.ld)*size
	s.keep, s.m = unsafe.Pointer(&g.pb[0]), e.rows
	s.next, s.step = uintptr(a), 0
	g.multiplyStrip(s)
	s.b, s.bp, s.keep = s.keep, uintptr(e.cols)*size, nil
	s.m = rows - e.rows
	if s.m > 0 {
		s.a, s.c = unsafe.Add(a, s.panel), unsafe.Add(s.c, uintptr(e.rows)*s.cs)
		g.multiplyAhead(s)
	}
	s.a = a
}

// locateA points a strip at op(a) from the block's row r0 on.
func (g *gemm[F]) locateA(s *strip, r0 int) {
	size := sizeOf[F]()
	rows, ld := uintptr(g.e.rows), uintptr(g.a.ld)
	switch {
	case !g.packA && g.e.pairs:
		s.a = unsafe.Pointer(&g.a.h[(g.i0+r0)*g.a.ld+2*g.p0])
		s.ai, s.ap, s.panel = 2*ld, size, 2*rows*ld
	case g.packA && g.e.together:
		step := uintptr(g.pairsPacked())
		s.a = unsafe.Pointer(&g.pa[r0*int(step)])
		s.ai, s.ap, s.panel = size*step, size, rows*size*step
	case g.copyA:
		step := uintptr(g.rowCopied())
		s.a = unsafe.Pointer(&g.pa[r0*int(step)])
		s.ai, s.ap, s.panel = size*step, size, rows*size*step
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
