package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
)

// guarded returns x surrounded by NaNs, about a page of them, that no kernel may use or overwrite.
func guarded(x []float32) (inside, all []float32) {
	const guard = 67 // odd: the inner part does not start at a multiple of a vector
	all = make([]float32, len(x)+2*guard)
	for i := range all {
		all[i] = float32(math.NaN())
	}
	inside = all[guard : guard+len(x) : guard+len(x)]
	copy(inside, x)
	return inside, all
}

func intact(t *testing.T, what string, inside, all []float32) {
	t.Helper()
	edge := (len(all) - len(inside)) / 2
	for i, v := range all {
		if (i < edge || i >= len(all)-edge) && v == v {
			t.Fatalf("%s: %v was written %d elements from the result", what, v, i-edge)
		}
	}
}

// Matmuls of random sizes between NaNs, with edges of panels, blocks and vectors. What surrounds the
// operands does not affect the results.
func TestMatMulEdges(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewSource(1))
		size := func() int { return []int{1 + r.Intn(5), 1 + r.Intn(70), 1 + r.Intn(300)}[r.Intn(3)] }
		for range 60 {
			matMulGuarded(t, size(), size(), size(), r.Intn(2) == 0, r.Intn(2) == 0, r.Intn(2) == 0)
		}
		for _, z := range [][3]int{{1, 1200, 5}, {500, 40, 2}, {250, 33, 800}, {13, 1030, 400}, {49, 129, 1},
			{1000, 17, 20}, {60, 256, 512}, {26, 100, 1024}, {410, 97, 1024}, {230, 70, 1030}, {300, 33, 1600},
			{500, 70, 2305}, {40, 97, 2048}} {
			for bits := range 8 {
				matMulGuarded(t, z[0], z[1], z[2], bits&1 > 0, bits&2 > 0, bits&4 > 0)
			}
		}
	})
}

// The tuning for the other vendor gives correct results here, too.
func TestMatMulTunedElsewhere(t *testing.T) {
	defer func(now ISA) {
		gemm.TuneFor(asm.IsIntel())
		Use(now)
	}(InUse())
	gemm.TuneFor(!asm.IsIntel())
	each(t, func(t *testing.T) {
		for _, z := range [][3]int{{13, 330, 400}, {60, 256, 512}, {230, 70, 1030}, {300, 33, 1600}} {
			for bits := range 8 {
				matMulGuarded(t, z[0], z[1], z[2], bits&1 > 0, bits&2 > 0, bits&4 > 0)
			}
		}
	})
}

func matMulGuarded(t *testing.T, m, n, k int, ta, tb, acc bool) {
	t.Helper()
	what := fmt.Sprint("matmul ", m, n, k, ta, tb, acc)
	a, _ := guarded(draw[float32](1, m*k))
	b, _ := guarded(draw[float32](2, k*n))
	before := draw[float32](3, m*n)
	c, all := guarded(before)
	Table[float32]().MatMul(c, a, b, m, n, k, ta, tb, acc)
	want := start(before, acc)
	naiveMatMul(want, a, b, m, n, k, ta, tb)
	near(t, what, c, want, 1e-6*math.Sqrt(float64(k))*math.Sqrt(float64(k)+10))
	intact(t, what, c, all)
}

func FuzzMatMul(f *testing.F) {
	f.Add(uint16(12), uint16(32), uint16(384), uint8(0))
	f.Add(uint16(13), uint16(33), uint16(385), uint8(7))
	f.Fuzz(func(t *testing.T, m, n, k uint16, bits uint8) {
		matMulGuarded(t, 1+int(m%600), 1+int(n%1100), 1+int(k%800), bits&1 > 0, bits&2 > 0, bits&4 > 0)
	})
}

// An infinity or a NaN in an operand reaches only the elements that depend on it.
func TestMatMulNotFinite(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k = 29, 45, 400
		for _, bad := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
			for bits := range 4 {
				ta, tb := bits&1 > 0, bits&2 > 0
				a, b, c := draw[float32](1, m*k), draw[float32](2, k*n), make([]float32, m*n)
				const row, col, p, q = 17, 40, 390, 3
				ai, bi := row*k+p, q*n+col
				if ta {
					ai = p*m + row
				}
				if tb {
					bi = col*k + q
				}
				a[ai], b[bi] = float32(bad), float32(bad)
				Table[float32]().MatMul(c, a, b, m, n, k, ta, tb, false)
				for i, v := range c {
					hit := i/n == row || i%n == col
					if finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0); finite == hit {
						t.Fatalf("with %v, %v %v: element %d,%d is %v", bad, ta, tb, i/n, i%n, v)
					}
				}
			}
		}
	})
}

// The number of threads changes no bit.
func TestThreadsChangeNoBits(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k = 301, 203, 407
		a, b := draw[float32](1, m*k), draw[float32](2, n*k)
		s := AttentionShape{Batch: 2, Seq: 150, KSeq: 150, Heads: 2, Group: 2, Dim: 24, VDim: 16, Scale: 0.2,
			Mask: window(90)}
		var want [][]float32
		for _, threads := range []int{1, 2, 3, 7} {
			withThreads(t, threads, func(t *testing.T) {
				x, tab := drawTensors[float32](s), Table[float32]()
				c := make([]float32, m*n)
				tab.MatMul(c, a, b, m, n, k, false, true, false)
				tab.Attention(x.o, x.lse, x.q, x.k, x.v, s)
				tab.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, s)
				got := [][]float32{c, x.o, x.lse, x.dq, x.dk, x.dv}
				if want == nil {
					want = got
				}
				for i := range want {
					for j, v := range want[i] {
						if got[i][j] != v {
							t.Fatalf("%d threads: element %d of result %d is %v, with 1 it is %v", threads, j, i,
								got[i][j], v)
						}
					}
				}
			})
		}
	})
}

// Kernels do not allocate on several threads either.
func TestNoAllocationsOnThreads(t *testing.T) {
	withThreads(t, 2, func(t *testing.T) {
		const n = 160
		a, b, c := draw[float32](1, n*n), draw[float32](2, n*n), make([]float32, n*n)
		s := AttentionShape{Batch: 2, Seq: 80, KSeq: 80, Heads: 2, Group: 1, Dim: 16, VDim: 16, Scale: 0.2,
			Mask: causal}
		x, k := drawTensors[float32](s), Table[float32]()
		for name, f := range map[string]func(){
			"MatMul":        func() { k.MatMul(c, a, b, n, n, n, true, true, true) },
			"Attention":     func() { k.Attention(x.o, x.lse, x.q, x.k, x.v, s) },
			"AttentionGrad": func() { k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, s) },
		} {
			f()
			// with the race detector, sync.Pool drops objects
			if n := testing.AllocsPerRun(50, f); n != 0 && !raceEnabled {
				t.Errorf("%s allocates %v times", name, n)
			}
		}
	})
}
