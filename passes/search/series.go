package search

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
)

// Series answers questions about one model on several clusters, as a sweep asks them. Layers are the same on each, so
// questions share results. The zero value is ready to use.
type Series struct{ memo price.Memo }

// Best is Search without alternatives and without changes that would fit. Questions with the same Model must have the
// same Precision and Recipe.
func (r *Series) Best(p *Problem) (Priced, Counts, error) {
	s, err := r.searcher(p)
	if err != nil {
		return Priced{}, Counts{}, err
	}
	sp, err := s.space(p)
	if err != nil {
		return Priced{}, Counts{}, err
	}
	c, counts, ok := s.choose(sp, nil)
	if !ok {
		near := s.nearest(sp, nil)
		return Priced{}, counts, &NoPlan{Nearest: near, NoFit: noFitOf(near), Counts: counts}
	}
	return c.best, counts, nil
}

// fastest returns the fastest plan of a problem; ok is false if no plan is legal or none fits.
func (r *Series) fastest(p *Problem) (best Priced, ok bool) {
	s, err := r.searcher(p)
	if err != nil {
		return best, false
	}
	sp, err := s.space(p)
	if err != nil {
		return best, false
	}
	best, _, ok = s.best(sp, nil)
	return best, ok
}

// Within returns the fastest plan that fits and takes no longer than a limit, if there is one.
func (r *Series) Within(p *Problem, limit costmodel.Seconds) (Priced, bool, error) {
	return r.within(p, limit, 0)
}

// within is [Series.Within]. If largest is above 0, it returns nothing for spaces with more families.
func (r *Series) within(p *Problem, limit costmodel.Seconds, largest int) (Priced, bool, error) {
	s, err := r.searcher(p)
	if err != nil {
		return Priced{}, false, err
	}
	if limit < s.MinStep() {
		return Priced{}, false, nil
	}
	sp, err := s.spaceWithin(p, limit)
	if err != nil || largest > 0 && len(sp.families) > largest {
		return Priced{}, false, err
	}
	best, _, found := s.best(sp, &filter{limit: limit})
	return best, found, nil
}

// searcher returns a searcher for a problem that shares what is known about its model.
func (r *Series) searcher(p *Problem) (*searcher, error) {
	pricer, err := r.memo.Pricer(p)
	if err != nil {
		return nil, err
	}
	return searcherOf(p, pricer), nil
}

// alternative returns the plan to recommend with further pins, compared with the chosen one. If the chosen one
// follows the pins, it returns that. If nothing fits, it returns the plan that exceeds memory least. Its errors are
// those of [Search].
func (r *Series) alternative(p *Problem, pins Pins, chosen Priced) (Alternative, error) {
	if chosen.Fits() && pins.Match(&chosen.Plan) {
		return Alternative{Plan: chosen.Plan, Predict: chosen.Predict}, nil
	}
	q := *p
	q.Pins = p.Pins.Merge(pins)
	s, err := r.searcher(&q)
	if err != nil {
		return Alternative{}, err
	}
	sp, err := s.space(&q)
	if err != nil {
		return Alternative{}, err
	}
	return s.recommended(sp, chosen), nil
}

// Price is [Price], sharing results with other plans of the same model.
func (r *Series) Price(p *Problem, plan ir.Plan) (costmodel.Predict, error) {
	s, err := r.searcher(p)
	if err != nil {
		return costmodel.Predict{}, err
	}
	if rs := Legal(plan, s.dims, p.Cluster, p.GlobalBatch); len(rs) > 0 {
		return costmodel.Predict{}, &IllegalError{Plan: plan, Reasons: rs, Pins: p.Pins}
	}
	return s.Priced(price.CandidateOf(plan)).Predict, nil
}

// Moments returns what a rank of a legal plan's fullest stage needs at each moment of training.
func (r *Series) Moments(p *Problem, plan ir.Plan) ([]costmodel.MemoryMoment, error) {
	s, err := r.searcher(p)
	if err != nil {
		return nil, err
	}
	return s.Moments(price.CandidateOf(plan)), nil
}

// time returns the exact step of a plan that was an answer for the problem. [costmodel.Predict] only has the sum of
// rounded parts.
func (r *Series) time(p *Problem, plan ir.Plan) costmodel.Seconds {
	s, err := r.searcher(p)
	if err != nil {
		panic("search: a problem that had an answer is none: " + err.Error())
	}
	return s.StepTime(price.CandidateOf(plan))
}

// Refresh drops everything that depends on an engine's constants, which a fit changes. Results of the passes stay.
func (r *Series) Refresh() { r.memo.DropFitted() }
