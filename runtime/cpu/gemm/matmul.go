package gemm

import (
	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/team"
)

// Pools of working memory: for parts, for matmuls of float32 and of float64.
var (
	strips  team.Pool[asm.Strip]
	gemms32 team.Pool[matmul[float32]]
	gemms64 team.Pool[matmul[float64]]
)

// gemmsOf returns the pool of F's matmuls.
func gemmsOf[F elem.Float]() *team.Pool[matmul[F]] {
	if p, ok := any(&gemms32).(*team.Pool[matmul[F]]); ok {
		return p
	}
	return any(&gemms64).(*team.Pool[matmul[F]])
}

// borrowGemm returns a matmul to fill in, with an engine; giveBack returns it to the pool.
func borrowGemm[F elem.Float](e *engine[F]) *matmul[F] {
	g := gemmsOf[F]().Get()
	g.e = e
	return g
}

func (g *matmul[F]) giveBack() {
	g.c, g.a, g.b, g.from, g.epilogue = Mat[F]{}, Mat[F]{}, Mat[F]{}, Mat[F]{}, epilogue[F]{}
	g.marked.any = false
	gemmsOf[F]().Put(g)
}

// MatMul computes c = op(a)·op(b) (+ c if acc).
func MatMul[F elem.Float](c, a, b []F, m, n, k int, ta, tb, acc bool) {
	if engineOf[F]() == nil {
		plainMatMul(c, a, b, m, n, k, ta, tb, acc)
		return
	}
	if m == 0 || n == 0 {
		return
	}
	g := newMatmul(c, a, b, m, n, k, ta, tb)
	g.acc = acc
	g.multiply(true)
	g.giveBack()
}

// MatMulOn computes c = from + op(a)·op(b). from has m rows of n elements, or one row for all.
func MatMulOn[F elem.Float](c, from, a, b []F, m, n, k int, ta, tb bool) {
	if m == 0 || n == 0 {
		return
	}
	if engineOf[F]() == nil {
		Mat[F]{D: c, LD: n}.copyFrom(rowsOf(from, m, n), m, n)
		plainMatMul(c, a, b, m, n, k, ta, tb, true)
		return
	}
	g := newMatmul(c, a, b, m, n, k, ta, tb)
	g.from = rowsOf(from, m, n)
	g.multiply(true)
	g.giveBack()
}

// newMatmul returns a borrowed matmul of whole matrices that adds to nothing.
func newMatmul[F elem.Float](c, a, b []F, m, n, k int, ta, tb bool) *matmul[F] {
	lda, ldb := k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	g := borrowGemm(engineOf[F]().forTerms(k).forCols(n))
	g.c, g.a, g.b = Mat[F]{D: c[:m*n], LD: n}, Mat[F]{D: a[:m*k], LD: lda, T: ta}, Mat[F]{D: b[:n*k], LD: ldb, T: tb}
	g.m, g.n, g.k, g.acc = m, n, k, false
	return g
}
