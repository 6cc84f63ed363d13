//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// Attention is the loop of that name of package cpu.
func Attention[A, T num.Stored](r *rt.Rank, o Buf[T], lse Buf[A], q, k, v Buf[T], s cpu.AttentionShape) {
	d := of(r)
	d.attend(kernels.Attention(&s, suffix[T]()), suffix[T](), at(d, o), at(d, lse), at(d, q), at(d, k), at(d, v), kernels.AttentionShape(&s))
}

// AttentionGrad is likewise its gradient: in turn of the queries' sums, of the queries, of keys and values.
func AttentionGrad[A, T num.Stored](r *rt.Rank, dq, dk, dv, do, q, k, v, o Buf[T], lse Buf[A], s cpu.AttentionShape) {
	d := of(r)
	types, shape := suffix[T](), kernels.AttentionShape(&s)
	bytes, _ := computed[T]()
	dot := d.scratch(lse.N * bytes)
	steps := kernels.AttentionGrad(&s, types)
	d.attend(steps[0], types, dot, at(d, do), at(d, o), int64(lse.N), s.VDim)
	d.attend(steps[1], types, at(d, dq), at(d, do), at(d, q), at(d, k), at(d, v), at(d, lse), dot, shape)
	d.attend(steps[2], types, at(d, dk), at(d, dv), at(d, do), at(d, q), at(d, k), at(d, v), at(d, lse), dot, shape)
}

// attend puts one launch of a call of attention on the current stream.
func (d *device) attend(s kernels.Step, types string, args ...any) {
	d.launch(s.Kernel+"_"+types, s.Launch, arguments(d.args(), s.Kernel, args))
}
