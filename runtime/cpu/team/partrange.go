package team

import (
	"sync/atomic"

	"github.com/planc-dev/planc/runtime/cpu/asm"
)

// partRange holds the parts of a job that belong to a thread and are not yet taken, in separate cache
// lines: the job's number (32 bits), the end (16), the first (16). The number prevents a thread from taking
// a part of a later job for one of the job that it looked at.
type partRange struct {
	state atomic.Uint64
	_     [2*asm.LineBytes - 8]byte
}

// set sets the range to parts first to end-1.
func (r *partRange) set(number uint32, first, end int) {
	r.state.Store(uint64(number)<<32 | uint64(end)<<16 | uint64(first))
}

// left reports whether a part can be taken.
func (r *partRange) left() bool {
	s := r.state.Load()
	return s&0xffff < s>>16&0xffff
}

// take takes the first or the last part.
func (r *partRange) take(first bool) (part int, ok bool) {
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
