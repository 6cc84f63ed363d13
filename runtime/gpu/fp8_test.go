//go:build cuda && linux

package gpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// FP8 GEMMs match the CPU's, with cuBLASLt if it supports them and with bf16 otherwise: in every layout, in
// groups, accumulating, and with numbers that are not finite.
func TestFP8GEMMs(t *testing.T) {
	withoutTable(t)
	for _, own := range []string{"", "eight"} {
		t.Setenv(ownKernels, own)
		p := toy{pp: 1}.program(true)
		forward, done := p.Segments[0].Forward, false
		p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
			if r.ID == 0 && !done {
				done = true
				for bits := range 32 {
					testFP8GEMM[num.BF16](t, r, bits, own == "")
					testFP8GEMM[float32](t, r, bits, own == "")
				}
				testFP8GEMM[num.F16](t, r, 0, own == "")
			}
			forward(r, b)
		}
		if _, err := train(t, onGPUs(p, images())); err != nil || !done {
			t.Error(done, err)
		}
	}
}

// sizes writes n numbers of several magnitudes to the device, and returns them.
func sizes[T num.Stored](w *scratchWriter, n int, seed uint64, bad float32) (Buf[T], []float32) {
	b, x := put[T](w, n, 0)
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range x {
		x[i] = float32((r.Float64()*2 - 1) * math.Exp2(-r.Float64()*6))
	}
	if bad != 0 {
		x[n/2] = bad
	}
	num.Store(rt.View[T](w.r, b.At, n), x)
	num.Load(x, rt.View[T](w.r, b.At, n))
	deviceOf(w.r).Upload(b.At, n*size[T]())
	return b, x
}

func testFP8GEMM[C num.Stored](t *testing.T, r *rt.Rank, bits int, library bool) {
	ta, tb, acc, groups := bits&1 > 0, bits&2 > 0, bits&4 > 0, bits>>3&1*2
	m, n, k := 3, 8, 5
	if bits&16 > 0 {
		n, k = 6, 16 // rows that are not multiples of 8, which the library does not support
	}
	each, bad := max(groups, 1), float32(0)
	if bits == 3 {
		bad = float32(math.Inf(1))
	}
	w := &scratchWriter{r, r.Stage.Arena.Workspace.Offset}
	a, av := sizes[num.BF16](w, each*m*k, 1, bad)
	b, bv := sizes[num.BF16](w, each*k*n, 2, 0)
	c, cv := sizes[C](w, each*m*n, 3, 0)
	if end := r.Stage.Arena.Workspace.Offset + r.Stage.Arena.Workspace.Size; w.at > end {
		t.Fatalf("the workspace ends at %d, not at %d", end, w.at)
	}
	MatMul8(r, c, a, b, groups, m, n, k, ta, tb, acc, num.E4M3, num.E5M2)
	cpu.Table[float32]().MatMul8(cv, av, bv, groups, m, n, k, ta, tb, acc, num.E4M3, num.E5M2)
	what := fmt.Sprintf("product %T %v", *new(C), bits)
	for i, x := range got(w, c) {
		if y := cv[i]; !(math.Abs(float64(x-y)) <= math.Abs(float64(y))/256+1e-5) && (x == x || y == y) {
			t.Errorf("%s[%d] is %g, want %g", what, i, x, y)
		}
	}
	d := deviceOf(r)
	for p, refused := range d.refused {
		if p.In == cuda.ValueE4M3 && refused != (!library || p.N%8 > 0) {
			t.Errorf("%s: %+v is refused: %v", what, p, refused)
		}
	}
}
