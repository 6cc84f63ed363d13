package cpu

import "unsafe"

// ending is what a product's sums go through once they are whole: c[i,j] = do(sums[i,j], x[i,j]), of matrices that lie
// as the sums do. It is done for some rows of a panel of columns at a time, while the second cache has them.
type ending[F Float] struct {
	c, x mat[F] // without c there is none
	do   Do
}

// endPanels is how many panels of rows are multiplied before their sums go on: with two vectors of columns they are
// some KB.
const endPanels = 8

// on is the ending of a share of the product, cut as its sums are.
func (e ending[F]) on(cut func(mat[F]) mat[F]) ending[F] {
	if e.c.d != nil {
		e.c = cut(e.c)
	}
	if e.x.d != nil {
		e.x = cut(e.x)
	}
	return e
}

// multiplyStrip is the engine's product, with what it ends in if these are the last terms.
func (g *gemm[F]) multiplyStrip(s *strip) {
	if g.then.c.d == nil || g.p0+g.kb < g.k {
		g.multiplyRows(s)
		return
	}
	a, left := s.a, s.m
	for {
		rows := min(left, endPanels*g.e.rows)
		s.m = rows
		g.multiplyRows(s)
		at := int((uintptr(s.c) - uintptr(unsafe.Pointer(&g.c.d[0]))) / sizeOf[F]())
		g.endRows(at, rows, s.cols)
		left -= rows
		if left == 0 {
			break
		}
		s.a, s.c = unsafe.Add(s.a, endPanels*s.panel), unsafe.Add(s.c, uintptr(rows)*s.cs)
	}
	s.a = a
}

// multiplyRows is the engine's product.
func (g *gemm[F]) multiplyRows(s *strip) {
	if g.marked.any {
		g.multiplyMarked(s)
		return
	}
	g.e.multiply((*byte)(unsafe.Pointer(s)))
}

// endRows does the ending for cols elements of so many rows, from element at of the sums on.
func (g *gemm[F]) endRows(at, rows, cols int) {
	t, ld := &g.then, g.c.ld
	c, sums := t.c.d[at:], g.c.d[at:]
	var x []F
	if t.x.d != nil {
		x = t.x.d[at:]
	}
	if endVectors(t.do, single(c), single(sums), single(x), rows, cols, ld, sizeOf[F]()) {
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

// endVectors does an ending by a loop of package vec over all rows, if there is one.
func endVectors(do Do, c, sums, x []float32, rows, cols, ld int, size uintptr) bool {
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

// matMulThenFast is MatMulThen by the engine in use.
func matMulThenFast[F Float](c, sums, from, x, a, b []F, do Do, m, n, k int, ta, tb bool) {
	if m == 0 || n == 0 {
		return
	}
	then := ending[F]{c: mat[F]{d: c[:m*n], ld: n}, do: do}
	if sums == nil {
		sums = c
	}
	if x != nil {
		then.x = mat[F]{d: x[:m*n], ld: n}
	}
	g := product(sums, a, b, m, n, k, ta, tb)
	g.then = then
	if from != nil {
		g.from = rowsOf(from, m, n)
	}
	g.multiply(true)
	g.giveBack()
}

// matMulThen is MatMulThen in plain Go.
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
