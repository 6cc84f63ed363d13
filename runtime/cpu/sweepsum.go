package cpu

import "github.com/planc-dev/planc/runtime/vec"

// Sums down many rows go by bands of them, whole rows at a time: down a few columns, each row's part would lie in a
// page of its own, which memory gives at half the rate.
const (
	bandRows       = 16 // of which all columns are summed before the next rows'
	partRowsSummed = 64 // of a part, at least, which has sums of its own; these are summed in the order of the parts
	mostSums       = 64 // parts, at most: their sums are so many rows beside the tensors
)

// summing is a sweep over rows whose parts sum columns, each in its summed. own begins with two numbers for each row,
// for do to use.
func summing(rows, cols int, do func(s *sweep, lo, hi int)) *sweep {
	s := sweepOf(rows, cols, do)
	each := (rows + mostSums - 1) / mostSums
	s.per, s.i[0] = max(partRowsSummed, (each+bandRows-1)/bandRows*bandRows), cols
	s.room(2*rows + s.parts()*cols)
	return s
}

// summed is where the part that begins with row lo sums: zeros.
func (s *sweep) summed(lo int) []float32 {
	to := s.own[2*s.n+lo/s.per*s.i[0]:][:s.i[0]]
	clear(to)
	return to
}

// callSumming does all parts, adds their sums to out, and gives the sweep back.
func (s *sweep) callSumming(out []float32) {
	run(s, s.parts())
	vec.Now().SumRows(out, s.own[2*s.n:], s.parts(), s.i[0])
	s.end()
}
