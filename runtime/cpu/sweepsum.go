package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/team"
	"github.com/planc-dev/planc/runtime/vec"
)

// Sums over many rows process bands of whole rows. Summing a few columns at a time would read each row's
// part from a different page, which halves the memory bandwidth.
const (
	bandRows       = 16 // rows of which all columns are summed before the next rows
	partRowsSummed = 64 // minimum rows of a part, which has its own sums; these are summed in the order of the parts
	mostSums       = 64 // maximum number of parts: their sums are as many rows in addition to the tensors
)

// summing returns a sweep over rows whose parts sum columns, each into its summed. own begins with two
// numbers for each row, for do to use.
func summing(rows, cols int, do func(s *sweep, lo, hi int)) *sweep {
	s := sweepOf(rows, cols, do)
	each := (rows + mostSums - 1) / mostSums
	s.per, s.i[0] = max(partRowsSummed, (each+bandRows-1)/bandRows*bandRows), cols
	s.room(2*rows + s.parts()*cols)
	return s
}

// summed returns the zeroed sums of the part that begins with row lo.
func (s *sweep) summed(lo int) []float32 {
	to := s.own[2*s.n+lo/s.per*s.i[0]:][:s.i[0]]
	clear(to)
	return to
}

// callSumming runs all parts, adds their sums to out, and returns the sweep to the pool.
func (s *sweep) callSumming(out []float32) {
	team.Run(s, s.parts())
	vec.Now().SumRows(out, s.own[2*s.n:], s.parts(), s.i[0])
	s.end()
}
