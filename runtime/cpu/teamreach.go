package cpu

import "sync/atomic"

// A reach is the parts of a job that are a thread's and not yet taken, alone in its cache lines: the job's number (32
// bits), the end (16), the first (16). The number is there so that none takes a part of a later job as one of the job
// that it looked at.
type reach struct {
	state atomic.Uint64
	_     [2*lineBytes - 8]byte
}

// set makes it parts first to end-1.
func (r *reach) set(number uint32, first, end int) {
	r.state.Store(uint64(number)<<32 | uint64(end)<<16 | uint64(first))
}

// left tells whether a part can be taken.
func (r *reach) left() bool {
	s := r.state.Load()
	return s&0xffff < s>>16&0xffff
}

// take takes a part: the first, or the last.
func (r *reach) take(first bool) (part int, ok bool) {
	for {
		s := r.state.Load()
		lo, end := s&0xffff, s>>16&0xffff
		if lo >= end {
			return 0, false
		}
		part, next := lo, s+1
		if !first {
			part, next = end-1, s-1<<16
		}
		if r.state.CompareAndSwap(s, next) {
			return int(part), true
		}
	}
}
