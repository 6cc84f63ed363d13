//go:build cuda && linux

package cuda

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// The fastest algorithm of a GEMM is kept, also for others of its kind. Each timed algorithm computes the
// GEMM.
func TestTimeAlgorithms(t *testing.T) {
	b, calls := products(t)
	t.Setenv("PLANC_FAKE_TIMES", "326")
	a, av := doubles(t, 1)
	x, xv := doubles(t, 1)
	d, dv := doubles(t, 1)
	c, cv := doubles(t, 1)
	bias, bv := doubles(t, 2)
	p := GEMM{M: 1, N: 1, K: 1, In: ValueFloat64, Out: ValueFloat64, Epilogue: AddBias, Bias: bias.Pointer}
	multiply := func(want string) {
		t.Helper()
		mul := must(b.p.Prepare(p, b.workspace.Bytes))(t)
		check(t, b.s.GEMM(mul, 1, 0, InPlace(d.Pointer, a.Pointer, x.Pointer), b.workspace), mul.Close())
		if got := calls(); !strings.Contains(got, want) {
			t.Errorf("not %s, but\n%s", want, got)
		}
	}
	multiply("product by way 0")
	mul := must(b.p.Prepare(p, b.workspace.Bytes))(t)
	seconds := must(b.s.TimeAlgorithms(mul, 5, 1, 1, Matrices{d.Pointer, c.Pointer, a.Pointer, x.Pointer},
		b.workspace))(t)
	if want := 2e-3 / timedRuns; math.Abs(seconds-want) > 1e-9 {
		t.Errorf("the fastest takes %g s, want %g", seconds, want)
	}
	fastest := mul.Algorithm()
	check(t, mul.Close())
	got := calls()
	for _, way := range []string{"product by way 0", "product by way 1", "product by way 2"} {
		if strings.Count(got, way) != timedRuns+1 {
			t.Errorf("%d times %s in\n%s", strings.Count(got, way), way, got)
		}
	}
	if want := av[0]*xv[0] + cv[0] + bv[0]; dv[0] != want {
		t.Errorf("computed %g, want %g", dv[0], want)
	}
	p.Bias += Alignment
	multiply("product by way 1")
	p.N = 2
	mul = must(b.p.Prepare(p, b.workspace.Bytes))(t)
	if mul.Algorithm() == fastest {
		t.Error("another kind of GEMM uses the algorithm too")
	}
	check(t, mul.Close())
	p.TransposeA = true // a kind that is not prepared yet
	b.p.Use(p, b.workspace.Bytes, fastest)
	p.Bias -= Alignment
	multiply("product by way 1")
	p.TransposeA = false
	for _, call := range []string{"cublasLtMatmul", "cuEventElapsedTime", "cuEventCreate"} {
		mul := must(b.p.Prepare(p, b.workspace.Bytes))(t)
		t.Setenv("PLANC_FAKE_FAIL", call+":3")
		var failed *Error
		_, err := b.s.TimeAlgorithms(mul, 2, 1, 0, InPlace(d.Pointer, a.Pointer, x.Pointer), b.workspace)
		if !errors.As(err, &failed) || failed.Call != call {
			t.Errorf("%s: %v", call, err)
		}
		t.Setenv("PLANC_FAKE_FAIL", "")
		check(t, mul.Close())
	}
	closing(t, b, calls)
	check(t, a.Free(), x.Free(), d.Free(), c.Free(), bias.Free())
}
