//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/gpu/module"
	"github.com/planc-dev/planc/runtime/num"
)

// Attention computes cpu.Attention, with cuDNN if it supports the shape (attentiondnn.go). In a step of
// ring attention that accumulates in a wider type than the operands', everything is computed in the wider
// type.
func Attention[A, O, T num.Stored](r *rt.Rank, o Buf[O], lse Buf[A], q, k, v Buf[T], s cpu.AttentionShape) {
	d := deviceOf(r)
	shape := kernels.AttentionShapeKeyed(&s)
	if types := suffix[T](); suffix[O]() == types {
		if suffix[A]() == "f32" && d.launchDNNAttention(&s, types, false,
			cuda.AttentionOperands{cuda.AttentionO: addr(d, o),
				cuda.AttentionL: addr(d, lse), cuda.AttentionQ: addr(d, q), cuda.AttentionK: addr(d, k),
				cuda.AttentionV: addr(d, v)}) {
			return
		}
		d.launchAttention(kernels.Attention(&s, types), types, addr(d, o), addr(d, lse), addr(d, q), addr(d, k),
			addr(d, v), shape)
		return
	}
	types := suffix[A]()
	x := d.scratchParts(4*q.N, 4*k.N, 4*v.N)
	castToF32(d, x[0], q)
	castToF32(d, x[1], k)
	castToF32(d, x[2], v)
	d.launchAttention(kernels.Attention(&s, types), types, addr(d, o), addr(d, lse), x[0], x[1], x[2], shape)
}

// AttentionGrad computes the gradient of Attention: first the row sums of the queries, then the gradient of
// the queries, then those of keys and values.
func AttentionGrad[A, Q, K, T num.Stored](r *rt.Rank, dq Buf[Q], dk, dv Buf[K], do, q, k, v, o Buf[T], lse Buf[A],
	s cpu.AttentionShape) {
	d := deviceOf(r)
	types := suffix[T]()
	if suffix[Q]() == types && suffix[K]() == types {
		if suffix[A]() == "f32" && d.launchDNNAttention(&s, types, true, cuda.AttentionOperands{addr(d, o),
			addr(d, lse),
			addr(d, q), addr(d, k), addr(d, v), addr(d, do), addr(d, dq), addr(d, dk), addr(d, dv)}) {
			return
		}
		bytes, _ := computeType[T]()
		g := attentionGrad{d, types, addr(d, do), addr(d, q), addr(d, k), addr(d, v), addr(d, o), addr(d, lse),
			d.scratch(lse.N * bytes), lse.N}
		g.run(&s, addr(d, dq), addr(d, dk), addr(d, dv))
		return
	}
	wide := suffix[A]()
	x := d.scratchParts(4*do.N, 4*q.N, 4*k.N, 4*v.N, 4*o.N, 4*lse.N, 4*dq.N, 4*dk.N, 4*dv.N)
	for i, b := range []Buf[T]{do, q, k, v, o} {
		castToF32(d, x[i], b)
	}
	g := attentionGrad{d, wide, x[0], x[1], x[2], x[3], x[4], addr(d, lse), x[5], lse.N}
	to := castTarget(d, x[6], dq, wide)
	toK, toV := castTarget(d, x[7], dk, wide), castTarget(d, x[8], dv, wide)
	if s.More && to == x[6] {
		castToF32(d, to, dq)
	}
	g.run(&s, to, toK, toV)
	castBack(d, dq, to)
	castBack(d, dk, toK)
	castBack(d, dv, toV)
}

// attentionGrad holds the operands of the gradient's launches. All have one type.
type attentionGrad struct {
	d                        *device
	types                    string
	do, q, k, v, o, lse, dot cuda.Pointer
	rows                     int
}

// run enqueues the launches on the current stream.
func (g *attentionGrad) run(s *cpu.AttentionShape, dq, dk, dv cuda.Pointer) {
	shape, steps := kernels.AttentionShapeKeyed(s), kernels.AttentionGrad(s, g.types)
	g.d.launchAttention(steps[0], g.types, g.dot, g.do, g.o, int64(g.rows), s.VDim)
	g.d.launchAttention(steps[1], g.types, dq, g.do, g.q, g.k, g.v, g.lse, g.dot, shape)
	g.d.launchAttention(steps[2], g.types, dk, dv, g.do, g.q, g.k, g.v, g.lse, g.dot, shape)
}

// launchAttention enqueues one launch of attention on the current stream.
func (d *executor) launchAttention(s kernels.Step, types string, args ...any) {
	d.launch(s.Kernel+"_"+types, s.Launch, module.AddArguments(d.args(), s.Kernel, args))
}

// castToF32 casts x to f32 at an address.
func castToF32[T num.Stored](d *device, to cuda.Pointer, x Buf[T]) {
	d.call("cast", "f32_"+suffix[T](), 1, x.N, to, addr(d, x), int64(x.N))
}

// castTarget returns where a result that ends up in x is computed: x itself if it has the type, otherwise
// the scratch memory.
func castTarget[T num.Stored](d *device, room cuda.Pointer, x Buf[T], types string) cuda.Pointer {
	if suffix[T]() == types {
		return addr(d, x)
	}
	return room
}

// castBack rounds a result into x if it was computed in scratch memory.
func castBack[T num.Stored](d *device, x Buf[T], from cuda.Pointer) {
	if from != addr(d, x) {
		d.call("cast", suffix[T]()+"_f32", 1, x.N, addr(d, x), from, int64(x.N))
	}
}
