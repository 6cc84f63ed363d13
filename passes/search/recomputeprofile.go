package search

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// withoutRecompute returns the key with nothing recomputed.
func (k profileKey) withoutRecompute() profileKey {
	k.recompute, k.split = "none", false
	return k
}

// recomputing returns the base of a key whose blocks are recomputed: that of the key without recomputation, plus the
// recomputed variants. It shares the functions of that base, which no longer change.
func (s *layerProfiler) recomputing(k profileKey, plain *baseProfile) *baseProfile {
	plan := plain.prog.Plan
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeSplit = k.recompute, 1, k.split
	prog, err := passes.Recomputed(s.problem.Model, plan, plain.prog)
	if err != nil {
		panic(fmt.Sprintf("search: a legal plan does not compile: %v: %v", plan, err))
	}
	p := &profile{prog: prog, batchRows: plain.batchRows, logits: plain.logits, castScratch: plain.castScratch,
		plain: plain.profile}
	b := *plain
	b.profile, b.key, b.sizes, b.byMicro, b.workByDevice = p, k, nil, map[int]*blocks{},
		map[deviceMicro]costmodel.Seconds{}
	var again []*ir.Segment
	var profiles []*segmentProfile
	p.segs = make([]segmentProfile, len(prog.Model.Variants()))
	for i, seg := range prog.Model.Variants() {
		of := slices.IndexFunc(plain.prog.Model.Segments, func(o *ir.Segment) bool { return o.Name == seg.Name })
		if of >= 0 {
			p.segs[i] = plain.segs[of].cloneFor(seg)
			continue
		}
		p.segs[i] = profileVariant(prog, seg)
		p.segs[i].recomputes = true
		again, profiles = append(again, seg), append(profiles, &p.segs[i])
	}
	s.replaceByEngine(p, k)
	p.classifyComms()
	lines := s.measureSlopes(prog, again, profiles)
	for i := range p.segs {
		if p.segs[i].recomputes {
			b.sizes, lines = append(b.sizes, lines[0]), lines[1:]
			continue
		}
		b.sizes = append(b.sizes, plain.sizes[len(b.sizes)-(len(again)-len(lines))])
	}
	if !s.problem.PricedEngine().Own {
		b.useEngineSizes()
	}
	return &b
}

// cloneFor returns a copy of a variant's profile for another program that shares its functions. Collectives are
// copied, because each profile numbers their kinds.
func (p *segmentProfile) cloneFor(variant *ir.Segment) segmentProfile {
	own := *p
	own.variant = variant
	for _, f := range own.functions() {
		f.comms = slices.Clone(f.comms)
	}
	return own
}
