//go:build cuda && linux

package gpu

import (
	"fmt"
	"os"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
	"github.com/planc-dev/planc/runtime/gpu/gemmchoice"
	"github.com/planc-dev/planc/runtime/num"
)

// gemmRunner enqueues GEMMs and their FP8 operands.
type gemmRunner struct {
	exec      *executor
	blas      *cuda.GEMMs
	gemmPlans map[cuda.GEMM]*cuda.GEMMPlan
	choices   *gemmchoice.Choices
	timed     map[cuda.GEMM]float64 // seconds of GEMMs, without addresses, whose fastest algorithm is known
	refused   map[cuda.GEMM]bool    // GEMMs, without addresses, that cuBLASLt does not support
	separate  map[cuda.GEMM]bool    // GEMMs, without addresses, that were slower than without their epilogue
	firstStep bool                  // the first step has not ended: it may time algorithms
}

// workspace is the memory limit of a GEMM algorithm, in bytes.
const workspace = cuda.GEMMWorkspace

// MatMul computes cpu.MatMul: c[m,n] = op(a)[m,k] op(b)[k,n], added to c if acc. It accumulates in f32, or
// in f64 for f64.
func MatMul[C, T num.Stored](r *rt.Rank, c Buf[C], a, b Buf[T], m, n, k int, ta, tb, acc bool) {
	gemm(deviceOf(r), c, a, b, cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb}, acc)
}

// MatMulEach computes MatMul for each of groups consecutive matrices.
func MatMulEach[C, T num.Stored](r *rt.Rank, c Buf[C], a, b Buf[T], groups, m, n, k int, ta, tb, acc bool) {
	gemm(deviceOf(r), c, a, b, cuda.GEMM{Batch: groups, M: m, N: n, K: k, TransposeA: ta, TransposeB: tb}, acc)
}

// MatMulOn computes MatMul plus from, which has m rows or one row for all, and does not overlap c.
func MatMulOn[T num.Stored](r *rt.Rank, c, from, a, b Buf[T], m, n, k int, ta, tb bool) {
	d := deviceOf(r)
	t := valueType(suffix[T]())
	p := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, In: t, Out: t}
	if from.N != n || m == 1 {
		d.gemm(p, addr(d, c), addr(d, from), addr(d, a), addr(d, b))
		return
	}
	q := p
	q.Epilogue, q.Bias = cuda.AddBias, addr(d, from)
	if !isOwnEpilogue(&q) && d.tryEpilogue(q, addr(d, c), null, addr(d, a), addr(d, b)) {
		return
	}
	// the bias is the C operand, which is added before the sums are rounded, as by the epilogue
	d.part(suffix[T](), c.At, from.At, m, n, 0, 0)
	d.gemm(p, addr(d, c), addr(d, c), addr(d, a), addr(d, b))
}

// AddingGEMM are the operands of MatMulOnBoth: those of MatMul, a Residual with as many rows as C, which it does not
// overlap, and a Bias, which is one row for all.
type AddingGEMM[T num.Stored] struct {
	C, Residual, Bias, A, B Buf[T]
	M, N, K                 int
	TransposeA, TransposeB  bool
}

// MatMulOnBoth computes MatMul plus a residual plus a bias.
func MatMulOnBoth[T num.Stored](r *rt.Rank, x AddingGEMM[T]) {
	d := deviceOf(r)
	t := valueType(suffix[T]())
	p := cuda.GEMM{M: x.M, N: x.N, K: x.K, TransposeA: x.TransposeA, TransposeB: x.TransposeB, In: t, Out: t}
	q := p
	q.Epilogue, q.Bias = cuda.AddBias, addr(d, x.Bias)
	c, a, b := addr(d, x.C), addr(d, x.A), addr(d, x.B)
	if !isOwnEpilogue(&q) && d.tryEpilogue(q, c, addr(d, x.Residual), a, b) {
		return
	}
	// the sum of both is the C operand
	n := x.M * x.N
	d.part(suffix[T](), x.C.At, x.Bias.At, x.M, x.N, 0, 0)
	d.call("accumulate", suffix[T]()+"_"+suffix[T](), 1, n, c, addr(d, x.Residual), int64(n))
	d.gemm(p, c, c, a, b)
}

// gemm computes a GEMM with whatever type c has: cuBLASLt's results have the operands' type or f32.
func gemm[C, T num.Stored](d *device, c Buf[C], a, b Buf[T], p cuda.GEMM, acc bool) {
	p.In, p.Out = valueType(suffix[T]()), valueType(suffix[C]())
	if p.In == p.Out || p.Out == cuda.ValueFloat32 {
		d.gemm(p, addr(d, c), betaOperand(addr(d, c), acc), addr(d, a), addr(d, b))
		return
	}
	p.Out = valueType(computeSuffix[T]())
	withSums[C, T](d, c, d.wideResult(sumScratch[C, T](c.N)), acc, func(to cuda.Pointer) {
		d.gemm(p, to, betaOperand(to, acc), addr(d, a), addr(d, b))
	})
}

