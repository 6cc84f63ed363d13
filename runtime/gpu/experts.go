//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// LimitChoices computes cpu.LimitChoices. The functions below have the names of their CPU counterparts,
// too.
func LimitChoices(r *rt.Rank, counts, index Buf[int32], sequences, choices, experts, capacity int) {
	d := deviceOf(r)
	d.call("limit", "i32", sequences*experts, choices, addr(d, counts), addr(d, index), sequences, choices, experts,
		capacity)
}

// Tally counts the choices of each expert.
func Tally[A num.Stored](r *rt.Rank, n Buf[A], index Buf[int32], groups, choices, experts int) {
	d := deviceOf(r)
	d.call("tally", suffix[A](), groups*experts, choices, addr(d, n), addr(d, index), groups, choices, experts)
}

// slotsOf launches the kernel that finds the slot of each choice in the experts' buffers and, inversely,
// the choice in each slot.
func (d *executor) slotsOf(index Buf[int32], s *cpu.SlotShape) (slot, from cuda.Pointer) {
	n, slots := s.Tokens*s.Choices, s.Experts*s.Slots
	room := d.scratchParts(4*n, 4*slots, 4*s.Experts)
	d.call("slots", "i32", s.Experts, n, room[0], room[1], room[2], addr(d, index), n, s.Experts, s.Slots, s.Round)
	return room[0], room[1]
}

// Dispatch copies tokens to their slots in the experts' buffers.
func Dispatch[T num.Stored](r *rt.Rank, y, x Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	_, from := d.slotsOf(index, &s)
	slots := s.Experts * s.Slots
	d.call("dispatch", suffix[T](), slots, s.Width, addr(d, y), addr(d, x), from, slots, s.Width, s.Choices)
}

// Combine adds the contents of the slots of a token's experts.
func Combine[T num.Stored](r *rt.Rank, y, x Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	slot, _ := d.slotsOf(index, &s)
	d.call("combine", suffix[T](), s.Tokens, s.Width, addr(d, y), addr(d, x), slot, s.Tokens, s.Width, s.Choices,
		s.Round > 0)
}

// Deal copies a number of each choice to its slot.
func Deal[T num.Stored](r *rt.Rank, y, w Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	_, from := d.slotsOf(index, &s)
	slots := s.Experts * s.Slots
	d.call("deal", suffix[T](), 1, slots, addr(d, y), addr(d, w), from, int64(slots))
}

// Collect copies the numbers in the slots back to their choices.
func Collect[T num.Stored](r *rt.Rank, w, y Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	slot, _ := d.slotsOf(index, &s)
	n := s.Tokens * s.Choices
	d.call("collect", suffix[T](), 1, n, addr(d, w), addr(d, y), slot, int64(n), s.Round > 0)
}

// Route computes cpu.Route. The functions below have the names of their CPU counterparts, too. bias may be
// empty.
func Route[T num.Stored](r *rt.Rank, w Buf[T], index Buf[int32], x, bias Buf[T], s cpu.RouteShape) {
	d := deviceOf(r)
	d.call("route", suffix[T](), s.Rows, s.Experts, addr(d, w), addr(d, index), addr(d, x), addr(d, bias),
		s.Rows, s.Experts, s.Choices, s.Sigmoid, s.Share, s.Scale, s.Eps, s.Groups, s.Best)
}

// RouteGrad computes the gradient of the scores.
func RouteGrad[T num.Stored](r *rt.Rank, dx, dw, x, w Buf[T], index Buf[int32], s cpu.RouteShape) {
	d := deviceOf(r)
	d.call("route_grad", suffix[T](), s.Rows, s.Experts, addr(d, dx), addr(d, dw), addr(d, x), addr(d, w),
		addr(d, index),
		s.Rows, s.Experts, s.Choices, s.Sigmoid, s.Share, s.Scale, s.Eps)
}

// Balance computes how far experts are from an even share of the tokens of each group.
func Balance[A, T num.Stored](r *rt.Rank, y Buf[A], x Buf[T], n Buf[A], s cpu.BalanceShape) {
	d := deviceOf(r)
	bytes, types := computeType[T]()
	rows := s.Groups * s.Tokens
	each := d.scratch(rows * bytes)
	d.call("balance", suffix[T](), rows, s.Experts, each, addr(d, x), addr(d, n), s.Groups, s.Tokens, s.Experts,
		s.Sigmoid, s.Scale)
	d.call("sum_cols", types, s.Groups, s.Tokens, addr(d, y), each, s.Groups, s.Tokens, false)
}

// BalanceGrad computes the gradient of the scores.
func BalanceGrad[A, T num.Stored](r *rt.Rank, dx Buf[T], dy Buf[A], x Buf[T], n Buf[A], s cpu.BalanceShape) {
	d := deviceOf(r)
	rows := s.Groups * s.Tokens
	d.call("balance_grad", suffix[T](), rows, s.Experts, addr(d, dx), addr(d, dy), addr(d, x), addr(d, n),
		s.Groups, s.Tokens,
		s.Experts, s.Sigmoid, s.Scale)
}

// AddAux adds x to the routers' auxiliary loss, unless the forward pass is being recomputed.
func AddAux[T num.Stored](r *rt.Rank, x Buf[T]) {
	if d := deviceOf(r); rt.IsCounting(r) {
		d.call("add_scalar", suffix[T](), 1, 1, d.step.result(auxSum), addr(d, x))
	}
}
