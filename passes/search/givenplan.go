package search

import (
	"github.com/planc-dev/planc/ir"
)

// SearchWithGiven is Search with a given plan, which must have passed [Check]. Alternatives and choices are compared
// with it. best is what the search itself would choose. It returns a NoPlan if the given plan does not fit.
func SearchWithGiven(p *Problem, given ir.Plan) (r *Result, best Priced, err error) {
	s, err := newSearcher(p)
	if err != nil {
		return nil, best, err
	}
	s.watch = p.Watch
	sp, err := s.space(p)
	if err != nil {
		return nil, best, err
	}
	s.searched = sp
	c, counts, _ := s.choose(sp, nil)
	best = c.best
	s.watch = nil
	r = &Result{Best: s.priced(s.candidateOf(given)), Robust: c.robust, Fastest: c.fastest, Counts: counts, searcher: s}
	if !r.Best.Fits() {
		return nil, best, &NoPlan{Nearest: r.Best, NoFit: noFitOf(r.Best), Counts: Counts{Space: 1, Infeasible: 1,
			Simulated: 1}}
	}
	s.explain(sp, r)
	return r, best, nil
}
