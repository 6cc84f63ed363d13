package cpu

import "sync"

// A pool keeps what it once lent: no more than were lent at a time, but for races. What a core gave back it gets again,
// as its caches may still have it: to write over another core's packed operands, each line would first have to come
// from there.
type pool[T any] struct {
	shelves [poolShelves]shelf[T]
}

// poolShelves is a power of 2; cores share a shelf where there are more.
const poolShelves = 64

// A shelf is what one core gave back, in cache lines of its own.
type shelf[T any] struct {
	mu   sync.Mutex
	n    int
	few  [4]*T // the first n; there is room for what a core uses at a time, so that a steady step allocates nothing
	more []*T
	_    [lineBytes]byte
}

func (p *pool[T]) get() *T {
	own := core()
	for i := range uint32(poolShelves) { // its own first, then any
		if x := p.shelves[(own+i)%poolShelves].get(); x != nil {
			return x
		}
	}
	return new(T)
}

func (p *pool[T]) put(x *T) { p.shelves[core()%poolShelves].put(x) }

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
