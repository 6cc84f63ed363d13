package cpu

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// epilogue is the operation on a matmul's sums once they are complete: c[i,j] = do(sums[i,j], x[i,j]), with
// matrices of the same layout. It runs for some rows of a panel of columns at a time, while these are in
// the second-level cache.
type epilogue[F Float] struct {
	c, x mat[F] // no epilogue if c is empty
	do   Do
}

// epiloguePanels is the number of panels of rows that are multiplied before their epilogue runs: some KB with
// two vectors of columns.
const epiloguePanels = 8

// on returns the epilogue of a share of the matmul.
func (e epilogue[F]) on(cut func(mat[F]) mat[F]) epilogue[F] {
	if e.c.d != nil {
		e.c = cut(e.c)
	}
	if e.x.d != nil {
		e.x = cut(e.x)
	}
	return e
}

// multiplyStrip calls the engine, and the epilogue if these are the last terms.
func (g *gemm[F]) multiplyStrip(s *asm.Strip) {
	if g.epilogue.c.d == nil || g.p0+g.kb < g.k {
		g.multiplyRows(s)
		return
	}
	a, left := s.A, s.M
	for {
		rows := min(left, epiloguePanels*g.e.rows)
		s.M = rows
		g.multiplyRows(s)
		at := int((uintptr(s.C) - uintptr(unsafe.Pointer(&g.c.d[0]))) / elem.Size[F]())
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
func (g *gemm[F]) multiplyRows(s *asm.Strip) {
	if g.marked.any {
		g.multiplyMarked(s)
		return
	}
	g.e.multiply((*byte)(unsafe.Pointer(s)))
}

// epilogueRows runs the epilogue for cols elements of rows rows, from element at of the sums on.
func (g *gemm[F]) epilogueRows(at, rows, cols int) {
	t, ld := &g.epilogue, g.c.ld
	c, sums := t.c.d[at:], g.c.d[at:]
	var x []F
	if t.x.d != nil {
		x = t.x.d[at:]
	}
	if epilogueVectors(t.do, single(c), single(sums), single(x), rows, cols, ld, elem.Size[F]()) {
		return
	}
	do := elementsOf[F]()[t.do]
	for r := range rows {
		var xs []F
		if x != nil {
			xs = x[r*ld:][:cols]
		}
		do(c[r*ld:][:cols], sums[r*ld:][:cols], xs, 0)
	}
}

// epilogueVectors runs an epilogue with a loop of package vec over all rows, if there is one.
func epilogueVectors(do Do, c, sums, x []float32, rows, cols, ld int, size uintptr) bool {
	k := vectorsFor[float32]()
	if k == nil || size != 4 {
		return false
	}
	switch do {
	case DoAdd:
		k.AddRows(c, sums, x, rows, cols, ld)
	case DoGelu:
		k.GeluRows(c, sums, rows, cols, ld)
	case DoGeluGrad:
		k.GeluGradRows(c, sums, x, rows, cols, ld)
	default:
		return false
	}
	return true
}

// matMulThenFast computes MatMulThen with the engine in use.
func matMulThenFast[F Float](c, sums, from, x, a, b []F, do Do, m, n, k int, ta, tb bool) {
	if m == 0 || n == 0 {
		return
	}
	then := epilogue[F]{c: mat[F]{d: c[:m*n], ld: n}, do: do}
	if sums == nil {
		sums = c
	}
	if x != nil {
		then.x = mat[F]{d: x[:m*n], ld: n}
	}
	g := newMatmul(sums, a, b, m, n, k, ta, tb)
	g.epilogue = then
	if from != nil {
		g.from = rowsOf(from, m, n)
	}
	g.multiply(true)
	g.giveBack()
}

// matMulThen computes MatMulThen in plain Go.
func matMulThen[F Float](c, sums, from, x, a, b []F, do Do, m, n, k int, ta, tb bool) {
	if sums == nil {
		sums = c
	}
	if from != nil {
		matMulOn(sums, from, a, b, m, n, k, ta, tb)
	} else {
		matMul(sums, a, b, m, n, k, ta, tb, false)
	}
	elementsOf[F]()[do](c[:m*n], sums[:m*n], x, 0)
}
