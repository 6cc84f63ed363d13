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
func LimitChoices(r *rt.Rank, kept, index Buf[int32], sequences, choices, experts, most int) {
	d := deviceOf(r)
	d.call("limit", "i32", sequences*experts, choices, addressOf(d, kept), addressOf(d, index), sequences, choices, experts, most)
}

// Tally counts the choices of each expert.
func Tally[A num.Stored](r *rt.Rank, n Buf[A], index Buf[int32], groups, choices, experts int) {
	d := deviceOf(r)
	d.call("tally", suffix[A](), groups*experts, choices, addressOf(d, n), addressOf(d, index), groups, choices, experts)
}

// slotsOf launches the kernel that finds the slot of each choice in the experts' buffers and, inversely,
// the choice in each slot.
func (d *device) slotsOf(index Buf[int32], s *cpu.SlotShape) (slot, from cuda.Pointer) {
	n, slots := s.Tokens*s.Choices, s.Experts*s.Slots
	room := d.scratchParts(4*n, 4*slots, 4*s.Experts)
	d.call("slots", "i32", s.Experts, n, room[0], room[1], room[2], addressOf(d, index), n, s.Experts, s.Slots, s.Round)
	return room[0], room[1]
}

// Dispatch copies tokens to their slots in the experts' buffers.
func Dispatch[T num.Stored](r *rt.Rank, y, x Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	_, from := d.slotsOf(index, &s)
	slots := s.Experts * s.Slots
	d.call("dispatch", suffix[T](), slots, s.Width, addressOf(d, y), addressOf(d, x), from, slots, s.Width, s.Choices)
}

// Combine adds the contents of the slots of a token's experts.
func Combine[T num.Stored](r *rt.Rank, y, x Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	slot, _ := d.slotsOf(index, &s)
	d.call("combine", suffix[T](), s.Tokens, s.Width, addressOf(d, y), addressOf(d, x), slot, s.Tokens, s.Width, s.Choices,
		s.Round > 0)
}

// Deal copies a number of each choice to its slot.
func Deal[T num.Stored](r *rt.Rank, y, w Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	_, from := d.slotsOf(index, &s)
	slots := s.Experts * s.Slots
	d.call("deal", suffix[T](), 1, slots, addressOf(d, y), addressOf(d, w), from, int64(slots))
}

// Collect copies the numbers in the slots back to their choices.
func Collect[T num.Stored](r *rt.Rank, w, y Buf[T], index Buf[int32], s cpu.SlotShape) {
	d := deviceOf(r)
	slot, _ := d.slotsOf(index, &s)
	n := s.Tokens * s.Choices
	d.call("collect", suffix[T](), 1, n, addressOf(d, w), addressOf(d, y), slot, int64(n), s.Round > 0)
}
