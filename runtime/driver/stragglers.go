package driver

import (
	"fmt"
	"slices"
	"time"
)

// A straggler is a rank that is persistently slower than the others of its stage, which have the same work. All ranks
// wait for it in every step.
const (
	stragglerExcess = 0.15             // busy time above the median of the others; the ranks of a CPU differ by less
	stragglerSteps  = 20               // minimum number of steps of a window, of which the median counts
	stragglerTime   = 10 * time.Second // minimum time of a window
	stragglerLimit  = 512              // steps of a window that are stored
)

// stragglers finds ranks that are slow over whole windows of steps.
type stragglers struct {
	excess  [][]float64 // of each rank in the steps of the window
	seconds float64     // of the window's steps
	steps   int
	first   int    // first step of the window
	slow    []bool // ranks that were slow in the last window
	found   int    // reports of this run
}

// add adds a step and reports whether a window has ended.
func (s *stragglers) add(step int, seconds float64, excess []float64) bool {
	if s.excess == nil {
		s.excess, s.slow = make([][]float64, len(excess)), make([]bool, len(excess))
		for i := range s.excess {
			s.excess[i] = make([]float64, 0, stragglerLimit)
		}
	}
	if s.steps == 0 {
		s.first, s.seconds = step, 0
	}
	for i, x := range excess {
		if len(s.excess[i]) < stragglerLimit {
			s.excess[i] = append(s.excess[i], x)
		}
	}
	s.steps++
	s.seconds += seconds
	return s.steps >= stragglerSteps && s.seconds >= stragglerTime.Seconds()
}

// end ends a window and returns for each rank its median excess.
func (s *stragglers) end() []float64 {
	medians := make([]float64, len(s.excess))
	for i, all := range s.excess {
		slices.Sort(all)
		medians[i] = all[len(all)/2]
		s.excess[i] = all[:0]
	}
	s.steps = 0
	return medians
}

// watchStragglers reports ranks that become slow, and those that are no longer slow.
func (r *recorder) watchStragglers(step int, seconds float64) {
	s := &r.stragglers
	if r.parts == nil || len(r.parts.excess) < 2 || !s.add(step, seconds, r.parts.excess) {
		return
	}
	first := s.first
	for id, excess := range s.end() {
		isSlow := excess > stragglerExcess
		switch {
		case isSlow && !s.slow[id]:
			detail := fmt.Sprintf("rank %d: %.0f %% slower than the median of its stage, steps %d to %d", id,
				100*excess, first, step)
			r.metrics.Event(step, "straggler", detail)
			s.found++
			if s.found&(s.found-1) == 0 { // the first, second, fourth …, because ranks may alternate
				r.report.Warn(detail+"; all ranks wait for it in every step. --trace-steps shows where", "step",
					step, "rank", id, "slower_by", excess)
			}
		case !isSlow && s.slow[id]:
			r.metrics.Event(step, "straggler_end", fmt.Sprintf("rank %d, steps %d to %d", id, first, step))
		}
		s.slow[id] = isSlow
	}
}
