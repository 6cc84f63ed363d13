//go:build cuda && linux

package gpu

import (
	"unsafe"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// What brings tokens to experts are the loops of those names of package cpu. How many rounds they take is the host's to know: a
// program with experts waits for the device once a block, and is not captured.

// Route chooses experts for each row of x. bias may have no elements.
func Route[T, B num.Stored](r *rt.Rank, w Buf[T], index Buf[int32], x Buf[T], bias Buf[B], s cpu.RouteShape) {
	d := of(r)
	b := at(d, bias)
	if b != 0 && suffix[B]() != suffix[T]() {
		b = d.scratch(bias.N * size[T]())
		d.call("cast", suffix[T]()+"_"+suffix[B](), 1, bias.N, b, at(d, bias), int64(bias.N))
	}
	d.call("route", suffix[T](), s.Rows, s.Experts, at(d, w), at(d, index), at(d, x), b, s.Rows, s.Experts, s.Choices, s.Sigmoid, s.Share, s.Scale, s.Eps,
		s.Groups, s.Best)
}

// RouteGrad is the gradient of x.
func RouteGrad[T num.Stored](r *rt.Rank, dx, dw, x, w Buf[T], index Buf[int32], s cpu.RouteShape) {
	d := of(r)
	d.call("route_grad", suffix[T](), s.Rows, s.Experts, at(d, dx), at(d, dw), at(d, x), at(d, w), at(d, index), s.Rows, s.Experts, s.Choices, s.Sigmoid, s.Share,
		s.Scale, s.Eps)
}

// LimitChoices leaves an expert its first choices of each sequence.
func LimitChoices(r *rt.Rank, kept, index Buf[int32], sequences, choices, experts, most int) {
	d := of(r)
	d.call("limit", "i32", sequences*experts, choices, at(d, kept), at(d, index), sequences, choices, experts, most)
}

// Tally counts the choices that each expert got.
func Tally[A num.Stored](r *rt.Rank, n Buf[A], index Buf[int32], groups, choices, experts int) {
	d := of(r)
	d.call("tally", suffix[A](), groups*experts, choices, at(d, n), at(d, index), groups, choices, experts)
}

// Balance is how uneven choices are, for each group of tokens.
func Balance[A, T num.Stored](r *rt.Rank, y Buf[A], x Buf[T], n Buf[A], s cpu.BalanceShape) {
	d := of(r)
	each := d.scratch(s.Groups * s.Tokens * size[A]())
	d.call("balance", suffix[T](), s.Groups*s.Tokens, s.Experts, each, at(d, x), at(d, n), s.Groups, s.Tokens, s.Experts, s.Sigmoid, s.Scale)
	d.call("sum_cols", suffix[A](), s.Groups, s.Tokens, at(d, y), each, s.Groups, s.Tokens, false)
}

// BalanceGrad is the gradient of x.
func BalanceGrad[A, T num.Stored](r *rt.Rank, dx Buf[T], dy Buf[A], x Buf[T], n Buf[A], s cpu.BalanceShape) {
	d := of(r)
	d.call("balance_grad", suffix[T](), s.Groups*s.Tokens, s.Experts, at(d, dx), at(d, dy), at(d, x), at(d, n), s.Groups, s.Tokens, s.Experts, s.Sigmoid, s.Scale)
}

// AddAux adds to what routers are trained with beside the loss. What is run again for a backward pass counts once.
func AddAux[T num.Stored](r *rt.Rank, x Buf[T]) {
	if d := of(r); r.Counting() {
		d.call("add_scalar", suffix[T](), 1, 1, d.step.result(auxSum), at(d, x))
	}
}

// Rounds is how many rounds the experts of a block need for the tokens of all ranks of a group. It waits for the choices.
func Rounds(r *rt.Rank, group int, index Buf[int32], experts, places int) int {
	d := of(r)
	if d.choices == nil || len(d.choices.Slice()) < index.N*4 {
		d.choices = d.pinned(index.N * 4)
	}
	rt.Check(d.stream().Download(d.choices.At(0, int64(index.N*4)), bytesOf(d, index)))
	rt.Check(d.stream().Synchronize())
	return rt.Rounds(r, group, unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(d.choices.Slice()))), index.N), experts, places)
}

// pinned is memory of the host until the device is closed.
func (d *device) pinned(bytes int) *cuda.Pinned {
	p, err := cuda.AllocPinned(int64(bytes))
	rt.Check(err)
	d.atClose(p.Free)
	return &p
}

// placed finds where choices lie in this round: of each choice its place, and of each place its choice; -1 for none.
func (d *device) placed(index Buf[int32], s cpu.PlaceShape) (place, from cuda.Pointer) {
	choices := s.Tokens * s.Choices
	room := d.rooms(choices*4, s.Experts*s.Places*4, s.Experts*4)
	d.call("places", "i32", s.Experts, choices, room[0], room[1], room[2], at(d, index), choices, s.Experts, s.Places, s.Round)
	return room[0], room[1]
}

// Dispatch brings tokens to their places with experts.
func Dispatch[T num.Stored](r *rt.Rank, y, x Buf[T], index Buf[int32], s cpu.PlaceShape) {
	d := of(r)
	_, from := d.placed(index, s)
	places := s.Experts * s.Places
	d.call("dispatch", suffix[T](), places, s.Width, at(d, y), at(d, x), from, places, s.Width, s.Choices)
}

// Combine brings them back; rounds behind the first add.
func Combine[T num.Stored](r *rt.Rank, y, x Buf[T], index Buf[int32], s cpu.PlaceShape) {
	d := of(r)
	place, _ := d.placed(index, s)
	d.call("combine", suffix[T](), s.Tokens, s.Width, at(d, y), at(d, x), place, s.Tokens, s.Width, s.Choices, s.Round > 0)
}

// Deal brings a number of each choice to its place.
func Deal[T num.Stored](r *rt.Rank, y, w Buf[T], index Buf[int32], s cpu.PlaceShape) {
	d := of(r)
	_, from := d.placed(index, s)
	d.call("deal", suffix[T](), 1, s.Experts*s.Places, at(d, y), at(d, w), from, int64(s.Experts*s.Places))
}

// Collect brings it back.
func Collect[T num.Stored](r *rt.Rank, w, y Buf[T], index Buf[int32], s cpu.PlaceShape) {
	d := of(r)
	place, _ := d.placed(index, s)
	choices := s.Tokens * s.Choices
	d.call("collect", suffix[T](), 1, choices, at(d, w), at(d, y), place, int64(choices), s.Round > 0)
}
