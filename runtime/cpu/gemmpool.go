package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/team"
)

// Pools of working memory: for parts, for matmuls of float32 and of float64.
var (
	strips  team.Pool[asm.Strip]
	gemms32 team.Pool[gemm[float32]]
	gemms64 team.Pool[gemm[float64]]
)

// gemmsOf returns the pool of F's matmuls.
func gemmsOf[F Float]() *team.Pool[gemm[F]] {
	if p, ok := any(&gemms32).(*team.Pool[gemm[F]]); ok {
		return p
	}
	return any(&gemms64).(*team.Pool[gemm[F]])
}

// borrowGemm returns a matmul to fill in, with an engine; giveBack returns it to the pool.
func borrowGemm[F Float](e *engine[F]) *gemm[F] {
	g := gemmsOf[F]().Get()
	g.e = e
	return g
}

func (g *gemm[F]) giveBack() {
	g.c, g.a, g.b, g.from, g.epilogue = mat[F]{}, mat[F]{}, mat[F]{}, mat[F]{}, epilogue[F]{}
	g.marked.any = false
	gemmsOf[F]().Put(g)
}

// matMulFast computes MatMul with the engine in use.
func matMulFast[F Float](c, a, b []F, m, n, k int, ta, tb, acc bool) {
	productFast(c, a, b, mat[F]{}, m, n, k, ta, tb, acc)
}

// matMulOnFast computes MatMulOn with the engine in use.
func matMulOnFast[F Float](c, from, a, b []F, m, n, k int, ta, tb bool) {
	productFast(c, a, b, rowsOf(from, m, n), m, n, k, ta, tb, false)
}

// rowsOf returns m rows of n elements, or one row that is repeated m times.
func rowsOf[F Float](x []F, m, n int) mat[F] {
	if len(x) == n && m > 1 {
		return mat[F]{d: x}
	}
	return mat[F]{d: x[:m*n], ld: n}
}

func productFast[F Float](c, a, b []F, from mat[F], m, n, k int, ta, tb, acc bool) {
	if m == 0 || n == 0 {
		return
	}
	g := newMatmul(c, a, b, m, n, k, ta, tb)
	g.acc, g.from = acc, from
	g.multiply(true)
	g.giveBack()
}

// newMatmul returns a borrowed matmul of whole matrices that adds to nothing.
func newMatmul[F Float](c, a, b []F, m, n, k int, ta, tb bool) *gemm[F] {
	lda, ldb := k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	g := borrowGemm(engineOf[F]().forTerms(k).forCols(n))
	g.c, g.a, g.b = mat[F]{d: c[:m*n], ld: n}, mat[F]{d: a[:m*k], ld: lda, t: ta}, mat[F]{d: b[:n*k], ld: ldb, t: tb}
	g.m, g.n, g.k, g.acc = m, n, k, false
	return g
}
