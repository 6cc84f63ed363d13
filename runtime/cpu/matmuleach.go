package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/num"
)

// MatMulEachBF16 computes
//
//	for g := range groups { MatMulBF16(c[g], a[g], b[g], m, n, k, ta, tb, acc) }
func (t *Kernels[F]) MatMulEachBF16(c []F, a, b []num.BF16, groups, m, n, k int, ta, tb, acc bool) {
	for g := range groups {
		t.MatMulBF16(c[g*m*n:][:m*n], a[g*m*k:][:m*k], b[g*k*n:][:k*n], m, n, k, ta, tb, acc)
	}
}

// MatMulEachRoundBF16 computes
//
//	for g := range groups { MatMulRoundBF16(c[g], a[g], b[g], m, n, k, ta, tb) }
func (t *Kernels[F]) MatMulEachRoundBF16(c, a, b []num.BF16, groups, m, n, k int, ta, tb bool) {
	for g := range groups {
		t.MatMulRoundBF16(c[g*m*n:][:m*n], a[g*m*k:][:m*k], b[g*k*n:][:k*n], m, n, k, ta, tb)
	}
}

// MatMulEach computes
//
//	for g := range groups { MatMul(c[g], a[g], b[g], m, n, k, ta, tb, acc) }
//
// Rows of a that are 0, such as empty slots of experts, cost next to nothing: they add nothing to a sum,
// and their results are 0, even if b is not finite.
func (t *Kernels[F]) MatMulEach(c, a, b []F, groups, m, n, k int, ta, tb, acc bool) {
	gemm.MatMulEach(c, a, b, groups, m, n, k, ta, tb, acc)
}
