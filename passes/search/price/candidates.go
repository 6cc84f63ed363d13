package price

import (
	"iter"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search/space"
)

// BoundedCandidate is a candidate with the smallest recompute count with which it fits. If none fits, it has the count
// that exceeds the memory least.
type BoundedCandidate struct {
	Candidate
	OverBytes int               // bytes by which it exceeds the memory
	Floor     costmodel.Seconds // lower bound of its step; 0 if it does not fit
}

// Candidates returns the plans of a family with one recompute choice: one for each sharding and axis order. They point
// to the choice.
func (s *stepBounder) Candidates(p *space.Problem, f *Family, a *space.RecomputeChoice) iter.Seq[BoundedCandidate] {
	return func(yield func(BoundedCandidate) bool) {
		shardings, orders := s.Shardings(p, &f.Plan), f.axisOrders()
		for i := range shardings {
			shard := &shardings[i]
			n, over := s.minRecomputed(f, a, s.shardingCost(f, *shard).stateMemory, f.splitsBackward && shard.Zero >= 2)
			for j := range orders {
				c := BoundedCandidate{Candidate: Candidate{Family: f, Sharding: shard, Recompute: a, N: n,
					Order: &orders[j]}, OverBytes: over}
				if over == 0 {
					c.Floor = s.stepBound(f, *shard, a, n, &orders[j])
				}
				if !yield(c) {
					return
				}
			}
		}
	}
}
