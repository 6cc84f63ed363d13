package gemm

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// Loop is an epilogue's operation on rows of cols elements, ld apart:
//
//	for i, j := range [rows, cols] { c[i,j] = do(sums[i,j], x[i,j]) }
//
// x is nil if the operation has one operand.
type Loop[F elem.Float] func(c, sums, x []F, rows, cols, ld int)

// epilogue is the operation on a matmul's sums once they are complete: c = do(sums, x), with matrices of the
// same layout. It runs for some rows of a panel of columns at a time, while these are in
// the second-level cache.
type epilogue[F elem.Float] struct {
	c, x Mat[F] // no epilogue if c is empty
	do   Loop[F]
}

// epiloguePanels is the number of panels of rows that are multiplied before their epilogue runs: some KB with
// two vectors of columns.
const epiloguePanels = 8

// on returns the epilogue of a share of the matmul.
func (e epilogue[F]) on(cut func(Mat[F]) Mat[F]) epilogue[F] {
	if e.c.D != nil {
		e.c = cut(e.c)
	}
	if e.x.D != nil {
		e.x = cut(e.x)
	}
	return e
}

// multiplyStrip calls the engine, and the epilogue if these are the last terms.
func (g *matmul[F]) multiplyStrip(s *asm.Strip) {
	if g.epilogue.c.D == nil || g.p0+g.kb < g.k {
		g.multiplyRows(s)
		return
	}
	a, left := s.A, s.M
	for {
		rows := min(left, epiloguePanels*g.e.rows)
		s.M = rows
		g.multiplyRows(s)
		at := int((uintptr(s.C) - uintptr(unsafe.Pointer(&g.c.D[0]))) / elem.Size[F]())
		g.epilogueRows(at, rows, s.Cols)
		left -= rows
		if left == 0 {
			break
		}
		s.A, s.C = unsafe.Add(s.A, epiloguePanels*s.Panel), unsafe.Add(s.C, uintptr(rows)*s.CS)
	}
	s.A = a
}

// multiplyRows calls the engine.
func (g *matmul[F]) multiplyRows(s *asm.Strip) {
	if g.marked.any {
		g.multiplyMarked(s)
		return
	}
	g.e.multiply((*byte)(unsafe.Pointer(s)))
}

// epilogueRows runs the epilogue for cols elements of rows rows, from element at of the sums on.
func (g *problem[F]) epilogueRows(at, rows, cols int) {
	t, ld := &g.epilogue, g.c.LD
	c, sums := t.c.D[at:], g.c.D[at:]
	var x []F
	if t.x.D != nil {
		x = t.x.D[at:]
	}
	t.do(c, sums, x, rows, cols, ld)
}

// MatMulThen computes a matmul, plus from if that is not nil, into sums, and c = do(sums, x). sums may be nil:
// c then holds them meanwhile.
func MatMulThen[F elem.Float](c, sums, from, x, a, b []F, do Loop[F], m, n, k int, ta, tb bool) {
	if m == 0 || n == 0 {
		return
	}
	if sums == nil {
		sums = c
	}
	if engineOf[F]() == nil {
		if from != nil {
			MatMulOn(sums, from, a, b, m, n, k, ta, tb)
		} else {
			MatMul(sums, a, b, m, n, k, ta, tb, false)
		}
		do(c, sums, x, m, n, n)
		return
	}
	next := epilogue[F]{c: Mat[F]{D: c[:m*n], LD: n}, do: do}
	if x != nil {
		next.x = Mat[F]{D: x[:m*n], LD: n}
	}
	g := newMatmul(sums, a, b, m, n, k, ta, tb)
	g.epilogue = next
	if from != nil {
		g.from = rowsOf(from, m, n)
	}
	g.multiply(true)
	g.giveBack()
}
