package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// multiplyAhead multiplies a thin matmul's panel while it prefetches what will be packed next. First it
// prefetches the next panel of b, stretch by stretch, each during the panels of a that this takes; then
// some of the next block of op(a).
func (g *matmul[F]) multiplyAhead(s *asm.Strip) {
	w, rows := g.wants(), g.e.rows
	a, c, left := s.A, s.C, s.M
	for x := uintptr(0); ; x++ {
		if x == w.stretches {
			w, x = g.wantsA(left), 0
		}
		s.M, s.Step, s.Next = left, 0, uintptr(s.B)
		if x < w.stretches {
			s.M, s.Step, s.Next = min(left, w.panels*rows), w.step, w.from+x*w.apart
		}
		s.A, s.C = a, c
		n := s.M
		g.multiplyStrip(s)
		left -= n
		if left <= 0 {
			return
		}
		a, c = unsafe.Add(a, uintptr(n/rows)*s.Panel), unsafe.Add(c, uintptr(n)*s.CS)
	}
}

// wanted describes what is prefetched next: stretches of addresses, each one step after the other while a
// number of panels of a are multiplied.
type wanted struct {
	from, apart, stretches uintptr // from stretch to stretch
	step                   uintptr
	panels                 int
}

// wants returns the next panel of op(b) of a thin matmul, if there is one. A panel of a prefetches once in
// four terms.
func (g *tiling[F]) wants() wanted {
	size, cols := elem.Size[F](), uintptr(g.e.cols)
	row := uintptr(g.b.LD) * size
	switch {
	case g.j0+2*g.e.cols > g.n:
		return wanted{}
	case g.e.pairs: // two rows of half the length for each term
		from := unsafe.Pointer(&g.b.H[2*g.p0*g.b.LD+g.j0+g.e.cols])
		return wanted{from: uintptr(from), apart: asm.LineBytes, stretches: 1, step: row / size * 2, panels: 8}
	case !g.b.T: // a line of each row, then the next
		from := unsafe.Pointer(&g.b.D[g.p0*g.b.LD+g.j0+g.e.cols])
		lines := cols * size / asm.LineBytes
		return wanted{from: uintptr(from), apart: asm.LineBytes, stretches: lines, step: row, panels: 4}
	}
	from := unsafe.Pointer(&g.b.D[(g.j0+g.e.cols)*g.b.LD+g.p0])
	if g.kb == g.b.LD { // contiguous rows
		panels := int(4 * cols * size / asm.LineBytes)
		return wanted{from: uintptr(from), stretches: 1, step: asm.LineBytes, panels: panels}
	}
	// the terms of each row
	return wanted{from: uintptr(from), apart: row, stretches: cols, step: 4 * size, panels: 1}
}

// foreseen is the block of op(a), transposed, that is packed after the present one. Its rows are columns of
// a: a stretch of lines for each term, of which the first asked are prefetched.
type foreseen struct {
	from         uintptr // address of its first term
	lines, asked int
	// panels of the present op(a) during which one line of each of the next block's terms can be prefetched
	panels int
}

// foresee finds the block after block y of chunk x.
func (g *matmul[F]) foresee(x, chunks, y, blocks int) {
	g.after = foreseen{}
	y++
	if y == blocks {
		x, y = x+1, 0
	}
	if !g.packA || g.e.pairs || x == chunks || g.kb < 4 {
		return
	}
	size := int(elem.Size[F]())
	p0, kb := g.terms(x, chunks)
	i0, mb := g.rowsOfBlock(y, g.blocksOfRows(kb))
	from := uintptr(unsafe.Pointer(&g.a.D[p0*g.a.LD+i0]))
	begins := int(from) % asm.LineBytes // offset in a line; if rows are not whole lines, some begin at a line's end
	if g.a.LD*size%asm.LineBytes > 0 {
		begins = asm.LineBytes - size
	}
	g.after = foreseen{
		from: from, lines: (begins + mb*size + asm.LineBytes - 1) / asm.LineBytes,
		panels: (kb + g.kb/4 - 1) / (g.kb / 4),
	}
}

// wantsA returns a part of the next block of op(a), for the rows that are left of this block and panel of
// op(b): as much as fits, and so late that it is still in the second-level cache when it is packed, if the
// remaining panels suffice.
func (g *matmul[F]) wantsA(left int) wanted {
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
		from: f.from + uintptr(f.asked)*asm.LineBytes, apart: asm.LineBytes, stretches: uintptr(fit),
		step: uintptr(g.a.LD) * elem.Size[F](), panels: f.panels,
	}
	f.asked += fit
	return w
}
