//go:build cuda && linux

package gpu

import (
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// LogSumExp is the loop of that name of package cpu, as are those that follow. l is of the type that T is computed
// with.
func LogSumExp[A, T num.Stored](r *rt.Rank, l Buf[A], x Buf[T], rows, cols, valid int) {
	d := of(r)
	d.call("logsumexp", suffix[T](), rows, cols, at(d, l), at(d, x), rows, cols, valid)
}

// LogSumExpGrad is the gradient of x.
func LogSumExpGrad[A, T num.Stored](r *rt.Rank, dx Buf[T], dl Buf[A], x Buf[T], l Buf[A], rows, cols, valid int) {
	d := of(r)
	d.call("logsumexp_grad", suffix[T](), rows, cols, at(d, dx), at(d, dl), at(d, x), at(d, l), rows, cols, valid)
}

// Pick takes one element of each row.
func Pick[A, T num.Stored](r *rt.Rank, y Buf[A], x Buf[T], ids Buf[int32], rows, cols, lo, n int) {
	d := of(r)
	d.call("pick", suffix[T](), rows, cols, at(d, y), at(d, x), at(d, ids), rows, cols, lo, n)
}

// PickGrad puts one element into each row.
func PickGrad[A, T num.Stored](r *rt.Rank, dx Buf[T], dy Buf[A], ids Buf[int32], rows, cols, lo, n int) {
	d := of(r)
	d.call("pick_grad", suffix[T](), rows, cols, at(d, dx), at(d, dy), at(d, ids), rows, cols, lo, n)
}

// CrossEntropy is a token's loss, and its gradient by the logits.
func CrossEntropy[A, T num.Stored](r *rt.Rank, ce Buf[A], dx Buf[T], dl Buf[A], x Buf[T], ids Buf[int32],
	rows, cols int) {
	d := of(r)
	d.call("cross_entropy", suffix[T](), rows, cols, at(d, ce), at(d, dx), at(d, dl), at(d, x), at(d, ids), rows, cols)
}

// InvCount is the gradient of the step's loss by a token's: the loss scale over the tokens that count.
func InvCount[T num.Stored](r *rt.Rank, y Buf[T]) {
	d := of(r)
	d.call("inv_count", suffix[T](), 1, 1, at(d, y), d.step.value(lossScale), d.step.value(tokens))
}

// InvAux is that of what routers are trained with by a sequence's part.
func InvAux[T num.Stored](r *rt.Rank, y Buf[T]) {
	d := of(r)
	d.call("inv_count", suffix[T](), 1, 1, at(d, y), d.step.value(lossScale), d.step.value(sequences))
}

// AddLoss adds to the step's loss.
func AddLoss[T num.Stored](r *rt.Rank, x Buf[T]) {
	d := of(r)
	d.call("add_scalar", suffix[T](), 1, 1, d.step.result(lossSum), at(d, x))
}
