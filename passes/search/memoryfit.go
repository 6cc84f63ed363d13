package search

import "slices"

// What a family's plans need of memory does not depend on how fast devices and networks are. What one question found
// out of it serves the next about the same model.

// memoryFitKey is what tells apart families whose plans need different memory, and devices that have different room.
type memoryFitKey struct {
	frame             *pipelineSplit
	of                *profile // of layers where nothing is recomputed
	dp, micro, micros int32
	schedule          uint8
	cpu               bool
	capacity          int
}

// memoryFit is what is known of whether a family's plans fit.
type memoryFit struct {
	minBytes int          // see [searcher.minBytes]; 0: not known
	branches [4]branchFit // by [again.index]
}

// branchFit are n and over of a branch.
type branchFit struct {
	known        bool
	n, overBytes int
}

// fitPins are the keys that say which of a family's plans there are: where one is pinned, nothing is shared.
var fitPins = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split"}

// countScratch tells whether what is known of a family of a problem holds of others that are alike. Other engines need memory
// that depends on more.
func (p *Problem) sharesFits() bool {
	return p.engine().Own && (len(p.Pins) == 0 || !slices.ContainsFunc(fitPins, func(key string) bool {
		return p.Pins[key] != nil
	}))
}

// memoryFitKey is a family's; ok is false where nothing is shared, or its frame was never met.
func (s *searcher) memoryFitKey(p *Problem, f *family) (k memoryFitKey, ok bool) {
	if !p.sharesFits() {
		return k, false
	}
	k = memoryFitKey{of: s.baseOf(f.class, &f.plan).profile, dp: int32(f.plan.DP), micro: int32(f.plan.MicroBatch),
		micros:   int32(f.plan.MicroBatches),
		schedule: uint8(slices.Index(schedules, f.plan.Schedule)), cpu: s.cpu, capacity: s.arenaCapacity}
	if f.familyDetails != nil && f.split != nil {
		k.frame = f.split
	} else {
		k.frame = s.pipelineSplits[pipelineSplitKeyOf(&f.plan)]
	}
	return k, k.frame != nil
}

// memoryFit is what is known of whether a family's plans fit, with room for more; nil where nothing is shared.
func (s *searcher) memoryFit(p *Problem, f *family) *memoryFit {
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

// clone are fittings of their own.
func copyFits(all map[memoryFitKey]*memoryFit) map[memoryFitKey]*memoryFit {
	out, room := make(map[memoryFitKey]*memoryFit, len(all)), make([]memoryFit, 0, len(all))
	for k, v := range all {
		room = append(room, *v)
		out[k] = &room[len(room)-1]
	}
	return out
}

// index numbers choices of what is recomputed where no pin fixes one.
func (a *recomputeChoice) index() int {
	if a.grouped {
		return 3
	}
	return a.variant(false)
}

// cannotFit tells whether it is known already that none of a family's plans fits.
func (s *searcher) cannotFit(p *Problem, f *family) bool {
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
	agains := s.recomputeChoices(p, &f.plan, slices.Max(f.counts))
	return !slices.ContainsFunc(agains, func(a recomputeChoice) bool {
		b := &known.branches[a.index()]
		return !b.known || b.overBytes == 0
	})
}
