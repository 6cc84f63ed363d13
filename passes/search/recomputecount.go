package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// triedCount is a recompute count of a member with its closed-form time, and its simulated time once known.
type triedCount struct {
	n           int
	floor, time costmodel.Seconds
}

// solveRecompute returns a member with its fastest recompute count, and of equally fast ones the smallest. This is
// the smallest count that fits, except if recomputed blocks are faster (see layerTimeBounds). Then counts are
// simulated in the order of their closed forms, until one exceeds the fastest or the limit. ok is false if a bound
// says that the member exceeds the limit.
func (s *pricer) solveRecompute(m *member, limit costmodel.Seconds) (best candidate, ok bool) {
	best = m.candidate
	if !s.recomputeIsFaster(m) {
		return best, s.simulatedBound(&best) <= limit
	}
	all := s.triedScratch[:0]
	for n := m.n; n <= m.recompute.MaxN; n++ {
		p := m.candidate
		p.n = n
		if q := s.quote(&p); q.bytes <= s.arenaCapacity {
			all = append(all, triedCount{n: n, floor: q.time})
		}
	}
	s.triedScratch = all
	slices.SortStableFunc(all, func(a, b triedCount) int { return cmp.Compare(a.floor, b.floor) })
	done := 0
	for i := range all {
		if all[i].floor > limit {
			break
		}
		p := m.candidate
		p.n = all[i].n
		if s.simulatedBound(&p) > limit {
			continue
		}
		all[done] = triedCount{n: p.n, time: s.price(&p).time}
		limit = min(limit, all[done].time*(1+tie))
		done++
	}
	for _, t := range all[:done] {
		if t.time <= limit && (!ok || t.n < best.n) {
			best.n, ok = t.n, true
		}
	}
	return best, ok
}