// wideResult returns scratch memory for a GEMM's result in f32, which does not overlap the workspace.
func (d *gemmRunner) wideResult(bytes int) cuda.Pointer {
	return d.exec.scratchParts(workspace, bytes)[1]
}

// betaOperand returns the C operand of a GEMM: the result's address if it accumulates, otherwise null.
func betaOperand(to cuda.Pointer, acc bool) cuda.Pointer {
	if acc {
		return to
	}
	return null
}

// gemm enqueues a GEMM on the current stream. It adds from unless that is null.
func (d *gemmRunner) gemm(p cuda.GEMM, c, from, a, b cuda.Pointer) {
	rt.Check(d.tryGEMM(p, c, from, a, b))
}

func (d *gemmRunner) tryGEMM(p cuda.GEMM, c, from, a, b cuda.Pointer) error {
	m, err := d.gemmPlan(p)
	if err != nil {
		return err
	}
	beta, room, inPlace := 1.0, d.exec.scratchMemory(workspace), from == c
	if from == null {
		beta, from = 0, c
	}
	p = gemmKind(p)
	x := cuda.Matrices{D: c, C: from, A: a, B: b}
	if !inPlace && d.mayTime(p) {
		d.timed[p], err = d.exec.stream().TimeAlgorithms(m, timedAlgorithms, 1, beta, x, room)
		if err == nil {
			d.choices.Add(p, m.Algorithm(), d.timed[p])
		}
		return err
	}
	return d.exec.stream().GEMM(m, 1, beta, x, room)
}

// mayTime reports whether the algorithms of a kind of GEMM are to be timed, because the first step does so and has not
// yet timed them.
func (d *gemmRunner) mayTime(kind cuda.GEMM) bool {
	_, isTimed := d.timed[kind]
	return d.firstStep && !isTimed && gemmchoice.Times()
}

// gemmKind returns a GEMM without the addresses of Bias, Aux and scales.
func gemmKind(p cuda.GEMM) cuda.GEMM {
	p.Bias, p.Aux, p.ScaleA, p.ScaleB = min(p.Bias, 1), min(p.Aux, 1), min(p.ScaleA, 1), min(p.ScaleB, 1)
	return p
}

// tryEpilogue enqueues a GEMM with an epilogue for which there is a fallback. If the library does not
// support it, it returns false, now and for all later calls.
func (d *gemmRunner) tryEpilogue(p cuda.GEMM, c, from, a, b cuda.Pointer) bool {
	kind := gemmKind(p)
	choice, _ := d.choices.Lookup(kind)
	if d.refused[kind] || d.separate[kind] || choice.Separate {
		return false
	}
	_, err := d.gemmPlan(p)
	if err == nil {
		err = d.tryGEMM(p, c, from, a, b)
		if !cuda.IsUnsupported(err) {
			rt.Check(err)
		}
	}
	d.refused[kind] = err != nil
	return err == nil
}

// timedAlgorithms is the number of algorithms that the first step times for each kind of GEMM if [gemmchoice.Timing]
// says so.
const timedAlgorithms = 8

// checkTiming returns an error if the first step is to time algorithms in a run that must be deterministic.
func checkTiming() error {
	if os.Getenv(comm.Deterministic) != "1" || os.Getenv(gemmchoice.Timing) == "" {
		return nil
	}
	return fmt.Errorf("%s=1 and %s exclude each other: the fastest GEMM algorithm differs from run to "+
		"run, and another algorithm adds in another order; unset one of them", comm.Deterministic, gemmchoice.Timing)
}

// gemmPlan returns the plan of a GEMM, which is prepared at its first use.
func (d *gemmRunner) gemmPlan(p cuda.GEMM) (*cuda.GEMMPlan, error) {
	if m := d.gemmPlans[p]; m != nil {
		return m, nil
	}
	if err := d.useChoice(p); err != nil {
		return nil, err
	}
	m, err := d.blas.Prepare(p, workspace)
	if err == nil {
		d.gemmPlans[p] = m
		d.exec.atClose(m.Close)
	}
	return m, err
}

// useChoice makes GEMMs of a kind use the algorithm of the file, if it has one.
func (d *gemmRunner) useChoice(p cuda.GEMM) error {
	choice, known := d.choices.Lookup(gemmKind(p))
	if !known {
		return nil
	}
	a, err := choice.Decode()
	if err != nil {
		return fmt.Errorf("%s: %s: %w", gemmchoice.File, gemmchoice.Kind(gemmKind(p)), err)
	}
	d.blas.Use(p, workspace, a)
	return nil
}

// valueType returns cuBLASLt's type of a suffix.
func valueType(types string) cuda.Value {
	return map[string]cuda.Value{"f32": cuda.ValueFloat32, "f64": cuda.ValueFloat64, "bf16": cuda.ValueBFloat16,
		"f16": cuda.ValueFloat16}[types]
}
