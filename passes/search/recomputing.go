package search

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// plain is the key with nothing done again.
func (k profileKey) plain() profileKey {
	k.again, k.split = "none", false
	return k
}

// recomputing is the base of a key whose blocks are recomputed: that of the plain key, with what such blocks do again.
// It shares the plain one's functions, which nobody changes any more.
func (s *searcher) recomputing(k profileKey, plain *base) *base {
	plan := plain.prog.Plan
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeSplit = k.again, 1, k.split
	prog, err := passes.Recomputed(s.problem.Model, plan, plain.prog)
	if err != nil {
		panic(fmt.Sprintf("search: a legal plan does not compile: %v: %v", plan, err))
	}
	p := &profile{prog: prog, rows: plain.rows, logits: plain.logits, wide: plain.wide, plain: plain.profile}
	b := *plain
	b.profile, b.key, b.lines, b.byMicro, b.works = p, k, nil, map[int]*blocks{}, map[deviceMicro]costmodel.Seconds{}
	var again []*ir.Segment
	var profiles []*segmentProfile
	p.segs = make([]segmentProfile, len(prog.Model.Variants()))
	for i, seg := range prog.Model.Variants() {
		of := slices.IndexFunc(plain.prog.Model.Segments, func(o *ir.Segment) bool { return o.Name == seg.Name })
		if of >= 0 {
			p.segs[i] = plain.segs[of].copied(seg)
			continue
		}
		p.segs[i] = scanned(prog, seg)
		p.segs[i].again = true
		again, profiles = append(again, seg), append(profiles, &p.segs[i])
	}
	s.foreign(p, k)
	p.sort()
	lines := s.slopes(prog, again, profiles)
	for i := range p.segs {
		if p.segs[i].again {
			b.lines, lines = append(b.lines, lines[0]), lines[1:]
			continue
		}
		b.lines = append(b.lines, plain.lines[len(b.lines)-(len(again)-len(lines))])
	}
	if !s.problem.engine().Own {
		b.foreignLines()
	}
	return &b
}

// copied is a profile of a variant for another program that shares its functions: with collectives of its own, since
// their kinds are numbered for each profile.
func (p *segmentProfile) copied(variant *ir.Segment) segmentProfile {
	own := *p
	own.variant = variant
	for _, f := range own.functions() {
		f.comms = slices.Clone(f.comms)
	}
	return own
}
