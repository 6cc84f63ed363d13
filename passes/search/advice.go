package search

import "runtime"

// Further is advice about a chosen plan: what would change it, and what rules of thumb would have said.
type Further struct {
	// in the order of their table, then those passed by the caller, then near questions that are notably faster
	Levers []Lever
	Thumbs []RuleOfThumb // rules of thumb that apply, in the order of their table
}

// Beyond searches for every lever and rule of thumb, on all cores. Rules are compared with the result's plan, and
// levers with own, the search's own plan. params is the model's size, and more are levers that only the caller can
// construct.
func (r *Result) Beyond(params int64, own Priced, more ...Trial) Further {
	p := r.searcher.problem
	trials := append(leverTrials(p), more...)
	q := &ruleQuestion{p: p, params: params, chosen: r.Best}
	var rules []*ruleRow
	for i := range rulesOfThumb {
		if t := &rulesOfThumb[i]; t.applies(q) {
			rules = append(rules, t)
		}
	}
	f := Further{Levers: make([]Lever, len(trials)), Thumbs: make([]RuleOfThumb, len(rules))}
	near := nearTrials(p)
	found, faster := make([]Lever, len(near)), make([]bool, len(near))
	q.found = r
	defer r.searcher.withoutHelpers()()
	each := make([]*Series, min(1+len(trials)+len(near), runtime.GOMAXPROCS(0)))
	for i := range each {
		each[i] = &Series{p.Model, r.searcher.caches.clone(), r.searcher.clusterCosts.clone()}
	}
	inParallel(1+len(trials)+len(near), each, func(i int, s *Series) {
		switch n := i - 1 - len(trials); {
		case n >= 0:
			found[n], faster[n] = s.nearLever(&near[n], own, p.GlobalBatch, 0)
			return
		case i > 0:
			f.Levers[i-1] = s.lever(&trials[i-1], own)
			return
		}
		for j, rule := range rules { // sequential, because they use the result's own searcher
			f.Thumbs[j] = rule.answer(q, s)
		}
	})
	for i := range near {
		if faster[i] {
			f.Levers = append(f.Levers, found[i])
		}
	}
	return f
}

// Roomier returns the best plan that leaves a fraction of each device's memory free, as [Search] finds it. ok is
// false if there is none.
func Roomier(p *Problem, headroom float64) (best Priced, ok bool) {
	q := *p
	q.Headroom = max(p.Headroom, headroom)
	best, _, err := new(Series).Best(&q)
	return best, err == nil
}
