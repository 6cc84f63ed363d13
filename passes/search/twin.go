package search

import (
	"maps"
	"slices"
)

// A plan's choices are explained by questions that do not depend on each other. Where a space is large a second
// searcher, a twin, answers some of them on another core. What is found does not depend on who answers.

// worthTwin is how many families a space has at least for which there is a twin: fewer are gone through sooner than
// copied.
const worthTwin = 4096

// answerer is a searcher with the space that questions are about.
type answerer struct {
	*searcher
	space *space
}

// answerers are those that share the questions about a space's choices.
func (s *searcher) answerers(sp *space) []answerer {
	all := []answerer{{s, sp}}
	if s.ahead.helpers > 0 && len(sp.families) >= worthTwin {
		t := s.twin()
		all = append(all, answerer{t, sp.twin(t)})
	}
	return all
}

// answers are those about some choices of the best plan of a space.
func (s *searcher) answers(sp *space, of []*choice, best Priced) []answer {
	by := s.answerers(sp)
	if len(by) > 1 {
		defer s.beside()()
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
		s.caches.absorb(o.caches)
	}
	clear(s.free)
	return out
}

// question is one about a choice, by its place among the choice's.
type question struct{ choice, of int }

// beside lets a searcher do with one other core less, until what it returns is called.
func (s *searcher) beside() (end func()) {
	s.ahead.helpers--
	return func() { s.ahead.helpers++ }
}

// twin is a searcher that knows what this one knows, and shares nothing with it that either changes but jobs.
func (s *searcher) twin() *searcher {
	t := *s
	t.caches, t.own = s.caches.copied(), nil
	t.ahead, t.watch = ahead{jobs: s.ahead.jobs}, nil
	t.speeds, t.layerMoves = s.speeds.copied(), maps.Clone(s.layerMoves)
	t.listed, t.named, t.redone = maps.Clone(s.listed), maps.Clone(s.named), maps.Clone(s.redone)
	t.stageNeeds, t.settlings, t.bucketPrices = map[needsKey][]stateNeed{}, map[settleKey][]settling{},
		map[bucketKey]*bucketPrice{}
	t.prices, t.plays = map[priceKey]*price{}, maps.Clone(s.plays)
	t.free = map[string]*space{}
	t.balancing, t.kept, t.costing, t.tries, t.kindFloors, t.queue = balancing{}, kept{}, nil, nil, nil, nil
	t.held, t.shares = nil, nil
	return &t
}

// twin is the space for a searcher's twin: with the bounds that are known, and nothing of what lies inside of families.
func (sp *space) twin(t *searcher) *space {
	out := &space{problem: sp.problem, families: make([]*family, len(sp.families)), size: sp.size,
		ranks: slices.Clone(sp.ranks), raised: sp.raised}
	all, cells := make([]family, len(sp.families)), map[*cell]*cell{}
	for i, f := range sp.families {
		all[i] = *f
		all[i].inside, all[i].fitting, all[i].sought, all[i].cell = nil, nil, false, f.cell.twin(t, cells)
		out.families[i] = &all[i]
	}
	return out
}

func (c *cell) twin(t *searcher, all map[*cell]*cell) *cell {
	if c == nil || all[c] != nil {
		return all[c]
	}
	own := *c
	if c.goings != nil && *c.goings == nil {
		own.goings = nil
	}
	if c.base != nil {
		own.base = t.bases[c.base.key]
	}
	if c.opened != nil {
		in := *c.opened
		own.opened = &in
		in.orders = nil // which remember messages
		in.blocks = [variants]*blocks{}
		for i := range in.sums {
			in.sums[i] = slices.Clone(in.sums[i])
		}
		in.perhaps = slices.Clone(in.perhaps)
	}
	all[c] = &own
	return &own
}

// absorb adds what others have found out of a model.
func (c *caches) absorb(o *caches) {
	addTo(c.profiles, o.profiles)
	addTo(c.bases, o.bases)
	addTo(c.inFlight, o.inFlight)
	addTo(c.frames, o.frames)
	addTo(c.states, o.states)
	addTo(c.timetables, o.timetables)
	addTo(c.fittings, o.fittings)
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
