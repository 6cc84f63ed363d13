package search

import (
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/ir/spec"
)

// problemLong is Mixtral 8x7B with 16,384 positions on 16 H100, where memory rules most plans out.
func problemLong(t testing.TB) *Problem {
	cfg := llamaConfig(32, 4096, 32, 8, 14336, 32000, 16384)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 8, 2, 14336, true
	return problem(cluster(t, "dgx-h100", 2, 0), cfg, 16384, 64, mixed)
}

// What is known of families' memory is what a searcher finds out that knows nothing.
func TestFittings(t *testing.T) {
	p := problemLong(t)
	s := must(t, p).searcher
	fresh, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	none, r := 0, rand.New(rand.NewPCG(7, 11))
	for range 4000 {
		f := s.within.families[r.IntN(len(s.within.families))]
		if !s.hopeless(p, f) {
			continue
		}
		none++
		own := *f
		own.inside, own.fitting, own.sought, own.cell = nil, nil, false, &cell{}
		if fresh.least(p, &own) > fresh.capacity {
			continue
		}
		for _, b := range fresh.open(p, &own) {
			clear(fresh.fittings)
			if fresh.weigh(p, b); b.over == 0 {
				t.Errorf("%v is taken for one that does not fit; with recompute %v it may", f.plan.Text(), b.again.kind)
			}
		}
	}
	if none < 50 {
		t.Errorf("of %d families drawn none fits", none)
	}
}

// Levers that share what is known of memory and speeds say what searches from nothing say.
func TestLeversShare(t *testing.T) {
	p := problemLong(t)
	r := must(t, p)
	f := r.Beyond(47e9, r.Best)
	for i, trial := range leverTrials(p) {
		if trial.Name == moeSlack {
			continue
		}
		again, _, err := new(Series).Best(&trial.Problem)
		if l := f.Levers[i]; err != nil || l.Best == nil || *l.Best != again {
			t.Errorf("lever %+v; a search finds %+v, %v", l, again, err)
		}
	}
}

// A problem's best plan is within its own time: levers take that for their limit.
func TestWithinItsOwnTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 17))
	found := 0
	for range 12 {
		p := randomProblem(t, r)
		var s Series
		best, _, err := s.Best(p)
		if err != nil {
			continue
		}
		found++
		if got, ok, err := s.Within(p, s.time(p, best.Plan)); err != nil || !ok || got != best {
			t.Errorf("%v is not within its own time: %v, %v, %v", best.Plan.Text(), got.Plan.Text(), ok, err)
		}
	}
	if found < 6 {
		t.Errorf("%d problems had a plan", found)
	}
}
