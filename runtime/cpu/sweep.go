package cpu

import "sync"

// A sweep is one call of a kernel as a job: its units are elements, rows or columns, and each part does some of them.
// How many follows from the sizes alone.
type sweep struct {
	do  func(s *sweep, lo, hi int) // the units lo to hi-1
	n   int                        // units
	per int                        // units of a part

	x    [5][]float32
	i    [4]int
	f    [3]float32
	ids  []int32
	adam [10]float32
	view GlobalView
	rows RopeRows
	key  uint64

	own  []float32 // of the call, for what parts hand on; it grows to what is needed
	sums []float64 // likewise, one for each part
}

// partElems is what a part has at least, so that handing it out costs little beside it: some microseconds' work.
const partElems = 1 << 14

var sweeps = sync.Pool{New: func() any { return new(sweep) }}

// sweepOf takes a sweep over n units of width elements from the pool; its call ends it.
func sweepOf(n, width int, do func(s *sweep, lo, hi int)) *sweep {
	s := sweeps.Get().(*sweep)
	s.do, s.n = do, n
	s.per = max((partElems+width-1)/max(width, 1), (n+maxParts-1)/maxParts, 1)
	return s
}

// aligned makes parts begin at multiples of unit.
func (s *sweep) aligned(unit int) *sweep {
	s.per = (s.per + unit - 1) / unit * unit
	return s
}

func (s *sweep) part(i int) { s.do(s, i*s.per, min((i+1)*s.per, s.n)) }

func (s *sweep) parts() int { return (s.n + s.per - 1) / s.per }

// call does all parts and gives the sweep back.
func (s *sweep) call() {
	run(s, s.parts())
	s.end()
}

// end gives the sweep back without what it was called with.
func (s *sweep) end() {
	s.x, s.ids = [5][]float32{}, nil
	sweeps.Put(s)
}

// room makes own n elements long, whatever they hold.
func (s *sweep) room(n int) []float32 {
	if cap(s.own) < n {
		s.own = make([]float32, n)
	}
	s.own = s.own[:n]
	return s.own
}
