package search

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// Check returns why a plan from elsewhere, such as an edited file, is not in the space: the rules of legality that it
// breaks, the pins that it does not follow, and the keys whose values do not follow from others.
func Check(p *Problem, plan ir.Plan) []Reason {
	d := DimsOf(p.Model)
	if rs := legal(&plan, newSetting(p, d)); len(rs) > 0 {
		return rs
	}
	var rs []Reason
	plain := d.plain(plan.MicroBatch, p.Precision) // keys that no rule concerns have one value
	is, normal := keyValues(plan), keyValues(plain)
	for _, key := range ir.PlanKeys() {
		switch {
		case !p.Pins.allows(key, is[key]):
			rs = append(rs, Reason{key, fmt.Sprintf("%s is %s, which the job's plan.%s does not allow", key,
				is[key], key)})
		case is[key] != normal[key] && onlyValue[key]:
			rs = append(rs, Reason{key, fmt.Sprintf("%s is %q, but only %q is possible with the other keys", key,
				is[key], normal[key])})
		}
	}
	return rs
}

// onlyValue are the keys that have only one value today and that no rule concerns.
var onlyValue = map[string]bool{"offload": true, "precision": true}

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
