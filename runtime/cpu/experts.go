package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// SlotShape describes the experts' buffers of tokens. Each expert has Slots slots, filled in the order of
// the tokens and of their choices. A round holds the next Slots choices of each expert; the first round is
// number 0. A choice with a negative expert has no slot.
type SlotShape struct {
	Tokens, Choices, Experts, Slots, Width, Round int
}

// each calls do for each choice that has a slot in this round, with the index of the choice and of the
// slot.
func (s *SlotShape) each(index []int32, do func(choice, place int)) {
	var fixed [maxExperts]int
	count := fixed[:]
	if s.Experts > maxExperts {
		count = make([]int, s.Experts)
	}
	first := s.Round * s.Slots
	for i, e := range index[:s.Tokens*s.Choices] {
		if e < 0 {
			continue
		}
		at := count[e] - first
		count[e]++
		if uint(at) < uint(s.Slots) {
			do(i, int(e)*s.Slots+at)
		}
	}
}

// Rounds returns how many rounds the choices need with the given number of slots per expert. It is at least
// one, because every rank takes part in the first.
func Rounds(index []int32, experts, places int) int {
	var fixed [maxExperts]int
	count := fixed[:]
	if experts > maxExperts {
		count = make([]int, experts)
	}
	rounds := 1
	for _, e := range index {
		if e < 0 {
			continue
		}
		count[e]++
		rounds = max(rounds, count[e])
	}
	return (rounds + places - 1) / places
}

func dispatch[F Float](y, x []F, index []int32, s SlotShape) {
	clear(y)
	s.each(index, func(choice, place int) {
		copy(y[place*s.Width:][:s.Width], x[choice/s.Choices*s.Width:][:s.Width])
	})
}

func combine[F Float](y, x []F, index []int32, s SlotShape) {
	if s.Round == 0 {
		clear(y)
	}
	s.each(index, func(choice, place int) {
		elem.Add(y[choice/s.Choices*s.Width:][:s.Width], x[place*s.Width:][:s.Width])
	})
}

func deal[F Float](y, w []F, index []int32, s SlotShape) {
	clear(y)
	s.each(index, func(choice, place int) { y[place] = w[choice] })
}

func collect[F Float](w, y []F, index []int32, s SlotShape) {
	if s.Round == 0 {
		clear(w)
	}
	s.each(index, func(choice, place int) { w[choice] = y[place] })
}

// SumRowsEach computes
//
//	for g := range groups { SumRows(out[g], x[g], rows, cols, acc) }
func (t *Kernels[F]) SumRowsEach(out, x []F, groups, rows, cols int, acc bool) {
	for g := range groups {
		t.SumRows(out[g*cols:][:cols], x[g*rows*cols:][:rows*cols], rows, cols, acc)
	}
}
