//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// bench is the fake cuBLASLt with the operands of a GEMM.
type bench struct {
	p         *GEMMs
	s         *Stream
	workspace Memory
}

func products(t *testing.T) (b bench, calls func() string) {
	t.Helper()
	d, calls := fake(t, "new")
	bound(t, d)
	lt := must(loadBLAS([]string{filepath.Join(fakeRoot, "new")}))(t)
	if lt.Version != "13.1.0" {
		t.Errorf("version %s", lt.Version)
	}
	return bench{must(lt.NewGEMMs())(t), must(NewStream(0))(t), must(Alloc(1024))(t)}, calls
}

// doubles returns device memory with values in [-1, 1).
func doubles(t *testing.T, n int) (Memory, []float64) {
	m := must(Alloc(int64(n) * 8))(t)
	v := unsafe.Slice((*float64)(addressOf(m.Pointer)), n)
	for i := range v {
		v[i] = 2*rand.Float64() - 1
	}
	return m, v
}

// A GEMM of row-major matrices computes what its comment says, for each combination of transposes, in
// batches, and with a bias.
func TestGEMMs(t *testing.T) {
	b, calls := products(t)
	const batch, m, n, k = 2, 3, 4, 5
	a, av := doubles(t, batch*m*k)
	x, xv := doubles(t, batch*k*n)
	d, dv := doubles(t, batch*m*n)
	bias, bv := doubles(t, n)
	other, ov := doubles(t, batch*m*n)
	for variant := range 16 {
		ta, tb, biased, from, fv := variant&1 != 0, variant&2 != 0, variant&4 != 0, d, dv
		if variant&8 != 0 {
			from, fv = other, ov
		}
		p := GEMM{Batch: batch, M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, In: ValueFloat64,
			Out: ValueFloat64}
		if biased {
			p.Epilogue, p.Bias = AddBias, bias.Pointer
		}
		before := append([]float64(nil), fv...)
		mul := must(b.p.Prepare(p, b.workspace.Bytes))(t)
		at := Matrices{d.Pointer, from.Pointer, a.Pointer, x.Pointer}
		check(t, b.s.GEMM(mul, 2, 0.5, at, b.workspace), mul.Close())
		for at := range dv {
			z, i, j := at/(m*n), at/n%m, at%n
			want := 0.5 * before[at]
			for q := range k {
				want += 2 * av[pick(z*m*k, ta, m, k, i, q)] * xv[pick(z*k*n, tb, k, n, q, j)]
			}
			if biased {
				want += bv[j]
			}
			if diff := dv[at] - want; diff > 1e-14 || diff < -1e-14 {
				t.Fatalf("variant %d: D[%d,%d,%d] is %g, want %g", variant, z, i, j, dv[at], want)
			}
		}
	}
	closing(t, b, calls)
	check(t, a.Free(), x.Free(), d.Free(), bias.Free(), other.Free())
}

// pick returns the index of an element of a row-major matrix of rows × columns, or of its transpose.
func pick(from int, transposed bool, rows, columns, i, j int) int {
	if transposed {
		return from + j*rows + i
	}
	return from + i*columns + j
}

// closing closes the bench, and checks that no descriptor is left.
func closing(t *testing.T, b bench, calls func() string) {
	t.Helper()
	check(t, b.workspace.Free(), b.s.Close(), b.p.Close())
	if got := calls(); !strings.Contains(got, "descriptors left: 0\n") {
		t.Error(got)
	}
}

// One call computes the gradient of a weight, dW = X' dY, and that of the bias, the sum of dY's rows.
func TestBiasGrad(t *testing.T) {
	b, calls := products(t)
	const rows, in, out = 6, 2, 3
	x, _ := doubles(t, rows*in)
	dy, yv := doubles(t, rows*out)
	dw, _ := doubles(t, in*out)
	db, bv := doubles(t, out)
	mul := must(b.p.Prepare(GEMM{M: in, N: out, K: rows, TransposeA: true, In: ValueFloat64, Out: ValueFloat64,
		Epilogue: BiasGrad, Bias: db.Pointer}, 1024))(t)
	check(t, b.s.GEMM(mul, 1, 0, InPlace(dw.Pointer, x.Pointer, dy.Pointer), b.workspace), mul.Close())
	for j := range out {
		want := 0.0
		for i := range rows {
			want += yv[i*out+j]
		}
		if diff := bv[j] - want; diff > 1e-14 || diff < -1e-14 {
			t.Errorf("column %d sums to %g, want %g", j, bv[j], want)
		}
	}
	closing(t, b, calls)
	check(t, x.Free(), dy.Free(), dw.Free(), db.Free())
}

