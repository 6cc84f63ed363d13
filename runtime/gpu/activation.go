//go:build cuda && linux

package gpu

import (
	"os"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
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
	bias, add := from.N == n && m > 1, null
	p := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, Epilogue: geluEpilogue(bias, pre.N > 0),
		Aux: addr(d, pre)}
	if bias {
		p.Bias = addr(d, from)
	} else {
		add = addr(d, from)
	}
	return launchGeluGEMM(d, p, c, add, a, b)
}

// geluEpilogue returns the epilogue that computes GELU, after a bias if there is one, and may store its input.
func geluEpilogue(bias, storesInput bool) cuda.Epilogue {
	e := cuda.GELU
	if bias {
		e |= cuda.AddBias
	}
	if storesInput {
		e |= cuda.GELUAux
	}
	return e
}

// isOwnEpilogue reports whether planc's own kernels compute an epilogue, without asking the library. The library
// requires that the epilogue's operands are aligned.
func isOwnEpilogue(p *cuda.GEMM) bool {
	switch {
	case (p.Bias|p.Aux)%cuda.Alignment != 0 || !fitsAux(p):
		return true
	case p.Epilogue == cuda.AddBias:
		return p.In == cuda.ValueFloat64 // has no such epilogue
	case p.Epilogue == cuda.BiasGrad:
		return p.Out != cuda.ValueFloat32 || p.TransposeB || usesOwnKernel("bias")
	}
	return usesOwnKernel("gelu")
}

// MatMulGeluGrad computes MatMul times cpu.GeluGrad of pre. If cuBLASLt does not support the GEMM, it does
// nothing and returns false.
func MatMulGeluGrad[T num.Stored](r *rt.Rank, c, pre, a, b Buf[T], m, n, k int, ta, tb bool) bool {
	d := deviceOf(r)
	return launchGeluGEMM(d, cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, Epilogue: cuda.GELUGrad,
		Aux: addr(d, pre)}, c, null, a, b)
}

// fitsAux reports whether the library can read or write Aux: its rows must be multiples of 8 elements.
func fitsAux(p *cuda.GEMM) bool { return p.Aux == 0 || p.N%8 == 0 }

// launchGeluGEMM enqueues a GEMM whose epilogue is GELU or its derivative, and reports whether the library
// supports it.
func launchGeluGEMM[T num.Stored](d *device, p cuda.GEMM, c Buf[T], from cuda.Pointer, a, b Buf[T]) bool {
	p.In, p.Out = valueType(suffix[T]()), valueType(suffix[T]())
	return !isOwnEpilogue(&p) && d.tryEpilogue(p, addr(d, c), from, addr(d, a), addr(d, b))
}

// MatMulBiasGrad computes MatMul of 16-bit operands into f32, and adds the sums of b's rows to bias. If
// cuBLASLt does not support the GEMM, or if a measurement says that separate kernels are faster, it returns false, and
// bias is as before.
func MatMulBiasGrad[C, T num.Stored](r *rt.Rank, c, bias Buf[C], a, b Buf[T], m, n, k int, ta, tb, acc bool) bool {
	d := deviceOf(r)
	p := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, In: valueType(suffix[T]()),
		Out: valueType(suffix[C]()), Epilogue: cuda.BiasGrad}
	if isOwnEpilogue(&p) {
		return false
	}
	sums := d.wideResult(4 * n)
	p.Bias = sums
	x := cuda.Matrices{D: addr(d, c), C: betaOperand(addr(d, c), acc), A: addr(d, a), B: addr(d, b)}
	if !acc && d.mayTime(gemmKind(p)) {
		d.timeSeparate(p, x, func() { sumRowsAlone[T](d, x.B, k, n) })
	}
	if !d.tryEpilogue(p, x.D, x.C, x.A, x.B) {
		return false
	}
	d.call("accumulate", "f32_f32", 1, n, addr(d, bias), sums, int64(n))
	return true
}

// timeSeparate times a kind of GEMM with its epilogue, and without it but followed by the kernel that otherwise
// computes it. If that is faster, all later GEMMs of the kind are computed so.
func (d *gemmRunner) timeSeparate(p cuda.GEMM, x cuda.Matrices, epilogue func()) {
	kind := gemmKind(p)
	if !d.tryEpilogue(p, x.D, x.C, x.A, x.B) {
		return
	}
	p.Epilogue, p.Bias, p.Aux = 0, 0, 0
	rt.Check(d.tryGEMM(p, x.D, x.C, x.A, x.B))
	took, err := d.exec.stream().Time(func() error { epilogue(); return nil })
	rt.Check(err)
	if d.timed[gemmKind(p)]+took < d.timed[kind] {
		d.separate[kind] = true
		d.choices.SetSeparate(kind)
	}
}

// sumRowsAlone sums over the rows of a matrix, as [SumRows] does, into scratch memory.
func sumRowsAlone[T num.Stored](d *device, x cuda.Pointer, rows, cols int) {
	bytes, _ := computeType[T]()
	parts := kernels.Parts(rows)
	room := d.scratchParts(parts*cols*bytes, cols*bytes)
	inParts[T](d, room[1], room[0], parts, cols, false, func(to cuda.Pointer, acc bool) {
		d.call("sum_rows", suffix[T](), rows, cols, to, x, rows, cols, acc)
	})
}
