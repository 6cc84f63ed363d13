package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Where all blocks are alike no split has a faster slowest stage than the one that is tried. Where they are not, some have,
// and what is left out says by what the split was made.
func TestNoSplitIsFasterWhereBlocksAreAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	alike, unlike, faster := 0, 0, 0
	for i := range 80 {
		p := randomProblem(t, r)
		if i%4 == 0 { // the first blocks have no experts
			cfg := llamaConfig(7, 64, 4, 4, 256, 64, 16)
			cfg.Family = spec.DeepseekV2
			latent(&cfg)
			p = problem(cluster(t, "dgx-h100", 1, 4), cfg, 16, 8, mixed)
		}
		p.Pins = nil
		s, err := newSearcher(p)
		if err != nil {
			t.Fatal(err)
		}
		sp, err := s.space(p)
		if err != nil {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(sp.families), func(f *family) bool { return f.plan.PP == 1 || f.plan.VPP > 1 })
		if len(of) == 0 {
			continue
		}
		f, mean := of[r.IntN(len(of))], strings.Contains(strings.Join(Restricted(p), "; "), "each block were the mean of all")
		got, best := s.slowestOf(&f.plan, f.counts), s.fastestSplit(&f.plan, nil)
		switch slower := got > best*(1+2*tie); {
		case mean != p.unlike(&s.dims):
			t.Errorf("%v", Restricted(p))
		case mean && slower:
			faster++
		case mean:
			unlike++
		case slower:
			t.Errorf("%v: its slowest stage takes %v, that of another split %v", f.plan.Text(), got, best)
		default:
			alike++
		}
	}
	t.Log(alike, unlike, faster)
	if alike < 10 || unlike == 0 || faster == 0 {
		t.Errorf("%d splits of blocks that are alike, %d and %d of others", alike, unlike, faster)
	}
}

// slowestOf is how long the slowest stage of a split takes for a micro-batch, each stage having one chunk.
func (s *searcher) slowestOf(plan *ir.Plan, split []int) (most float64) {
	costs := s.costs(plan, baseKey(*plan), s.base(*plan).profile, plan.MicroBatch)
	for _, runs := range s.cut(&family{plan: *plan, counts: split}) {
		sum := 0.0
		for _, of := range runs {
			sum += float64(of.count) * float64(costs[of.segment].sum())
		}
		most = max(most, sum)
	}
	return most
}

// fastestSplit is the least that the slowest stage takes, of all splits that begin in a way.
func (s *searcher) fastestSplit(plan *ir.Plan, begun []int) float64 {
	rest, c := s.dims.Layers, len(begun)
	for _, n := range begun {
		rest -= n
	}
	least := 1
	if c == 0 && s.dims.Embed || c == plan.PP-1 && s.dims.Head {
		least = 0
	}
	if c == plan.PP-1 && rest >= least {
		return s.slowestOf(plan, append(slices.Clone(begun), rest))
	}
	best := math.Inf(1)
	for n := least; n <= rest && c < plan.PP-1; n++ {
		best = min(best, s.fastestSplit(plan, append(slices.Clone(begun), n)))
	}
	return best
}
