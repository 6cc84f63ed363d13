package comm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// maxSpins is how often a waiting rank yields before it sleeps.
const maxSpins = 1000

// channel is the shared state of a group on one stream: a barrier, and the slices that members publish.
type channel struct {
	world *World
	name  string
	ranks []int

	round   atomic.Uint64 // completed barriers
	arrived atomic.Int32
	mu      sync.Mutex // guards seat.asleep and the end of a round
	seats   []seat
}

// seat is the state of one member. Padding keeps members on different cache lines.
type seat struct {
	meetings atomic.Uint64 // barriers that the member has reached
	wake     chan struct{}
	timer    *time.Timer
	asleep   bool

	op   string // published by the member, valid between two barriers
	data unsafe.Pointer
	n    int // elements of data
	elem int // bytes of one
	_    [64]byte
}

func newChannel(w *World, name string, ranks []int) *channel {
	c := &channel{world: w, name: name, ranks: ranks, seats: make([]seat, len(ranks))}
	for i := range c.seats {
		s := &c.seats[i]
		s.wake = make(chan struct{}, 1)
		s.timer = time.NewTimer(time.Hour)
		s.timer.Stop()
	}
	return c
}

// meet is the barrier: it returns when all members have reached it, a rank has failed, or the timeout has passed.
func (c *channel) meet(me int, op string) error {
	if c.world.failed.Load() {
		return c.lost(me, op)
	}
	s := &c.seats[me]
	round := c.round.Load()
	s.meetings.Add(1)
	if int(c.arrived.Add(1)) == len(c.seats) {
		c.finish()
		return nil
	}
	for range maxSpins {
		if c.round.Load() != round {
			return nil
		}
		if c.world.failed.Load() {
			return c.lost(me, op)
		}
		runtime.Gosched()
	}
	return c.sleep(me, op, round)
}

// finish ends the round and wakes the sleeping members.
func (c *channel) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrived.Store(0)
	c.round.Add(1)
	for i := range c.seats {
		if s := &c.seats[i]; s.asleep {
			s.asleep = false
			select {
			case s.wake <- struct{}{}:
			default: // the sleeper has left a failed world
			}
		}
	}
}

// sleep waits for the end of the round without using a processor.
func (c *channel) sleep(me int, op string, round uint64) error {
	s := &c.seats[me]
	c.mu.Lock()
	if c.round.Load() != round {
		c.mu.Unlock()
		return nil
	}
	s.asleep = true
	c.mu.Unlock()
	s.timer.Reset(c.world.timeout)
	defer s.timer.Stop()
	select {
	case <-s.wake:
		return nil
	case <-c.world.done:
		return c.lost(me, op)
	case <-s.timer.C:
		err := c.late(me, op)
		c.world.Fail(err)
		return err
	}
}

func (c *channel) lost(me int, op string) error {
	return &Lost{Rank: c.ranks[me], Group: c.name, Op: op, Cause: c.world.Err()}
}

// late returns the error that names the members that have not reached this barrier.
func (c *channel) late(me int, op string) error {
	e := &Timeout{Rank: c.ranks[me], Group: c.name, Op: op, After: c.world.timeout}
	here := c.seats[me].meetings.Load()
	for i := range c.seats {
		if c.seats[i].meetings.Load() < here {
			e.Absent = append(e.Absent, c.ranks[i])
		}
	}
	return e
}
