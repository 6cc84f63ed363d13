package search

import (
	"slices"

	"github.com/planc-dev/planc/passes/search/space"
)

// The memory of a family's plans does not depend on the speed of devices and networks. So questions about the same
// model share these results.

// memoryFitKey identifies families whose plans need the same memory, on devices with the same capacity.
type memoryFitKey struct {
	frame             *pipelineSplit
	of                *profile // profile of layers without recomputation
	dp, micro, micros int32
	schedule          uint8
	cpu               bool
	capacity          int
}

// memoryFit is what is known about whether a family's plans fit.
type memoryFit struct {
	minBytes int          // see [searcher.minBytes]; 0 if not known
	branches [4]branchFit // by [space.RecomputeChoice.Index]
}

// branchFit is the results of [searcher.branchFit].
type branchFit struct {
	known        bool
	n, overBytes int
}

// fitPins are the keys that restrict which plans of a family exist. If one is pinned, nothing is shared.
var fitPins = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split"}

// sharesFits reports whether memory results of one family hold for all families with the same key. The memory of
// other engines depends on more.
func sharesFits(p *Problem) bool {
	return p.PricedEngine().Own && (len(p.Pins) == 0 || !slices.ContainsFunc(fitPins, func(key string) bool {
		return p.Pins[key] != nil
	}))
}

// memoryFitKey returns the key of a family. ok is false if nothing is shared, or if its pipeline split was never
// computed.
func (s *memoryPricer) memoryFitKey(p *Problem, f *family) (k memoryFitKey, ok bool) {
	if !sharesFits(p) {
		return k, false
	}
	k = memoryFitKey{of: s.baseOf(f.class, &f.plan).profile, dp: int32(f.plan.DP), micro: int32(f.plan.MicroBatch),
		micros:   int32(f.plan.MicroBatches),
		schedule: uint8(slices.Index(space.Schedules, f.plan.Schedule)), cpu: s.cpu, capacity: s.arenaCapacity}
	if f.familyDetails != nil && f.split != nil {
		k.frame = f.split
	} else {
		k.frame = s.pipelineSplits[pipelineSplitKeyOf(&f.plan)]
	}
	return k, k.frame != nil
}

// memoryFit returns the shared results of a family, a new entry if there are none; nil if nothing is shared.
func (s *memoryPricer) memoryFit(p *Problem, f *family) *memoryFit {
	if f.fit == nil {
		k, ok := s.memoryFitKey(p, f)
		if !ok {
			return nil
		}
		f.fit = s.memoryFits[k]
		if f.fit == nil {
			f.fit = &memoryFit{}
			s.memoryFits[k] = f.fit
		}
	}
	return f.fit
}

// copyFits returns a copy of the results that can change independently.
func copyFits(all map[memoryFitKey]*memoryFit) map[memoryFitKey]*memoryFit {
	out, room := make(map[memoryFitKey]*memoryFit, len(all)), make([]memoryFit, 0, len(all))
	for k, v := range all {
		room = append(room, *v)
		out[k] = &room[len(room)-1]
	}
	return out
}

// cannotFit reports whether it is already known that none of a family's plans fits.
func (s *memoryPricer) cannotFit(p *Problem, f *family) bool {
	if f.fit == nil && !f.fitSought {
		f.fitSought = true
		if k, ok := s.memoryFitKey(p, f); ok {
			f.fit = s.memoryFits[k]
		}
	}
	known := f.fit
	if known == nil {
		return false
	}
	if known.minBytes > s.arenaCapacity {
		return true
	}
	agains := s.RecomputeChoices(p, &f.plan, slices.Max(f.counts))
	return !slices.ContainsFunc(agains, func(a space.RecomputeChoice) bool {
		b := &known.branches[a.Index()]
		return !b.known || b.overBytes == 0
	})
}
