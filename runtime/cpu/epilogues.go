package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/vec"
)

// Loops over rows for the epilogues of matmuls.
var (
	epilogues32 = newEpilogues[float32]()
	epilogues64 = newEpilogues[float64]()
)

// epilogueOf returns the loop over rows of an operation.
func epilogueOf[F Float](do Do) gemm.Loop[F] {
	if e, ok := any(&epilogues32).(*[numDos]gemm.Loop[F]); ok {
		return e[do]
	}
	return any(&epilogues64).(*[numDos]gemm.Loop[F])[do]
}

func newEpilogues[F Float]() (e [numDos]gemm.Loop[F]) {
	for do := range Do(numDos) {
		e[do] = func(c, sums, x []F, rows, cols, ld int) {
			k := vectorsFor[F]()
			if k != nil && vectorRows(k, do, single(c), single(sums), single(x), [3]int{rows, cols, ld}) {
				return
			}
			loop := elementsOf[F]()[do]
			for r := range rows {
				var xs []F
				if x != nil {
					xs = x[r*ld:][:cols]
				}
				loop(c[r*ld:][:cols], sums[r*ld:][:cols], xs, 0)
			}
		}
	}
	return e
}

// vectorRows runs an epilogue with a loop of package vec over all rows, if there is one. size has the rows,
// the columns and the distance of rows.
func vectorRows(k *vec.Kernels, do Do, c, sums, x []float32, size [3]int) bool {
	rows, cols, ld := size[0], size[1], size[2]
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

func matMulThen[F Float](c, sums, from, x, a, b []F, do Do, m, n, k int, ta, tb bool) {
	gemm.MatMulThen(c, sums, from, x, a, b, epilogueOf[F](do), m, n, k, ta, tb)
}
