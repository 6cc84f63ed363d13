package cpu

import "unsafe"

// multiplyAhead multiplies a thin product's panel while it asks for what will be packed next: first for that of the
// next panel of b, a stretch of it with so many panels of a as that takes, then the next stretch; then for some of the
// next block of op(a).
func (g *gemm[F]) multiplyAhead(s *strip) {
	w, rows := g.wants(), g.e.rows
	a, c, left := s.a, s.c, s.m
	for x := uintptr(0); ; x++ {
		if x == w.stretches {
			w, x = g.wantsA(left), 0
		}
		s.m, s.step, s.next = left, 0, uintptr(s.b)
		if x < w.stretches {
			s.m, s.step, s.next = min(left, w.panels*rows), w.step, w.from+x*w.apart
		}
		s.a, s.c = a, c
		n := s.m
		g.multiplyStrip(s)
		left -= n
		if left <= 0 {
			return
		}
		a, c = unsafe.Add(a, uintptr(n/rows)*s.panel), unsafe.Add(c, uintptr(n)*s.cs)
	}
}

// wanted is what is packed next, as it can be asked for: stretches of addresses, each step after step while so many
// panels of a are multiplied.
type wanted struct {
	from, apart, stretches uintptr // from stretch to stretch
	step                   uintptr
	panels                 int
}

// wants is wanted of a thin product's next panel of op(b), if there is one. A panel of a asks once in four terms.
func (g *gemm[F]) wants() wanted {
	size, cols := sizeOf[F](), uintptr(g.e.cols)
	row := uintptr(g.b.ld) * size
	switch {
	case g.j0+2*g.e.cols > g.n:
		return wanted{}
	case g.e.pairs: // two rows of half the length for each term
		from := unsafe.Pointer(&g.b.h[2*g.p0*g.b.ld+g.j0+g.e.cols])
		return wanted{from: uintptr(from), apart: lineBytes, stretches: 1, step: row / size * 2, panels: 8}
	case !g.b.t: // a line of each row, then the next
		from := unsafe.Pointer(&g.b.d[g.p0*g.b.ld+g.j0+g.e.cols])
		return wanted{from: uintptr(from), apart: lineBytes, stretches: cols * size / lineBytes, step: row, panels: 4}
	}
	from := unsafe.Pointer(&g.b.d[(g.j0+g.e.cols)*g.b.ld+g.p0])
	if g.kb == g.b.ld { // rows behind each other
		return wanted{from: uintptr(from), stretches: 1, step: lineBytes, panels: int(4 * cols * size / lineBytes)}
	}
	return wanted{from: uintptr(from), apart: row, stretches: cols, step: 4 * size, panels: 1} // the terms of each row
}

// foreseen is the block of op(a), transposed, that is packed after the one that is multiplied. Its rows are columns of
// a: of each term a stretch of lines, of which the first are asked for.
type foreseen struct {
	from         uintptr // of its first term
	lines, asked int
	panels       int // of this block's op(a), while which a line of each of the next one's terms can be asked for
}

// foresee finds the block after block y of chunk x.
func (g *gemm[F]) foresee(x, chunks, y, blocks int) {
	g.after = foreseen{}
	y++
	if y == blocks {
		x, y = x+1, 0
	}
	if !g.packA || g.e.pairs || x == chunks || g.kb < 4 {
		return
	}
	size := int(sizeOf[F]())
	p0, kb := g.terms(x, chunks)
	i0, mb := g.rowsOfBlock(y, g.blocksOfRows(kb))
	from := uintptr(unsafe.Pointer(&g.a.d[p0*g.a.ld+i0]))
	begins := int(from) % lineBytes // in a line; where rows are no whole lines, some begin at a line's end
	if g.a.ld*size%lineBytes > 0 {
		begins = lineBytes - size
	}
	g.after = foreseen{
		from: from, lines: (begins + mb*size + lineBytes - 1) / lineBytes,
		panels: (kb + g.kb/4 - 1) / (g.kb / 4),
	}
}

// wantsA is wanted of the next block of op(a), for so many rows that are left of this one and the current panel of
// op(b): as much as fits, and so late that it is still in the second cache when it is packed, if the panels behind
// suffice.
func (g *gemm[F]) wantsA(left int) wanted {
	f := &g.after
	if f.lines == f.asked {
		return wanted{}
	}
	fit := left / (f.panels * g.e.rows)
	if behind := (g.n - g.j0 - g.nb + g.e.cols - 1) / g.e.cols; fit == 0 || behind*fit >= f.lines-f.asked {
		return wanted{}
	}
	fit = min(fit, f.lines-f.asked)
	w := wanted{
		from: f.from + uintptr(f.asked)*lineBytes, apart: lineBytes, stretches: uintptr(fit),
		step: uintptr(g.a.ld) * sizeOf[F](), panels: f.panels,
	}
	f.asked += fit
	return w
}
