//go:build cuda && linux

package gpu

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// scratchWriter hands out buffers in a rank's workspace, filled with numbers.
type scratchWriter struct {
	r  *rt.Rank
	at int
}

// put returns device memory with n small integers, and the integers. Different seeds give different
// numbers.
func put[T num.Stored](w *scratchWriter, n, turn int) (Buf[T], []float32) {
	b := View[T](w.r, w.at, n)
	w.at += (n*size[T]() + 63) &^ 63
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*i+turn*i+turn)%5 - 2)
	}
	num.Store(rt.View[T](w.r, b.At, n), x)
	deviceOf(w.r).Upload(b.At, n*size[T]())
	return b, x
}

// got returns the contents of a buffer.
func got[T num.Stored](w *scratchWriter, b Buf[T]) []float32 {
	deviceOf(w.r).Download(b.At, b.N*size[T]())
	x := make([]float32, b.N)
	num.Load(x, rt.View[T](w.r, b.At, b.N))
	return x
}

func equal(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= math.Abs(float64(want[i]))/256+1e-6) {
			t.Errorf("%s[%d] is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// GEMMs with GELU, its derivative or a row sum as epilogue match the CPU, and report if the library does
// not support them.
func TestGEMMEpilogues(t *testing.T) {
	withoutTable(t)
	p := toy{pp: 1}.program(true)
	forward, done := p.Segments[0].Forward, false
	p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
		if r.ID == 0 && !done {
			done = true
			productsEnd(t, &scratchWriter{r, r.Stage.Arena.Workspace.Offset})
		}
		forward(r, b)
	}
	if _, err := train(t, onGPUs(p, images())); err != nil || !done {
		t.Error(done, err)
	}
}

func productsEnd(t *testing.T, w *scratchWriter) {
	const m, n, k = 2, 8, 4
	r := w.r
	a, av := put[num.BF16](w, m*k, 1)
	b, bv := put[num.BF16](w, k*n, 2)
	bias, biasV := put[num.BF16](w, n, 3)
	pre, preV := put[num.BF16](w, m*n, 1)
	c, _ := put[num.BF16](w, m*n, 0)
	wide, wideV := put[float32](w, m*n, 4)
	sums, sumsV := put[float32](w, n, 2)
	product := make([]float32, m*n)
	for i := range product {
		for l := range k {
			product[i] += av[i/n*k+l] * bv[l*n+i%n]
		}
	}
	values := func(f func(i int) float32) []float32 {
		x := make([]float32, m*n)
		for i := range x {
			x[i] = f(i)
		}
		return x
	}
	if !MatMulGeluGrad(r, c, pre, a, b, m, n, k, false, false) {
		t.Error("the derivative is refused")
	}
	equal(t, "derivative", got(w, c), values(func(i int) float32 { return product[i] * cpu.GeluGrad(preV[i]) }))
	if !MatMulGelu(r, c, pre, bias, a, b, m, n, k, false, false) {
		t.Error("GELU is refused")
	}
	biased := values(func(i int) float32 { return product[i] + biasV[i%n] })
	equal(t, "kept", got(w, pre), biased)
	equal(t, "GELU", got(w, c), values(func(i int) float32 { return cpu.Gelu(biased[i]) }))
	if !MatMulGelu(r, c, Buf[num.BF16]{}, Buf[num.BF16]{}, a, b, m, n, k, false, false) {
		t.Error("GELU as the epilogue of a plain GEMM is refused")
	}
	equal(t, "GELU alone", got(w, c), values(func(i int) float32 { return cpu.Gelu(product[i]) }))
	if !MatMulBiasGrad(r, wide, sums, a, b, m, n, k, false, false, true) {
		t.Error("a bias's gradient is refused")
	}
	equal(t, "weight's gradient", got(w, wide), values(func(i int) float32 { return product[i] + wideV[i] }))
	for i, x := range bv {
		sumsV[i%n] += x
	}
	equal(t, "bias's gradient", got(w, sums), sumsV)
	refusals(t, w, c, pre, a, b)
}

// refusals checks calls that must do nothing.
func refusals(t *testing.T, w *scratchWriter, c, pre, a, b Buf[num.BF16]) {
	r, before := w.r, got(w, c)
	if MatMulGelu(r, c, pre, Buf[num.BF16]{}, a, b, 2, 4, 4, false, false) {
		t.Error("cuBLASLt stores the input of GELU only if the row length is a multiple of 8")
	}
	pre.At += 2
	if MatMulGeluGrad(r, c, pre, a, b, 2, 8, 4, false, false) {
		t.Error("cuBLASLt needs aligned operands")
	}
	d, p := deviceOf(r), cuda.GEMM{M: 2, N: 8, K: 4, In: cuda.ValueBFloat16, Out: cuda.ValueBFloat16, Epilogue: 1 << 20}
	for range 2 {
		if d.tryEpilogue(p, addr(d, c), null, addr(d, a), addr(d, b)) || !d.refused[p] {
			t.Error("an unsupported epilogue is accepted")
		}
	}
	equal(t, "what was there", got(w, c), before)
	t.Setenv(ownKernels, "bias,gelu")
	if MatMulGelu(r, c, Buf[num.BF16]{}, Buf[num.BF16]{}, a, b, 2, 8, 4, false, false) {
		t.Error("it is not left to our own kernels")
	}
}
