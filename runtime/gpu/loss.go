//go:build cuda && linux

package gpu

import (
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// LogSumExp computes cpu.LogSumExp. The functions below have the names of their CPU counterparts, too. l
// has the compute type of T.
func LogSumExp[A, T num.Stored](r *rt.Rank, l Buf[A], x Buf[T], rows, cols, valid int) {
	d := deviceOf(r)
	d.call("logsumexp", suffix[T](), rows, cols, addr(d, l), addr(d, x), rows, cols, valid)
}

// LogSumExpGrad computes the gradient of x.
func LogSumExpGrad[A, T num.Stored](r *rt.Rank, dx Buf[T], dl Buf[A], x Buf[T], l Buf[A], rows, cols, valid int) {
	d := deviceOf(r)
	d.call("logsumexp_grad", suffix[T](), rows, cols, addr(d, dx), addr(d, dl), addr(d, x), addr(d, l), rows,
		cols, valid)
}

// Pick copies one element of each row.
func Pick[A, T num.Stored](r *rt.Rank, y Buf[A], x Buf[T], ids Buf[int32], rows, cols, lo, n int) {
	d := deviceOf(r)
	d.call("pick", suffix[T](), rows, cols, addr(d, y), addr(d, x), addr(d, ids), rows, cols, lo, n)
}

// PickGrad writes one element into each row.
func PickGrad[A, T num.Stored](r *rt.Rank, dx Buf[T], dy Buf[A], ids Buf[int32], rows, cols, lo, n int) {
	d := deviceOf(r)
	d.call("pick_grad", suffix[T](), rows, cols, addr(d, dx), addr(d, dy), addr(d, ids), rows, cols, lo, n)
}

// CrossEntropy computes each token's loss, and its gradient with respect to the logits.
func CrossEntropy[A, T num.Stored](r *rt.Rank, ce Buf[A], dx Buf[T], dl Buf[A], x Buf[T], ids Buf[int32],
	rows, cols, valid int) {
	d := deviceOf(r)
	d.call("cross_entropy", suffix[T](), rows, cols, addr(d, ce), addr(d, dx), addr(d, dl), addr(d, x),
		addr(d, ids), rows, cols, valid)
}

// InvCount computes the derivative of the step's loss with respect to a token's loss: the loss scale
// divided by the number of unmasked tokens.
func InvCount[T num.Stored](r *rt.Rank, y Buf[T]) {
	d := deviceOf(r)
	d.call("inv_count", suffix[T](), 1, 1, addr(d, y), d.step.value(lossScale), d.step.value(tokens))
}

// InvAux computes the derivative of the routers' auxiliary loss with respect to a sequence's part.
func InvAux[T num.Stored](r *rt.Rank, y Buf[T]) {
	d := deviceOf(r)
	d.call("inv_count", suffix[T](), 1, 1, addr(d, y), d.step.value(lossScale), d.step.value(sequences))
}

// AddLoss adds x to the step's loss.
func AddLoss[T num.Stored](r *rt.Rank, x Buf[T]) {
	d := deviceOf(r)
	d.call("add_scalar", suffix[T](), 1, 1, d.step.result(lossSum), addr(d, x))
}
