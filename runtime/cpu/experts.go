package cpu

import (
	"unsafe"

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
	most := 1
	for _, e := range index {
		if e < 0 {
			continue
		}
		count[e]++
		most = max(most, count[e])
	}
	return (most + places - 1) / places
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

// runGap is the number of zero rows that do not end a run: a matmul of few rows costs more than they do.
const runGap = 8

// nextRun returns the next run of nonzero rows of x, from row at on. Its first and last rows are nonzero.
func nextRun[F Float](x []F, at, rows, cols int) (from, to int) {
	for from = at; from < rows && zeroes(x[from*cols:][:cols]); from++ {
	}
	for i := from; i < rows && i < max(to, from)+runGap; i++ {
		if !zeroes(x[i*cols:][:cols]) {
			to = i + 1
		}
	}
	return from, to
}

func zeroes[F Float](x []F) bool {
	at := unsafe.Pointer(unsafe.SliceData(x))
	if unsafe.Sizeof(*new(F)) == 4 {
		return noBits(unsafe.Slice((*uint32)(at), len(x)))
	}
	return noBits(unsafe.Slice((*uint64)(at), len(x)))
}

// noBits reports whether all numbers are 0, ignoring signs. It checks eight at once, because empty slots
// are scanned in each matmul.
func noBits[T uint32 | uint64](x []T) bool {
	for len(x) >= 8 {
		v := (*[8]T)(x)
		if (v[0]|v[1]|v[2]|v[3]|v[4]|v[5]|v[6]|v[7])<<1 != 0 {
			return false
		}
		x = x[8:]
	}
	for _, v := range x {
		if v<<1 != 0 {
			return false
		}
	}
	return true
}
