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

// ownKernels is the environment variable that lists, separated by commas, which operations use planc's own
// kernels even if a library implements them: gelu, bias, attention, fp8 (FP8 GEMMs).
const ownKernels = "PLANC_OWN_KERNELS"

// usesOwnKernel reports whether [ownKernels] names the operation.
func usesOwnKernel(what string) bool {
	return slices.Contains(strings.Split(os.Getenv(ownKernels), ","), what)
}

// MatMulGelu computes a matmul with a GELU epilogue: the sums, plus from unless it is empty, go to pre, and
// cpu.Gelu of them to c. c overlaps no operand. An empty pre means that the input of GELU is not kept. GELU
// is applied before the sums are rounded. If cuBLASLt does not support the GEMM, MatMulGelu does nothing
// and returns false.
func MatMulGelu[T num.Stored](r *rt.Rank, c, pre, from, a, b Buf[T], m, n, k int, ta, tb bool) bool {
	d := deviceOf(r)
	p, add := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, Epilogue: cuda.GELU}, null
	bias := from.N == n && m > 1
	switch {
	case bias:
		p.Epilogue, p.Bias = cuda.GELUBias, addr(d, from)
	case from.N > 0:
		add = addr(d, from)
	}
	if pre.N > 0 {
		p.Epilogue, p.Aux = p.Epilogue|auxEpilogue, addr(d, pre)
	}
	return launchGeluGEMM(d, p, c, add, a, b)
}

// auxEpilogue is the bit of an epilogue that stores the input of GELU.
const auxEpilogue = cuda.GELUAux &^ cuda.GELU

// MatMulGeluGrad computes MatMul times cpu.GeluGrad of pre. If cuBLASLt does not support the GEMM, it does
// nothing and returns false.
func MatMulGeluGrad[T num.Stored](r *rt.Rank, c, pre, a, b Buf[T], m, n, k int, ta, tb bool) bool {
	d := deviceOf(r)
	return launchGeluGEMM(d, cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, Epilogue: cuda.GELUGrad,
		Aux: addr(d, pre)}, c, null, a, b)
}

// launchGeluGEMM enqueues a GEMM whose epilogue is GELU or its derivative, and reports whether the library
// supports it. The library requires that the epilogue's operands are aligned and that the rows of Aux are
// multiples of 8 elements.
func launchGeluGEMM[T num.Stored](d *device, p cuda.GEMM, c Buf[T], from cuda.Pointer, a, b Buf[T]) bool {
	p.In, p.Out = valueType(suffix[T]()), valueType(suffix[T]())
	if (p.Bias|p.Aux)%cuda.Alignment != 0 || p.Aux != 0 && p.N%8 != 0 || usesOwnKernel("gelu") {
		return false
	}
	return d.tryEpilogue(p, addr(d, c), from, addr(d, a), addr(d, b))
}

// MatMulBiasGrad computes MatMul of 16-bit operands into f32, and adds the sums of b's rows to bias. If
// cuBLASLt does not support the GEMM, it does nothing and returns false.
func MatMulBiasGrad[C, T num.Stored](r *rt.Rank, c, bias Buf[C], a, b Buf[T], m, n, k int, ta, tb, acc bool) bool {
	d := deviceOf(r)
	if suffix[C]() != "f32" || tb || usesOwnKernel("bias") {
		return false
	}
	sums := d.wideResult(4 * n)
	p := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, In: valueType(suffix[T]()), Out: cuda.ValueFloat32,
		Epilogue: cuda.BiasGrad, Bias: sums}
	if !d.tryEpilogue(p, addr(d, c), betaOperand(addr(d, c), acc), addr(d, a), addr(d, b)) {
		return false
	}
	d.call("accumulate", "f32_f32", 1, n, addr(d, bias), sums, int64(n))
	return true
}
