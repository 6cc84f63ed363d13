package cpu

import (
	"sync"

	"github.com/planc-dev/planc/runtime/cpu/team"
)

// sweep is a call of a kernel as a job. Its units are elements, rows or columns, and each part processes
// some of them. How many depends only on the sizes.
type sweep struct {
	do  func(s *sweep, lo, hi int) // processes units lo to hi-1
	n   int                        // units
	per int                        // units per part

	x    [5][]float32
	i    [4]int
	f    [3]float32
	ids  []int32
	adam [10]float32
	view GlobalView
	rows RopeRows
	key  uint64

	own  []float32 // of the call, for data that parts pass on; it grows as needed
	sums []float64 // the same, one for each part
}

// partElems is the minimum number of elements of a part: some microseconds of work, so that distributing it
// costs little.
const partElems = 1 << 14

var sweeps = sync.Pool{New: func() any { return new(sweep) }}

// sweepOf returns a sweep over n units of width elements from the pool. Its call method returns it.
func sweepOf(n, width int, do func(s *sweep, lo, hi int)) *sweep {
	s := sweeps.Get().(*sweep)
	s.do, s.n = do, n
	s.per = max((partElems+width-1)/max(width, 1), (n+team.MaxParts-1)/team.MaxParts, 1)
	return s
}

// aligned makes parts begin at multiples of unit.
func (s *sweep) aligned(unit int) *sweep {
	s.per = (s.per + unit - 1) / unit * unit
	return s
}

func (s *sweep) Part(i int) { s.do(s, i*s.per, min((i+1)*s.per, s.n)) }

func (s *sweep) parts() int { return (s.n + s.per - 1) / s.per }

// call runs all parts and returns the sweep to the pool.
func (s *sweep) call() {
	team.Run(s, s.parts())
	s.end()
}

// end returns the sweep to the pool without its arguments.
func (s *sweep) end() {
	s.x, s.ids = [5][]float32{}, nil
	sweeps.Put(s)
}

// room makes own n elements long, with undefined contents.
func (s *sweep) room(n int) []float32 {
	if cap(s.own) < n {
		s.own = make([]float32, n)
	}
	s.own = s.own[:n]
	return s.own
}
