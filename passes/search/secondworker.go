package search

import (
	"slices"

	"github.com/planc-dev/planc/passes/search/space"
)

// A plan's choices are explained by independent questions. If a space is large, a second searcher answers some of
// them on another core. The result does not depend on which one answers.

// minFamiliesToShare is the number of families from which on there is a second worker. A smaller space is searched
// sooner than copied.
const minFamiliesToShare = 4096

// answerer is a searcher with the space that questions are about.
type answerer struct {
	*searcher
	space *planSpace
}

// answerers returns the workers that share the questions about a space's choices.
func (s *searcher) answerers(sp *planSpace) []answerer {
	all := []answerer{{s, sp}}
	if s.precompiler.helpers > 0 && len(sp.families) >= minFamiliesToShare {
		t := s.secondWorker()
		all = append(all, answerer{t, sp.copyFor(t)})
	}
	return all
}

// answers returns the explanations of some choices of the best plan of a space.
func (s *searcher) answers(sp *planSpace, applying []*choice, best Priced) []answer {
	by := s.answerers(sp)
	if len(by) > 1 {
		defer s.reserveCore()()
	}
	out := make([]answer, len(applying))
	inParallel(len(applying), by, func(i int, by answerer) { out[i] = by.ask(applying[i], best) })
	var all []question
	for _, long := range []bool{true, false} { // the slowest questions first
		for i, a := range out {
			for j := range a.others {
				if long == (applying[i].name == "recompute") {
					all = append(all, question{i, j})
				}
			}
		}
	}
	inParallel(len(all), by, func(i int, by answerer) {
		q := all[i]
		by.answer(applying[q.choice], &out[q.choice], q.count, best)
	})
	inParallel(len(applying), by, func(i int, by answerer) { by.compare(applying[i], &out[i], best) })
	for _, o := range by[1:] {
		s.caches.merge(o.caches)
	}
	clear(s.freedSpaces)
	return out
}

// question is the index of a choice, and of one of its questions.
type question struct{ choice, count int }

// reserveCore makes a searcher use one helper less until end is called.
func (s *layerProfiler) reserveCore() (end func()) {
	s.precompiler.helpers--
	return func() { s.precompiler.helpers++ }
}

// secondWorker returns a searcher that knows what this one knows, and shares nothing that either changes except jobs.
func (s *searcher) secondWorker() *searcher {
	return &searcher{pricer: s.workerCopy(), searched: s.searched, window: s.window, maxFamilies: s.maxFamilies,
		freedSpaces: map[string]*planSpace{}, balancer: stageBalancer{model: s.problem.Model, dims: s.dims}}
}

// copyFor returns the space for a second worker: with the known bounds, but without the details of families.
func (sp *planSpace) copyFor(t *searcher) *planSpace {
	out := &planSpace{problem: sp.problem, families: make([]*family, len(sp.families)), size: sp.size,
		ranks: slices.Clone(sp.ranks), raisedBounds: sp.raisedBounds}
	all, cells := make([]family, len(sp.families)), map[*degreeClass]*degreeClass{}
	for i, f := range sp.families {
		all[i] = *f
		all[i].familyDetails, all[i].class = nil, f.class.copyFor(t, cells)
		out.families[i] = &all[i]
	}
	return out
}

// copyFor returns the class for a second worker.
func (c *degreeClass) copyFor(t *searcher, all map[*degreeClass]*degreeClass) *degreeClass {
	if c == nil || all[c] != nil {
		return all[c]
	}
	own := *c
	if c.routeSets != nil && *c.routeSets == nil {
		own.routeSets = nil
	}
	if c.base != nil {
		own.base = t.bases[c.base.key]
	}
	if c.degreeClassDetails != nil {
		in := *c.degreeClassDetails
		own.degreeClassDetails = &in
		in.blocks = [space.VariantCount]*blocks{}
		for i := range in.layerTimes {
			in.layerTimes[i] = slices.Clone(in.layerTimes[i])
		}
		in.timeBounds = slices.Clone(in.timeBounds)
	}
	all[c] = &own
	return &own
}

// merge adds what another worker has found about the model.
func (c *caches) merge(o *caches) {
	addTo(c.profiles, o.profiles)
	addTo(c.bases, o.bases)
	addTo(c.inFlight, o.inFlight)
	addTo(c.pipelineSplits, o.pipelineSplits)
	addTo(c.stateLayouts, o.stateLayouts)
	addTo(c.timetables, o.timetables)
	for d, w := range o.works {
		if c.works[d] == nil {
			c.works[d] = w
		}
		addTo(c.works[d], w)
	}
}

// addTo adds the entries that a map does not have.
func addTo[K comparable, V any](to, from map[K]V) {
	for k, v := range from {
		if _, known := to[k]; !known {
			to[k] = v
		}
	}
}
