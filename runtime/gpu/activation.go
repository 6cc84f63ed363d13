//go:build cuda && linux

package gpu

import (
	"os"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// ownKernels is the variable of the environment that names, with commas between, what is left to kernels of planc's own
// though a library has it: gelu, bias, attention, eight.
const ownKernels = "PLANC_OWN_KERNELS"

// ours tells whether something is left to kernels of our own.
func ours(what string) bool { return slices.Contains(strings.Split(os.Getenv(ownKernels), ","), what) }

// MatMulGelu is MatMulOn from nothing, if from is empty, into pre, then cpu.Gelu of that into c, which overlaps no
// operand. pre may be empty: its numbers are not wanted. GELU is applied before the sums are rounded. It does nothing
// and returns false where cuBLASLt does not take it.
func MatMulGelu[T num.Stored](r *rt.Rank, c, pre, from, a, b Buf[T], m, n, k int, ta, tb bool) bool {
	d := of(r)
	p, add := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, Epilogue: cuda.GELU}, none
	bias := from.N == n && m > 1
	switch {
	case bias:
		p.Epilogue, p.Bias = cuda.GELUBias, at(d, from)
	case from.N > 0:
		add = at(d, from)
	}
	if pre.N > 0 {
		p.Epilogue, p.Aux = p.Epilogue|aux, at(d, pre)
	}
	return activated(d, p, c, add, a, b)
}

// aux is the bit of epilogues that keep what GELU is applied to.
const aux = cuda.GELUAux &^ cuda.GELU

// MatMulGeluGrad is MatMul times cpu.GeluGrad of pre. It does nothing and returns false where cuBLASLt does not take
// it.
func MatMulGeluGrad[T num.Stored](r *rt.Rank, c, pre, a, b Buf[T], m, n, k int, ta, tb bool) bool {
	d := of(r)
	return activated(d, cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, Epilogue: cuda.GELUGrad,
		Aux: at(d, pre)}, c, none, a, b)
}

// activated puts a product with GELU or its derivative on the current stream, if the library takes it: it wants what
// the epilogue reads and writes to be aligned, and rows of Aux of whole eights.
func activated[T num.Stored](d *device, p cuda.GEMM, c Buf[T], from cuda.Pointer, a, b Buf[T]) bool {
	p.In, p.Out = value(suffix[T]()), value(suffix[T]())
	if (p.Bias|p.Aux)%cuda.Alignment != 0 || p.Aux != 0 && p.N%8 != 0 || ours("gelu") {
		return false
	}
	return d.ended(p, at(d, c), from, at(d, a), at(d, b))
}

// MatMulBiasGrad is MatMul, of numbers of 16 bits into f32, that adds the sums of b's rows to bias. It does nothing and
// returns false where cuBLASLt does not take it.
func MatMulBiasGrad[C, T num.Stored](r *rt.Rank, c, bias Buf[C], a, b Buf[T], m, n, k int, ta, tb, acc bool) bool {
	d := of(r)
	if suffix[C]() != "f32" || tb || ours("bias") {
		return false
	}
	sums := d.wide(4 * n)
	p := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, In: value(suffix[T]()), Out: cuda.ValueFloat32,
		Epilogue: cuda.BiasGrad, Bias: sums}
	if !d.ended(p, at(d, c), added(at(d, c), acc), at(d, a), at(d, b)) {
		return false
	}
	d.call("accumulate", "f32_f32", 1, n, at(d, bias), sums, int64(n))
	return true
}
