package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
)

// both runs a test for each element type and each ISA of this machine. tol is the allowed difference to
// float64 loops, relative to 1 + |want|.
func both(t *testing.T, f32 func(*testing.T, float64), f64 func(*testing.T, float64)) {
	each(t, func(t *testing.T) {
		t.Run("f32", func(t *testing.T) { f32(t, 2e-5) })
		t.Run("f64", func(t *testing.T) { f64(t, 1e-12) })
	})
}

// each runs a test with the kernels of each ISA of this machine, with and without the bfloat16 matmuls of
// AVX-512.
func each(t *testing.T, f func(*testing.T)) {
	for isa := Portable; isa <= Best(); isa++ {
		t.Run(isa.String(), func(t *testing.T) {
			Use(isa)
			defer Use(Best())
			f(t)
		})
	}
	if !asm.HasBF16() {
		return
	}
	was := gemm.PairsPay
	gemm.PairsPay = !was
	t.Run(map[bool]string{true: "avx512 widened", false: "avx512 pairs"}[was], func(t *testing.T) {
		Use(AVX512)
		f(t)
	})
	gemm.PairsPay = was
	Use(Best())
}

// draw returns n normally distributed numbers, which depend only on the seed.
func draw[F Float](seed int64, n int) []F {
	r := rand.New(rand.NewSource(seed))
	x := make([]F, n)
	for i := range x {
		x[i] = F(r.NormFloat64())
	}
	return x
}

func drawIDs(seed int64, n, below int) []int32 {
	r := rand.New(rand.NewSource(seed))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.Intn(below+4) - 2) // some outside
	}
	return ids
}

func wide[F Float](x []F) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// near compares a kernel's result with its loop's.
func near[F Float](t *testing.T, what string, got []F, want []float64, tol float64) {
	t.Helper()
	bad := 0
	for i, w := range want {
		g := float64(got[i])
		if g == w || math.Abs(g-w) <= tol*(1+math.Abs(w)) {
			continue
		}
		t.Errorf("%s: element %d is %v, want %v", what, i, g, w)
		bad++
		if bad == 5 {
			return
		}
	}
}

// slope compares a gradient with central differences of loss in every element of x.
func slope(t *testing.T, what string, x, grad []float64, loss func() float64) {
	t.Helper()
	const h = 1e-5
	want := make([]float64, len(x))
	for i, v := range x {
		x[i] = v + h
		up := loss()
		x[i] = v - h
		want[i] = (up - loss()) / (2 * h)
		x[i] = v
	}
	near(t, what, grad, want, 1e-7)
}

// along returns the loss whose gradient with respect to y is dy.
func along(y, dy []float64) float64 {
	s := 0.0
	for i := range y {
		s += y[i] * dy[i]
	}
	return s
}

// start returns what a sum is added to: before if acc, otherwise zeros.
func start[F Float](before []F, acc bool) []float64 {
	if acc {
		return wide(before)
	}
	return make([]float64, len(before))
}

var accs = []bool{false, true}

func name(xs ...any) string { return fmt.Sprint(xs...) }

// withThreads runs a test with one team of the given number of threads.
func withThreads(t *testing.T, each int, f func(*testing.T)) {
	Threads(1, each)
	defer Threads(0, 0)
	f(t)
}
