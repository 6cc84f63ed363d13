package team

import (
	"sync"

	"github.com/planc-dev/planc/runtime/cpu/asm"
)

// Pool keeps returned objects, about as many as were in use at a time. A core gets back what it returned,
// which its caches may still hold: overwriting another core's packed operands would first transfer each
// line from there.
type Pool[T any] struct {
	shelves [poolShelves]shelf[T]
}

// poolShelves is a power of 2. If there are more cores, they share shelves.
const poolShelves = 64

// shelf holds what one core returned, in separate cache lines.
type shelf[T any] struct {
	mu   sync.Mutex
	n    int
	few  [4]*T // the first n; enough for what a core uses at a time, so that a steady step allocates nothing
	more []*T
	_    [asm.LineBytes]byte
}

// Get returns an object with undefined contents, which Put returns to the pool.
func (p *Pool[T]) Get() *T {
	own := asm.Core()
	for i := range uint32(poolShelves) { // its own shelf first, then the others
		if x := p.shelves[(own+i)%poolShelves].get(); x != nil {
			return x
		}
	}
	return new(T)
}

// Put returns an object to the pool.
func (p *Pool[T]) Put(x *T) { p.shelves[asm.Core()%poolShelves].put(x) }

func (s *shelf[T]) get() (x *T) {
	s.mu.Lock()
	if n := len(s.more); n > 0 {
		x, s.more = s.more[n-1], s.more[:n-1]
	} else if s.n > 0 {
		s.n--
		x = s.few[s.n]
	}
	s.mu.Unlock()
	return x
}

func (s *shelf[T]) put(x *T) {
	s.mu.Lock()
	if s.n < len(s.few) {
		s.few[s.n] = x
		s.n++
	} else {
		s.more = append(s.more, x)
	}
	s.mu.Unlock()
}
