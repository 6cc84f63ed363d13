package search

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Series answers questions about one model on several clusters, as a sweep asks them. Layers are the same on each, so
// that what one question found out serves the next. The zero value is ready.
type Series struct {
	model  *ir.Model
	caches *caches
	speeds *clusterCosts // of the questions' usual cluster; nil: none is usual
}

// Best is Search without alternatives and without what would fit. Questions with the same Model must have the same
// Precision and Recipe.
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

// fastest is the fastest plan of a problem; ok is false if no plan is legal or none fits.
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

// Within is the fastest plan that fits and takes no longer than a limit; there may be none.
func (r *Series) Within(p *Problem, limit costmodel.Seconds) (Priced, bool, error) {
	return r.within(p, limit, 0)
}

// blocksWithin is [Series.Within], where most is above 0 without a look at spaces with more families, of which it finds
// nothing.
func (r *Series) within(p *Problem, limit costmodel.Seconds, most int) (Priced, bool, error) {
	s, err := r.searcher(p)
	if err != nil {
		return Priced{}, false, err
	}
	if limit < s.minStep() {
		return Priced{}, false, nil
	}
	sp, err := s.spaceWithin(p, limit)
	if err != nil || most > 0 && len(sp.families) > most {
		return Priced{}, false, err
	}
	best, _, found := s.best(sp, &filter{limit: limit})
	return best, found, nil
}

// minStep is the step in which all devices do nothing but the model's own flops, as fast as they do anything.
func (s *searcher) minStep() costmodel.Seconds {
	flops := float64(s.problem.GlobalBatch) * s.modelFlops
	return costmodel.Seconds(flops / float64(s.device.Fastest()) / float64(s.problem.Cluster.Devices()))
}

// minWork is at most what a plan takes, however its blocks are split and whatever is sharded: a stage's even share of
// the arithmetic of all layers, none of which is run again, without a message or a collective. Of functions in two
// parts those are counted that do less: where gradients are scattered after each micro-batch, none are added to what
// others left.
func (s *searcher) minWork(p *ir.Plan) costmodel.Seconds {
	work := s.layersWork(p)
	if p.Splits() && p.Replicas() > 1 {
		q := *p
		q.Zero = 2 - min(2, p.Zero)
		work = min(work, s.layersWork(&q))
	}
	return costmodel.Seconds(p.MicroBatches) * work / costmodel.Seconds(p.PP) * (1 - tie)
}

// layersWork is the arithmetic of all layers for one micro-batch, as a plan shards.
func (s *searcher) layersWork(p *ir.Plan) costmodel.Seconds {
	b, k := s.base(*p), deviceMicro{s.device, p.MicroBatch}
	work, known := b.workByDevice[k]
	if !known {
		works := s.computeTimes(b.profile, p.MicroBatch, s.moeLoad(&b.key, p.MicroBatch))
		for _, seg := range b.prog.Model.Segments {
			for _, own := range works[b.profile.index(seg)] {
				work += costmodel.Seconds(seg.Count) * own.time
			}
		}
		b.workByDevice[k] = work
	}
	return work
}

// searcher is one for a problem, with what is known of its model.
func (r *Series) searcher(p *Problem) (*searcher, error) {
	s, err := newSearcher(p)
	if err != nil {
		return nil, err
	}
	if r.model == p.Model {
		s.caches = r.caches
	}
	r.model, r.caches = p.Model, s.caches
	if r.speeds != nil && r.speeds.validFor(s) {
		s.clusterCosts = r.speeds
	}
	return s, nil
}

// alternative is the plan to recommend with further pins against the chosen one, which it is itself if that follows
// them. It fails as [Search] does, where nothing fits with the plan that lacks least.
func (r *Series) alternative(p *Problem, pins Pins, chosen Priced) (Alternative, error) {
	if chosen.Fits() && pins.matches(&chosen.Plan) {
		return Alternative{Plan: chosen.Plan, Predict: chosen.Predict}, nil
	}
	q := *p
	q.Pins = p.Pins.With(pins)
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

// Price is [Price] of a plan, beside others of the same model.
func (r *Series) Price(p *Problem, plan ir.Plan) (costmodel.Predict, error) {
	s, err := r.searcher(p)
	if err != nil {
		return costmodel.Predict{}, err
	}
	if rs := Legal(plan, s.dims, p.Cluster, p.GlobalBatch); len(rs) > 0 {
		return costmodel.Predict{}, &IllegalError{Plan: plan, Reasons: rs, Pins: p.Pins}
	}
	return s.priced(s.candidateOf(plan)).Predict, nil
}

// time is the step of a plan that a question about the problem had as its answer, to the bit: that of a
// [costmodel.Predict] adds up rounded parts.
func (r *Series) time(p *Problem, plan ir.Plan) costmodel.Seconds {
	s, err := r.searcher(p)
	if err != nil {
		panic("search: a problem that had an answer is none: " + err.Error())
	}
	return s.stepTime(s.candidateOf(plan))
}

// Refresh forgets what follows from an engine's constants, which a fit moves. What the passes found stays.
func (r *Series) Refresh() {
	if r.caches == nil {
		return
	}
	clear(r.caches.bases)
	clear(r.caches.works)
	r.caches.stale = map[profileKey]bool{}
	for k := range r.caches.profiles {
		r.caches.stale[k] = true
	}
}
