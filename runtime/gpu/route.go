//go:build cuda && linux

package gpu

import (
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// Route computes cpu.Route. The functions below have the names of their CPU counterparts, too. bias may be
// empty.
func Route[T num.Stored](r *rt.Rank, w Buf[T], index Buf[int32], x, bias Buf[T], s cpu.RouteShape) {
	d := deviceOf(r)
	d.call("route", suffix[T](), s.Rows, s.Experts, addressOf(d, w), addressOf(d, index), addressOf(d, x), addressOf(d, bias),
		s.Rows, s.Experts, s.Choices, s.Sigmoid, s.Share, s.Scale, s.Eps, s.Groups, s.Best)
}

// RouteGrad computes the gradient of the scores.
func RouteGrad[T num.Stored](r *rt.Rank, dx, dw, x, w Buf[T], index Buf[int32], s cpu.RouteShape) {
	d := deviceOf(r)
	d.call("route_grad", suffix[T](), s.Rows, s.Experts, addressOf(d, dx), addressOf(d, dw), addressOf(d, x), addressOf(d, w), addressOf(d, index),
		s.Rows, s.Experts, s.Choices, s.Sigmoid, s.Share, s.Scale, s.Eps)
}

// Balance computes how far experts are from an even share of the tokens of each group.
func Balance[A, T num.Stored](r *rt.Rank, y Buf[A], x Buf[T], n Buf[A], s cpu.BalanceShape) {
	d := deviceOf(r)
	bytes, types := computeType[T]()
	rows := s.Groups * s.Tokens
	each := d.scratch(rows * bytes)
	d.call("balance", suffix[T](), rows, s.Experts, each, addressOf(d, x), addressOf(d, n), s.Groups, s.Tokens, s.Experts,
		s.Sigmoid, s.Scale)
	d.call("sum_cols", types, s.Groups, s.Tokens, addressOf(d, y), each, s.Groups, s.Tokens, false)
}

// BalanceGrad computes the gradient of the scores.
func BalanceGrad[A, T num.Stored](r *rt.Rank, dx Buf[T], dy Buf[A], x Buf[T], n Buf[A], s cpu.BalanceShape) {
	d := deviceOf(r)
	rows := s.Groups * s.Tokens
	d.call("balance_grad", suffix[T](), rows, s.Experts, addressOf(d, dx), addressOf(d, dy), addressOf(d, x), addressOf(d, n), s.Groups, s.Tokens,
		s.Experts, s.Sigmoid, s.Scale)
}

// AddAux adds x to the routers' auxiliary loss, unless the forward pass is being recomputed.
func AddAux[T num.Stored](r *rt.Rank, x Buf[T]) {
	if d := deviceOf(r); rt.IsCounting(r) {
		d.call("add_scalar", suffix[T](), 1, 1, d.step.result(auxSum), addressOf(d, x))
	}
}
