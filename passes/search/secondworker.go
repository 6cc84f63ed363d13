package search

import (
	"slices"

	"github.com/planc-dev/planc/passes/search/price"
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
	if s.Helpers() > 0 && len(sp.families) >= minFamiliesToShare {
		t := s.secondWorker()
		all = append(all, answerer{t, sp.copyFor(t)})
	}
	return all
}

// answers returns the explanations of some choices of the best plan of a space.
func (s *searcher) answers(sp *planSpace, applying []*choice, best Priced) []answer {
	by := s.answerers(sp)
	if len(by) > 1 {
		defer s.limitHelpers(s.Helpers() - 1)()
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
		s.Merge(o.Pricer)
	}
	clear(s.freedSpaces)
	return out
}

// limitHelpers lets the pricer use up to n other cores until end is called, because the rest have searchers of their
// own. So there are never more workers than cores; the searchers of a [Series] have no helpers.
func (s *searcher) limitHelpers(n int) (end func()) {
	before := s.Helpers()
	s.UseHelpers(n)
	return func() { s.UseHelpers(before) }
}

// question is the index of a choice, and of one of its questions.
type question struct{ choice, count int }

// secondWorker returns a searcher that knows what this one knows, and shares nothing that either changes except jobs.
func (s *searcher) secondWorker() *searcher {
	t := searcherOf(s.problem, s.Fork())
	t.searched, t.window, t.maxFamilies = s.searched, s.window, s.maxFamilies
	return t
}

// copyFor returns the space for a second worker: with the known bounds, but without the details of families.
func (sp *planSpace) copyFor(t *searcher) *planSpace {
	out := &planSpace{problem: sp.problem, families: make([]*spaceFamily, len(sp.families)), size: sp.size,
		ranks: slices.Clone(sp.ranks), raisedBounds: sp.raisedBounds}
	all, classes := make([]spaceFamily, len(sp.families)), map[*price.DegreeClass]*price.DegreeClass{}
	for i, f := range sp.families {
		all[i] = *f
		all[i].Family, all[i].branches = t.CopyFamily(&f.Family, classes), nil
		out.families[i] = &all[i]
	}
	return out
}
