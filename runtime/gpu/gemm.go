//go:build cuda && linux

package gpu

import (
	"fmt"
	"os"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
	"github.com/planc-dev/planc/runtime/num"
)

// gemmRunner enqueues GEMMs and their FP8 operands.
type gemmRunner struct {
	exec      *executor
	blas      *cuda.GEMMs
	gemmPlans map[cuda.GEMM]*cuda.GEMMPlan
	timed     map[cuda.GEMM]bool // GEMMs, without addresses, whose fastest algorithm is known
	refused   map[cuda.GEMM]bool // GEMMs, without addresses, that cuBLASLt does not support
	firstStep bool               // the first step may time algorithms
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
	switch bias := from.N == n && m > 1; {
	case bias && t != cuda.ValueFloat64 && from.At%cuda.Alignment == 0:
		p.Epilogue, p.Bias = cuda.AddBias, addr(d, from)
		d.gemm(p, addr(d, c), null, addr(d, a), addr(d, b))
	case bias: // f64 has no bias epilogue
		d.part(suffix[T](), c.At, from.At, m, n, 0, 0)
		d.gemm(p, addr(d, c), addr(d, c), addr(d, a), addr(d, b))
	default:
		d.gemm(p, addr(d, c), addr(d, from), addr(d, a), addr(d, b))
	}
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
	if d.firstStep && !inPlace && !d.timed[p] && os.Getenv(timeGEMMs) == "1" {
		d.timed[p] = true
		return d.exec.stream().TimeAlgorithms(m, timedAlgorithms, 1, beta, x, room)
	}
	return d.exec.stream().GEMM(m, 1, beta, x, room)
}

// gemmKind returns a GEMM without the addresses of Bias, Aux and scales.
func gemmKind(p cuda.GEMM) cuda.GEMM {
	p.Bias, p.Aux, p.ScaleA, p.ScaleB = min(p.Bias, 1), min(p.Aux, 1), min(p.ScaleA, 1), min(p.ScaleB, 1)
	return p
}

// tryEpilogue enqueues a GEMM with an epilogue for which there is a fallback. If the library does not
// support it, it returns false, now and for all later calls. Other errors recur in the fallback.
func (d *gemmRunner) tryEpilogue(p cuda.GEMM, c, from, a, b cuda.Pointer) bool {
	kind := gemmKind(p)
	if d.refused[kind] {
		return false
	}
	d.refused[kind] = d.tryGEMM(p, c, from, a, b) != nil
	return !d.refused[kind]
}

// timeGEMMs is the environment variable that makes the first step time several algorithms for each kind of
// GEMM. Later steps use the fastest. Two runs may then round differently, as may copies that several ranks
// compute of the same values.
const (
	timeGEMMs       = "PLANC_TIME_PRODUCTS"
	timedAlgorithms = 8
)

// checkTiming returns an error if the first step is to time algorithms in a run that must be deterministic.
func checkTiming() error {
	if os.Getenv(comm.Deterministic) != "1" || os.Getenv(timeGEMMs) == "" {
		return nil
	}
	return fmt.Errorf("%s=1 and %s exclude each other: the fastest GEMM algorithm differs from run to "+
		"run, and another algorithm adds in another order; unset one of them", comm.Deterministic, timeGEMMs)
}

// gemmPlan returns the plan of a GEMM, which is prepared at its first use.
func (d *gemmRunner) gemmPlan(p cuda.GEMM) (*cuda.GEMMPlan, error) {
	if m := d.gemmPlans[p]; m != nil {
		return m, nil
	}
	m, err := d.blas.Prepare(p, workspace)
	if err == nil {
		d.gemmPlans[p] = m
		d.exec.atClose(m.Close)
	}
	return m, err
}

// valueType returns cuBLASLt's type of a suffix.
func valueType(types string) cuda.Value {
	return map[string]cuda.Value{"f32": cuda.ValueFloat32, "f64": cuda.ValueFloat64, "bf16": cuda.ValueBFloat16,
		"f16": cuda.ValueFloat16}[types]
}
