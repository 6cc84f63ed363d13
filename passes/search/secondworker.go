package search

import (
	"slices"
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

// secondWorker returns a searcher that knows what this one knows, and shares nothing that either changes except jobs.
func (s *searcher) secondWorker() *searcher {
	return &searcher{pricer: s.workerCopy(), searched: s.searched, window: s.window, maxFamilies: s.maxFamilies,
		freedSpaces: map[string]*planSpace{}, balancer: stageBalancer{model: s.problem.Model, dims: s.dims}}
}

// copyFor returns the space for a second worker: with the known bounds, but without the details of families.
func (sp *planSpace) copyFor(t *searcher) *planSpace {
	out := &planSpace{problem: sp.problem, families: make([]*spaceFamily, len(sp.families)), size: sp.size,
		ranks: slices.Clone(sp.ranks), raisedBounds: sp.raisedBounds}
	all, cells := make([]spaceFamily, len(sp.families)), map[*degreeClass]*degreeClass{}
	for i, f := range sp.families {
		all[i] = *f
		all[i].familyDetails, all[i].branches = nil, nil
		all[i].class = f.class.copyFor(&t.layerProfiler, cells)
		out.families[i] = &all[i]
	}
	return out
}
