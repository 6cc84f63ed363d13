//go:build cuda && linux

package cuda

/*
#include "blaslt.h"
*/
import "C"

import "errors"

// timedRuns is the number of timed runs. One run before them is not timed.
const timedRuns = 4

// TimeAlgorithms computes the same as [Stream.GEMM] with each of up to n algorithms that the heuristic
// suggests. It keeps the fastest for this GEMM and for all of its kind that are prepared later, and returns its
// seconds. The GEMM runs several times, so D must not overlap its operands. The call waits for the stream. The fastest
// algorithm can differ from run to run, and so can the last bits of results.
func (s *Stream) TimeAlgorithms(m *GEMMPlan, n int, alpha, beta float64, x Matrices,
	workspace Memory) (seconds float64, err error) {
	algos, err := m.algorithms(workspace.Bytes, min(n, maxAlgorithms))
	if err != nil {
		return 0, err
	}
	best, least := m.c.algo, -1.0
	for _, algo := range algos {
		m.c.algo = algo
		took, err := s.Time(func() error { return s.GEMM(m, alpha, beta, x, workspace) })
		if err != nil {
			return 0, err
		}
		if least < 0 || took < least {
			best, least = algo, took
		}
	}
	m.c.algo = best
	m.gemms.chosen[kindOf(m.gemm, workspace.Bytes)] = choice{algo: best}
	return least, nil
}

// Time returns the mean seconds of the work that f enqueues on the stream. It calls f several times, and waits for the
// stream.
func (s *Stream) Time(f func() error) (seconds float64, err error) {
	from, err := NewEvent(true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := NewEvent(true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for i := range timedRuns + 1 {
		if i == 1 {
			err = s.Record(from)
		}
		err = errors.Join(err, f())
		if err != nil {
			return 0, err
		}
	}
	err = errors.Join(s.Record(to), to.Synchronize())
	if err != nil {
		return 0, err
	}
	seconds, err = to.Since(from)
	return seconds / timedRuns, err
}
