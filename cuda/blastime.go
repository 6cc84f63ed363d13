//go:build cuda && linux

package cuda

/*
#include "blaslt.h"
*/
import "C"

import "errors"

// timedRuns is how often a way of computing a product runs between two events, behind a run that is not timed.
const timedRuns = 4

// TimeWays does what [Stream.GEMMOn] does, in each of up to n ways of computing that the heuristic names, and keeps
// the one that took least time, for this product and all that are prepared of its kind from now on. The product runs
// often, so D overlaps neither C nor what it is made of; the stream is waited for. Which way is kept can differ from
// run to run, and so can the last bits of results.
func (s *Stream) TimeWays(m *GEMMPlan, n int, alpha, beta float64, d, c, a, b Pointer, workspace Memory) (err error) {
	algos, err := m.ways(workspace.Bytes, min(n, mostWays))
	if err != nil {
		return err
	}
	from, err := NewEvent(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := NewEvent(true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	best, least := m.c.algo, -1.0
	for _, algo := range algos {
		m.c.algo = algo
		for i := range timedRuns + 1 {
			if i == 1 {
				err = s.Record(from)
			}
			err = errors.Join(err, s.GEMMOn(m, alpha, beta, d, c, a, b, workspace))
			if err != nil {
				return err
			}
		}
		err = errors.Join(s.Record(to), to.Synchronize())
		if err != nil {
			return err
		}
		took, err := to.Since(from)
		if err != nil {
			return err
		}
		if least < 0 || took < least {
			best, least = algo, took
		}
	}
	m.c.algo = best
	m.of.chosen[m.kind(workspace.Bytes)] = choice{algo: best}
	return nil
}
