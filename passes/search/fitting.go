package search

import "slices"

// What a family's plans need of memory does not depend on how fast devices and networks are. What one question found
// out of it serves the next about the same model.

// fittingKey is what tells apart families whose plans need different memory, and devices that have different room.
type fittingKey struct {
	frame             *frame
	of                *profile // of layers where nothing is recomputed
	dp, micro, micros int32
	schedule          uint8
	cpu               bool
	capacity          int
}

// fitting is what is known of whether a family's plans fit.
type fitting struct {
	least    int            // see [searcher.least]; 0: not known
	branches [4]branchNeeds // by [again.way]
}

// branchNeeds are n and over of a branch.
type branchNeeds struct {
	known   bool
	n, over int
}

// fixing are the keys that say which of a family's plans there are: where one is pinned, nothing is shared.
var fixing = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split"}

// shares tells whether what is known of a family of a problem holds of others that are alike. Other engines need memory
// that depends on more.
func (p *Problem) shares() bool {
	return p.engine().Own && (len(p.Pins) == 0 || !slices.ContainsFunc(fixing, func(key string) bool {
		return p.Pins[key] != nil
	}))
}

// fittingKey is a family's; ok is false where nothing is shared, or its frame was never met.
func (s *searcher) fittingKey(p *Problem, f *family) (k fittingKey, ok bool) {
	if !p.shares() {
		return k, false
	}
	k = fittingKey{of: s.baseOf(f.cell, &f.plan).profile, dp: int32(f.plan.DP), micro: int32(f.plan.MicroBatch),
		micros:   int32(f.plan.MicroBatches),
		schedule: uint8(slices.Index(schedules, f.plan.Schedule)), cpu: s.cpu, capacity: s.capacity}
	if f.inside != nil && f.frame != nil {
		k.frame = f.frame
	} else {
		k.frame = s.frames[frameKeyOf(&f.plan)]
	}
	return k, k.frame != nil
}

// fittingOf is what is known of whether a family's plans fit, with room for more; nil where nothing is shared.
func (s *searcher) fittingOf(p *Problem, f *family) *fitting {
	if f.fitting == nil {
		k, ok := s.fittingKey(p, f)
		if !ok {
			return nil
		}
		f.fitting = s.fittings[k]
		if f.fitting == nil {
			f.fitting = &fitting{}
			s.fittings[k] = f.fitting
		}
	}
	return f.fitting
}

// copied are fittings of their own.
func copied(all map[fittingKey]*fitting) map[fittingKey]*fitting {
	out, room := make(map[fittingKey]*fitting, len(all)), make([]fitting, 0, len(all))
	for k, v := range all {
		room = append(room, *v)
		out[k] = &room[len(room)-1]
	}
	return out
}

// way numbers choices of what is recomputed where no pin fixes one.
func (a *again) way() int {
	if a.groups {
		return 3
	}
	return a.variant(false)
}

// hopeless tells whether it is known already that none of a family's plans fits.
func (s *searcher) hopeless(p *Problem, f *family) bool {
	if f.fitting == nil && !f.sought {
		f.sought = true
		if k, ok := s.fittingKey(p, f); ok {
			f.fitting = s.fittings[k]
		}
	}
	known := f.fitting
	if known == nil {
		return false
	}
	if known.least > s.capacity {
		return true
	}
	agains := s.agains(p, &f.plan, slices.Max(f.counts))
	return !slices.ContainsFunc(agains, func(a again) bool {
		b := &known.branches[a.way()]
		return !b.known || b.over == 0
	})
}
