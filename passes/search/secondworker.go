package search

import (
	"maps"
	"slices"
)

// A plan's choices are explained by questions that do not depend on each other. Where a space is large a second
// searcher, a twin, answers some of them on another core. What is found does not depend on who answers.

// minFamiliesToShare is how many families a space has at least for which there is a twin: fewer are gone through sooner than
// copied.
const minFamiliesToShare = 4096

// answerer is a searcher with the space that questions are about.
type answerer struct {
	*searcher
	space *planSpace
}

// answerers are those that share the questions about a space's choices.
func (s *searcher) answerers(sp *planSpace) []answerer {
	all := []answerer{{s, sp}}
	if s.precompiler.helpers > 0 && len(sp.families) >= minFamiliesToShare {
		t := s.secondWorker()
		all = append(all, answerer{t, sp.copyFor(t)})
	}
	return all
}

// answers are those about some choices of the best plan of a space.
func (s *searcher) answers(sp *planSpace, of []*choice, best Priced) []answer {
	by := s.answerers(sp)
	if len(by) > 1 {
		defer s.reserveCore()()
	}
	out := make([]answer, len(of))
	inParallel(len(of), by, func(i int, by answerer) { out[i] = by.ask(of[i], best) })
	var all []question
	for _, long := range []bool{true, false} { // what takes longest is begun first
		for i, a := range out {
			for j := range a.others {
				if long == (of[i].name == "recompute") {
					all = append(all, question{i, j})
				}
			}
		}
	}
	inParallel(len(all), by, func(i int, by answerer) {
		q := all[i]
		by.answer(of[q.choice], &out[q.choice], q.of, best)
	})
	inParallel(len(of), by, func(i int, by answerer) { by.compare(of[i], &out[i], best) })
	for _, o := range by[1:] {
		s.caches.merge(o.caches)
	}
	clear(s.freedSpaces)
	return out
}

// question is one about a choice, by its place among the choice's.
type question struct{ choice, of int }

// outside lets a searcher do with one other core less, until what it returns is called.
func (s *searcher) reserveCore() (end func()) {
	s.precompiler.helpers--
	return func() { s.precompiler.helpers++ }
}

// copyFor is a searcher that knows what this one knows, and shares nothing with it that either changes but jobs.
func (s *searcher) secondWorker() *searcher {
	t := *s
	t.caches, t.deviceWorks = s.caches.clone(), nil
	t.precompiler, t.watch = basePrecompiler{jobs: s.precompiler.jobs}, nil
	t.clusterCosts, t.zeroTimeCache = s.clusterCosts.clone(), maps.Clone(s.zeroTimeCache)
	t.shardingCache, t.orderCache, t.recomputeCache = maps.Clone(s.shardingCache), maps.Clone(s.orderCache), maps.Clone(s.recomputeCache)
	t.stateMemories, t.postPassCache, t.bucketPrices = map[stateMemoryKey][]stateMemory{}, map[postPassKey][]postPassBound{},
		map[bucketKey]*bucketPrice{}
	t.prices, t.pipelineEnds = map[priceKey]*price{}, maps.Clone(s.pipelineEnds)
	t.freedSpaces = map[string]*planSpace{}
	t.balancer, t.activationScratch, t.costScratch, t.triedScratch, t.boundScratch, t.queue = stageBalancer{}, activationMemory{}, nil, nil, nil, nil
	t.stageScratch, t.countScratch = nil, nil
	return &t
}

// copyFor is the space for a searcher's twin: with the bounds that are known, and nothing of what lies inside of families.
func (sp *planSpace) copyFor(t *searcher) *planSpace {
	out := &planSpace{problem: sp.problem, families: make([]*family, len(sp.families)), size: sp.size,
		ranks: slices.Clone(sp.ranks), raisedBounds: sp.raisedBounds}
	all, cells := make([]family, len(sp.families)), map[*degreeClass]*degreeClass{}
	for i, f := range sp.families {
		all[i] = *f
		all[i].familyDetails, all[i].fit, all[i].fitSought, all[i].class = nil, nil, false, f.class.copyFor(t, cells)
		out.families[i] = &all[i]
	}
	return out
}

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
		in.orders = nil // which remember messages
		in.blocks = [variantCount]*blocks{}
		for i := range in.layerTimes {
			in.layerTimes[i] = slices.Clone(in.layerTimes[i])
		}
		in.timeBounds = slices.Clone(in.timeBounds)
	}
	all[c] = &own
	return &own
}

// merge adds what others have found out of a model.
func (c *caches) merge(o *caches) {
	addTo(c.profiles, o.profiles)
	addTo(c.bases, o.bases)
	addTo(c.inFlight, o.inFlight)
	addTo(c.pipelineSplits, o.pipelineSplits)
	addTo(c.stateLayouts, o.stateLayouts)
	addTo(c.timetables, o.timetables)
	addTo(c.memoryFits, o.memoryFits)
	for d, w := range o.works {
		if c.works[d] == nil {
			c.works[d] = w
		}
		addTo(c.works[d], w)
	}
}

// addTo adds what a map does not have.
func addTo[K comparable, V any](to, from map[K]V) {
	for k, v := range from {
		if _, known := to[k]; !known {
			to[k] = v
		}
	}
}
