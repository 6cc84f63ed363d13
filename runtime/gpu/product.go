//go:build cuda && linux

package gpu

import (
	"os"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// workspace is what a way of multiplying may take, in bytes: as much as cuBLASLt's documentation wants for devices of
// 2022 and later.
const workspace = 32 << 20

// MatMul is the loop of that name of package cpu: c[m,n] = op(a)[m,k] op(b)[k,n], added to c if acc. Sums are in f32,
// or f64.
func MatMul[C, T num.Stored](r *rt.Rank, c Buf[C], a, b Buf[T], m, n, k int, ta, tb, acc bool) {
	multiply(of(r), c, a, b, cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb}, acc)
}

// MatMulEach is MatMul of each of groups matrices, one behind the other.
func MatMulEach[C, T num.Stored](r *rt.Rank, c Buf[C], a, b Buf[T], groups, m, n, k int, ta, tb, acc bool) {
	multiply(of(r), c, a, b, cuda.GEMM{Batch: groups, M: m, N: n, K: k, TransposeA: ta, TransposeB: tb}, acc)
}

// MatMulOn is MatMul that adds to from, of m rows or one for all, which does not overlap c.
func MatMulOn[T num.Stored](r *rt.Rank, c, from, a, b Buf[T], m, n, k int, ta, tb bool) {
	d := of(r)
	t := value(suffix[T]())
	p := cuda.GEMM{M: m, N: n, K: k, TransposeA: ta, TransposeB: tb, In: t, Out: t}
	switch bias := from.N == n && m > 1; {
	case bias && t != cuda.ValueFloat64 && from.At%cuda.Alignment == 0:
		p.Epilogue, p.Bias = cuda.AddBias, at(d, from)
		d.multiply(p, at(d, c), none, at(d, a), at(d, b))
	case bias: // there is no epilogue of doubles
		d.part(suffix[T](), c.At, from.At, m, n, 0, 0)
		d.multiply(p, at(d, c), at(d, c), at(d, a), at(d, b))
	default:
		d.multiply(p, at(d, c), at(d, from), at(d, a), at(d, b))
	}
}

// multiply makes a product in whatever type c is stored: cuBLASLt's results are of the operands' type or f32.
func multiply[C, T num.Stored](d *device, c Buf[C], a, b Buf[T], p cuda.GEMM, acc bool) {
	p.In, p.Out = value(suffix[T]()), value(suffix[C]())
	if p.In == p.Out || p.Out == cuda.ValueFloat32 {
		d.multiply(p, at(d, c), added(at(d, c), acc), at(d, a), at(d, b))
		return
	}
	p.Out = value(suffixComputed[T]())
	summed[C, T](d, c, d.wide(roomOf[C, T](c.N)), acc, func(to cuda.Pointer) {
		d.multiply(p, to, added(to, acc), at(d, a), at(d, b))
	})
}

// wide is memory for a product's result in f32, beside the workspace.
func (d *device) wide(bytes int) cuda.Pointer { return d.rooms(workspace, bytes)[1] }

// added is what a product is added to: what is there, or nothing.
func added(to cuda.Pointer, acc bool) cuda.Pointer {
	if acc {
		return to
	}
	return none
}

// multiply puts a product on the current stream; it is added to from, unless that is none.
func (d *device) multiply(p cuda.GEMM, c, from, a, b cuda.Pointer) {
	rt.Check(d.tryMultiply(p, c, from, a, b))
}

func (d *device) tryMultiply(p cuda.GEMM, c, from, a, b cuda.Pointer) error {
	m, err := d.multiplier(p)
	if err != nil {
		return err
	}
	beta, room, inPlace := 1.0, d.scratchMemory(workspace), from == c
	if from == none {
		beta, from = 0, c
	}
	p = kindOf(p)
	if d.step.begun == 0 && !inPlace && !d.timed[p] && os.Getenv(timeWays) == "1" {
		d.timed[p] = true
		return d.stream().TimeWays(m, ways, 1, beta, c, from, a, b, room)
	}
	return d.stream().GEMMOn(m, 1, beta, c, from, a, b, room)
}

// kindOf is a product wherever Bias, Aux and scales lie.
func kindOf(p cuda.GEMM) cuda.GEMM {
	p.Bias, p.Aux, p.ScaleA, p.ScaleB = min(p.Bias, 1), min(p.Aux, 1), min(p.ScaleA, 1), min(p.ScaleB, 1)
	return p
}

// ended is multiply with an epilogue, for which there is another way: it returns false, now and ever after, where the
// library refuses it. What else goes wrong is met again on that way.
func (d *device) ended(p cuda.GEMM, c, from, a, b cuda.Pointer) bool {
	kind := kindOf(p)
	if d.refused[kind] {
		return false
	}
	d.refused[kind] = d.tryMultiply(p, c, from, a, b) != nil
	return !d.refused[kind]
}

// timeWays is the variable of the environment that has the first step time several ways of computing each kind of
// product, and the others use the fastest. Two runs can then differ in rounding, and copies of what several ranks
// compute alike as well.
const (
	timeWays = "PLANC_TIME_PRODUCTS"
	ways     = 8
)

// multiplier is a product's, prepared when it is first wanted.
func (d *device) multiplier(p cuda.GEMM) (*cuda.GEMMPlan, error) {
	if m := d.products[p]; m != nil {
		return m, nil
	}
	m, err := d.blas.Prepare(p, workspace)
	if err == nil {
		d.products[p] = m
		d.atClose(m.Close)
	}
	return m, err
}

// value is a type of matrices by its suffix.
func value(types string) cuda.Value {
	return map[string]cuda.Value{"f32": cuda.ValueFloat32, "f64": cuda.ValueFloat64, "bf16": cuda.ValueBFloat16,
		"f16": cuda.ValueFloat16}[types]
}
