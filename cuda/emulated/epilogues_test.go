//go:build cuda && linux

package emulated

import (
	"fmt"
	"math"
	"testing"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// read returns the numbers of bf16 memory after all work that the stream waits for.
func (g *gpu) read(s *cuda.Stream, m cuda.Memory) []float64 {
	try(s.Download(g.pinned.At(0, m.Bytes), m), s.Synchronize())
	out := make([]float64, m.Bytes/2)
	for i := range out {
		b := g.pinned.Slice()[2*i:]
		out[i] = float64(num.BF16{Bits: uint16(b[0]) | uint16(b[1])<<8}.Wide())
	}
	return out
}

// A bf16 GEMM with GELU or its derivative as epilogue equals a loop over its sums. The operands are small
// integers, so that the sums are exact. The input of GELU is stored on request.
func TestEpilogues(t *testing.T) {
	const m, n, k = 5, 8, 9
	g := machine(t, 0)
	s := g.stream()
	load := func(count, turn int) (cuda.Memory, []float64) {
		x := make([]float64, count)
		for i := range x {
			x[i] = float64((i*i+turn*i)%5 - 2)
		}
		mem := g.memory(int64(2 * count))
		copy(g.pinned.Slice(), stored(cuda.ValueBFloat16, x))
		try(s.Upload(mem, g.pinned.At(0, mem.Bytes)), s.Synchronize())
		return mem, x
	}
	products := need(need(cuda.OpenBLAS()).NewGEMMs())
	for _, epilogue := range []cuda.Epilogue{cuda.GELU, cuda.GELUBias, cuda.GELUAux, cuda.GELUAuxBias, cuda.GELUGrad} {
		for _, beta := range []float64{0, 1} {
			a, av := load(m*k, 1)
			b, bv := load(k*n, 2)
			c, cv := load(m*n, 3)
			bias, biasV := load(n, 4)
			aux, auxV := load(m*n, 5)
			d := g.memory(2 * m * n)
			p := cuda.GEMM{M: m, N: n, K: k, In: cuda.ValueBFloat16, Out: cuda.ValueBFloat16, Epilogue: epilogue}
			keeps := epilogue == cuda.GELUAux || epilogue == cuda.GELUAuxBias
			biased := epilogue == cuda.GELUBias || epilogue == cuda.GELUAuxBias
			if keeps || epilogue == cuda.GELUGrad {
				p.Aux = aux.Pointer
			}
			if biased {
				p.Bias = bias.Pointer
			}
			x := need(products.Prepare(p, 1<<16))
			at := cuda.Matrices{D: d.Pointer, C: c.Pointer, A: a.Pointer, B: b.Pointer}
			try(s.GEMM(x, 1, beta, at, g.memory(1<<16)))
			got, saved := g.read(s, d), g.read(s, aux)
			for at := range got {
				sum := beta * cv[at]
				for l := range k {
					sum += av[at/n*k+l] * bv[l*n+at%n]
				}
				if biased {
					sum += biasV[at%n]
				}
				want := cpu.Gelu(sum)
				if epilogue == cuda.GELUGrad {
					want = sum * cpu.GeluGrad(auxV[at])
				}
				what := fmt.Sprintf("epilogue %d, beta %g, element %d", epilogue, beta, at)
				if !(math.Abs(got[at]-want) <= math.Abs(want)/256+1e-12) {
					t.Errorf("%s is %g, want %g", what, got[at], want)
				}
				if keeps && saved[at] != sum {
					t.Errorf("%s: saved %g of %g", what, saved[at], sum)
				}
			}
			try(x.Close())
		}
	}
	try(products.Close())
}
