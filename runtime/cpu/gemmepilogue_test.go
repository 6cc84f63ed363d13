package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// A matmul with an epilogue has the bits of the matmul followed by the operation: with several blocks of
// terms, rows and columns, and none; with C operands of all rows, of one row, and none; on one thread and
// several.
func TestMatMulThen(t *testing.T) { both(t, testMatMulThen[float32], testMatMulThen[float64]) }

func testMatMulThen[F Float](t *testing.T, tol float64) {
	defer Threads(1, 1)
	dos := []Do{DoAdd, DoGelu, DoGeluGrad, DoSilu, DoMul}
	for z, size := range [][3]int{{1, 1, 1}, {5, 1, 13}, {3, 4, 0}, {0, 3, 4}, {67, 193, 31}, {31, 197, 1100},
		{300, 70, 40}, {130, 600, 64}, {500, 64, 900}} {
		m, n, k := size[0], size[1], size[2]
		a, b, x := draw[F](1, m*k), draw[F](2, k*n), draw[F](5, m*n)
		for i := range 8 {
			ta, tb, do := i&1 > 0, i&2 > 0, dos[(z+i)%len(dos)]
			from := [][]F{nil, draw[F](3, m*n), draw[F](4, n)}[(z+i)%3]
			start := make([]float64, m*n)
			for j := range start {
				if len(from) > 0 {
					start[j] = float64(from[j%len(from)])
				}
			}
			naiveMatMul(start, a, b, m, n, k, ta, tb)
			for threads := 1; threads < 4; threads++ {
				Threads(1, threads)
				what := fmt.Sprint("matmul then ", size, ta, tb, do, len(from), threads)
				testThen(t, what, from, x, a, b, do, size, ta, tb, start, tol*math.Sqrt(float64(k+1)))
			}
		}
	}
}

// testThen runs one matmul with its sums kept, and without.
func testThen[F Float](t *testing.T, what string, from, x, a, b []F, do Do, size [3]int, ta, tb bool, want []float64,
	tol float64) {
	t.Helper()
	m, n, k := size[0], size[1], size[2]
	tab := Table[F]()
	sums, want2 := make([]F, m*n), make([]F, m*n)
	operand := x
	if !do.two() {
		operand = nil
	}
	const guard = 37
	all := draw[F](9, m*n+2*guard)
	before, c := slices.Clone(all), all[guard:][:m*n]
	tab.MatMulThen(c, sums, from, operand, a, b, do, m, n, k, ta, tb)
	if !slices.Equal(all[:guard], before[:guard]) || !slices.Equal(all[guard+m*n:], before[guard+m*n:]) {
		t.Errorf("%s writes outside its result", what)
	}
	near(t, what+": sums", sums, want, tol)
	elementsOf[F]()[do](want2, sums, operand, 0)
	near(t, what, c, wide(want2), 0)
	second := make([]F, m*n)
	tab.MatMulThen(second, nil, from, operand, a, b, do, m, n, k, ta, tb)
	near(t, what+" without its sums", second, wide(want2), 0)
}

// Compares a matmul with GELU or its derivative as epilogue to the matmul followed by the operation, with
// the sizes of nano, mid and GPT-2.
func BenchmarkMatMulThen(b *testing.B) {
	tab := Table[float32]()
	for _, z := range [][3]int{{768, 512, 128}, {2048, 1536, 384}, {256, 3072, 768}} {
		m, n, k := z[0], z[1], z[2]
		x, w, bias := draw[float32](1, m*k), draw[float32](2, n*k), draw[float32](3, n)
		// sums as in training: exponentials of larger ones leave the range of normal numbers, which is slow
		for i := range w {
			w[i] /= float32(math.Sqrt(float64(k)))
		}
		up, act := draw[float32](4, m*n), make([]float32, m*n)
		whole := []Operand{{At: Whole}, {At: Whole}, {At: Whole}}
		gelu, grad := &Chain{whole[:2], []Link{{Do: DoGelu, To: 1}}},
			&Chain{whole, []Link{{Do: DoGeluGrad, To: 2, B: 1}}}
		for what, do := range map[string]func(){
			"gelu none": func() { tab.MatMulOn(up, bias, x, w, m, n, k, false, false) },
			"grad none": func() { tab.MatMul(act, x, w, m, n, k, false, true, false) },
			"gelu ends": func() { tab.MatMulThen(act, up, bias, nil, x, w, DoGelu, m, n, k, false, false) },
			"gelu apart": func() {
				tab.MatMulOn(up, bias, x, w, m, n, k, false, false)
				tab.Chain(gelu, 1, m*n, up, act)
			},
			"grad ends": func() { tab.MatMulThen(act, nil, nil, up, x, w, DoGeluGrad, m, n, k, false, true) },
			"grad apart": func() {
				tab.MatMul(act, x, w, m, n, k, false, true, false)
				tab.Chain(grad, 1, m*n, act, up, act)
			},
		} {
			b.Run(name(what, z), func(b *testing.B) {
				for b.Loop() {
					do()
				}
			})
		}
	}
}
