package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// triedCount is a number of a member with its closed form, and its time once it was simulated.
type triedCount struct {
	n           int
	floor, time costmodel.Seconds
}

// solveRecompute is a member with the number with which it is fastest: the least that fits, but where blocks are faster if they
// are recomputed, see floorCosts. Of equal numbers it is the least. Numbers are simulated in the order of their closed
// forms, until one is slower than the fastest, or than the limit. ok is false where a bound says that the member takes
// longer than that.
func (s *searcher) solveRecompute(m *member, limit costmodel.Seconds) (best candidate, ok bool) {
	best = m.candidate
	if !s.recomputeIsFaster(m) {
		return best, s.simulatedBound(&best) <= limit
	}
	all := s.triedScratch[:0]
	for n := m.n; n <= m.recompute.maxN; n++ {
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
