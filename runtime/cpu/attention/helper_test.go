package attention

import (
	"math/rand"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/vec"
)

// each runs a test with the matmuls and loops of each ISA of this machine.
func each(t *testing.T, f func(*testing.T)) {
	use := func(isa asm.ISA) {
		gemm.Use(isa)
		switch {
		case isa >= asm.AVX512:
			vec.Use(vec.AVX512)
		case isa == asm.AVX2:
			vec.Use(vec.AVX2)
		default:
			vec.Use(nil)
		}
	}
	for isa := asm.Portable; isa <= asm.Best(); isa++ {
		t.Run(isa.String(), func(t *testing.T) {
			use(isa)
			defer use(asm.Best())
			f(t)
		})
	}
}

// tensors holds the operands and results of Forward and Gradient.
type tensors struct{ q, k, v, o, lse, do, dq, dk, dv []float32 }

func drawTensors(s Shape) tensors {
	r := rand.New(rand.NewSource(1))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	nq, nk := s.Batch*s.Seq*s.Heads*s.Group, s.Batch*s.KSeq*s.Heads
	return tensors{q: draw(nq * s.Dim), k: draw(nk * s.Dim), v: draw(nk * s.VDim), do: draw(nq * s.VDim),
		// overwritten by the kernels
		o: draw(nq * s.VDim), lse: draw(nq), dq: draw(nq * s.Dim), dk: draw(nk * s.Dim), dv: draw(nk * s.VDim)}
}
