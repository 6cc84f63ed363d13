package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/num"
)

// The result equals the matmul of separately rounded operands, with and without groups, transposes and
// accumulation.
func TestMatMul8(t *testing.T) {
	const m, n, k = 5, 7, 33
	for bits := range 16 {
		ta, tb, acc, groups := bits&1 > 0, bits&2 > 0, bits&4 > 0, bits>>3*3
		each := max(groups, 1)
		a, b, before := draw[float32](1, each*m*k), draw[float32](2, each*k*n), draw[float32](3, each*m*n)
		a[3] = 1e-9 // underflows
		want := start(before, acc)
		ra, rb := fp8Of(a, num.E4M3), fp8Of(b, num.E5M2)
		for g := range each {
			naiveMatMul(want[g*m*n:][:m*n], ra[g*m*k:][:m*k], rb[g*k*n:][:k*n], m, n, k, ta, tb)
		}
		c, all := guarded(before)
		Table[float32]().MatMul8(c, a, b, groups, m, n, k, ta, tb, acc, num.E4M3, num.E5M2)
		what := fmt.Sprint("matmul 8 ", groups, ta, tb, acc)
		near(t, what, c, want, 1e-6*k)
		intact(t, what, c, all)
	}
}

// fp8Of rounds x by the definition: to the nearest multiple of the unit of the number's binade.
func fp8Of(x []float32, e num.FP8Format) []float32 {
	largest := 0.0
	for _, v := range x {
		largest = max(largest, math.Abs(float64(v)))
	}
	scale := math.Exp2(math.Floor(math.Log2(e.Max / largest)))
	out := make([]float32, len(x))
	for i, v := range x {
		w := float64(v) * scale
		unit := math.Exp2(max(math.Floor(math.Log2(math.Abs(w))), float64(e.Least)) - float64(e.Mantissa))
		out[i] = float32(math.RoundToEven(w/unit) * unit / scale)
	}
	return out
}

// Numbers that are not finite affect their row and column, and a tensor of zeros gives zeros.
func TestMatMul8NotFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		c, a, b := make([]float32, 4), []float32{1, bad, 1, 2}, []float32{1, 1, 1, 1}
		Table[float32]().MatMul8(c, a, b, 0, 2, 2, 2, false, false, false, num.E4M3, num.E4M3)
		if c[0] == c[0] || c[1] == c[1] || c[2] != 3 || c[3] != 3 {
			t.Errorf("with %v: %v, want NaN, NaN, 3, 3", bad, c)
		}
	}
	c, a, b := make([]float32, 1), []float32{0, 0}, []float32{3, 4}
	Table[float32]().MatMul8(c, a, b, 0, 1, 1, 2, false, false, false, num.E5M2, num.E4M3)
	if c[0] != 0 {
		t.Errorf("zeros make %v", c[0])
	}
}

func BenchmarkRoundFP8(b *testing.B) {
	x := draw[float32](1, 1<<16)
	for b.Loop() {
		roundFP8(x, num.E4M3)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/number")
}
