package kernels

import (
	"fmt"
	"slices"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime/cpu"
)

var placings = []cpu.SlotShape{
	{Tokens: 1, Choices: 1, Experts: 1, Slots: 1, Width: 1},
	{Tokens: 40, Choices: 2, Experts: 5, Slots: 9, Width: 33},
	{Tokens: 300, Choices: 3, Experts: 4, Slots: 64, Width: 8, Round: 1},
	{Tokens: 300, Choices: 3, Experts: 4, Slots: 200, Width: 16, Round: 2},
	{Tokens: 7, Choices: 2, Experts: 3, Slots: 10, Width: 1040},
}

// chosen returns choices of experts, some more frequent than others, and some without an expert.
func chosen(n, experts int) []int32 {
	index := make([]int32, n)
	for i := range index {
		index[i] = int32(i * i % 31 % experts)
		if i%11 == 3 {
			index[i] = -1 - index[i]
		}
	}
	return index
}

func TestExperts(t *testing.T) {
	inEachType(t, "dispatch", func(b bench) {
		for _, s := range placings {
			b.moves(s)
		}
	})
}

// moves checks copying tokens to slots and back.
func (b bench) moves(s cpu.SlotShape) {
	k, what := cpu.Table[float64](), fmt.Sprint(s)
	n, places := s.Tokens*s.Choices, s.Experts*s.Slots
	index := chosen(n, s.Experts)
	garbage := func(n int) *emulate.Buffer { return ints(slices.Repeat([]int32{1 << 30}, n)) }
	place, from, count := garbage(n), garbage(places), garbage(s.Experts)
	b.run("slots", s.Experts, n, place, from, count, ints(index), n, s.Experts, s.Slots, s.Round)

	x, want := b.draw(s.Tokens*s.Width, "x"), make([]float64, places*s.Width)
	k.Dispatch(want, x, index, s)
	y := b.buffer(nans(len(want)))
	b.run("dispatch", places, s.Width, y, b.buffer(x), from, places, s.Width, s.Choices)
	b.same(b.T, "dispatch"+what, b.values(y), want)

	far, back := b.draw(places*s.Width, "far"), b.draw(s.Tokens*s.Width, "sum")
	sum := b.buffer(back)
	k.Combine(back, far, index, s)
	b.run("combine", s.Tokens, s.Width, sum, b.buffer(far), place, s.Tokens, s.Width, s.Choices, flag(s.Round > 0))
	b.near(b.T, "combine"+what, b.values(sum), back, float64(s.Choices), 3*float64(s.Choices))

	w, dealt := b.draw(n, "w"), make([]float64, places)
	k.Deal(dealt, w, index, s)
	d := b.buffer(nans(places))
	b.run("deal", 1, places, d, b.buffer(w), from, int64(places))
	b.same(b.T, "deal"+what, b.values(d), dealt)

	c := b.buffer(w)
	k.Collect(w, far[:places], index, s)
	b.run("collect", 1, n, c, b.buffer(far[:places]), place, int64(n), flag(s.Round > 0))
	b.same(b.T, "collect"+what, b.values(c), w)

	if s.Round == 0 {
		b.counts(s, index, count)
	}
}

// counts checks the counts of choices.
func (b bench) counts(s cpu.SlotShape, index []int32, count *emulate.Buffer) {
	want := make([]int32, s.Experts)
	for _, e := range index {
		if e >= 0 {
			want[e]++
		}
	}
	if got := intsOf(count); !slices.Equal(got, want) {
		b.Errorf("counts of %v are %v, want %v", s, got, want)
	}
	out := ints([]int32{-9})
	b.run("rounds", 1, s.Experts, out, count, s.Experts, s.Slots)
	if got, want := intsOf(out)[0], cpu.Rounds(index, s.Experts, s.Slots); int(got) != want {
		b.Errorf("rounds of %v are %d, want %d", s, got, want)
	}
}

func TestTallyAndLimit(t *testing.T) {
	inEachType(t, "tally", func(b bench) {
		for _, s := range [][4]int{{1, 1, 1, 1}, {3, 50, 7, 4}, {2, 777, 5, 100}} {
			groups, choices, experts, capacity := s[0], s[1], s[2], s[3]
			index := chosen(groups*choices, experts)
			for i, e := range index {
				index[i] = max(e, -1-e)
			}
			want := make([]float64, groups*experts)
			cpu.Table[float64]().Tally(want, index, groups, choices, experts)
			n := b.buffer(nans(len(want)))
			b.run("tally", len(want), choices, n, ints(index), groups, choices, experts)
			b.same(b.T, fmt.Sprint("tally", s), b.values(n), want)

			saved := make([]int32, len(index))
			cpu.LimitChoices(saved, index, groups, choices, experts, capacity)
			got := ints(slices.Repeat([]int32{1 << 30}, len(index)))
			b.run("limit", len(want), choices, got, ints(index), groups, choices, experts, capacity)
			if !slices.Equal(intsOf(got), saved) {
				b.Errorf("limit of %v is %v, want %v", s, intsOf(got), saved)
			}
		}
	})
}