// The input of GELU is stored for each matrix of a batch. The matrices need only the alignment [Alignment].
func TestAuxOfBatch(t *testing.T) {
	b, calls := products(t)
	const batch, m, n, k = 3, 2, 4, 5
	a, _ := doubles(t, batch*m*k+2)
	x, _ := doubles(t, batch*k*n+2)
	d, dv := doubles(t, batch*m*n+2)
	aux, av := doubles(t, batch*m*n)
	p := GEMM{Batch: batch, M: m, N: n, K: k, In: ValueFloat64, Out: ValueFloat64, Epilogue: GELUAux,
		Aux: aux.Pointer}
	mul := must(b.p.Prepare(p, 1024))(t)
	check(t, b.s.GEMM(mul, 1, 0, InPlace(d.Pointer+Alignment, a.Pointer+Alignment, x.Pointer+Alignment), b.workspace))
	for i, v := range av {
		if v != dv[2+i] {
			t.Errorf("Aux has %g at %d, want %g", v, i, dv[2+i])
		}
	}
	for what, call := range map[string]func(){
		"a batch of bias gradients": func() {
			_, _ = b.p.Prepare(GEMM{Batch: 2, M: m, N: n, K: k, Epilogue: BiasGrad, Bias: aux.Pointer}, 1024)
		},
		"an Aux that is not aligned": func() {
			_, _ = b.p.Prepare(GEMM{M: m, N: n, K: k, Epilogue: GELUAux, Aux: aux.Pointer + 8}, 1024)
		},
		"an A that is not aligned": func() {
			_ = b.s.GEMM(mul, 1, 0, InPlace(d.Pointer, a.Pointer+8, x.Pointer), b.workspace)
		},
	} {
		if !panics(call) {
			t.Errorf("%s is accepted", what)
		}
	}
	check(t, mul.Close())
	closing(t, b, calls)
	check(t, a.Free(), x.Free(), d.Free(), aux.Free())
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// Prepare fails for GEMMs that cannot be computed, and frees everything.
func TestGEMMsFail(t *testing.T) {
	b, calls := products(t)
	x := GEMM{M: 1, N: 1, K: 1}
	if _, err := b.p.Prepare(x, 8); err == nil ||
		!strings.HasSuffix(err.Error(), "cuBLASLt has no algorithm for it with 8 bytes of workspace") {
		t.Errorf("%v", err)
	}
	var failed *Error
	if _, err := b.p.Prepare(GEMM{M: 1, N: 1, K: 1, In: ValueBFloat16}, 1024); !errors.As(err, &failed) ||
		failed.Name != "CUBLAS_STATUS_NOT_SUPPORTED" {
		t.Errorf("%v", err)
	}
	for _, call := range []string{"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
		"cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute",
		"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"} {
		t.Setenv("PLANC_FAKE_FAIL", call+":3")
		if _, err := b.p.Prepare(GEMM{Batch: 2, M: 1, N: 1, K: 1}, 1024); !errors.As(err, &failed) ||
			failed.Call != call || failed.Code != 3 {
			t.Errorf("%s: %v", call, err)
		}
	}
	t.Setenv("PLANC_FAKE_FAIL", "cublasLtMatmul:3")
	mul := must(b.p.Prepare(x, 1024))(t)
	if err := b.s.GEMM(mul, 1, 0, InPlace(0, 0, 0), b.workspace); !errors.As(err, &failed) ||
		failed.What != fmt.Sprintf("%+v", x) {
		t.Errorf("%v", err)
	}
	check(t, mul.Close())
	t.Setenv("PLANC_FAKE_FAIL", "")
	closing(t, b, calls)
}
