package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/passes/search/internal/problems"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// If each stage has one chunk, no split has a faster slowest stage than the one that is tried, whether blocks are
// alike or not. [Restricted] says that stages of several chunks are split by the mean of all blocks.
func TestNoSplitHasAFasterSlowestStage(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	alike, unlike := 0, 0
	for i := range 100 {
		p := randomProblem(t, r)
		if i%4 == 0 { // the first blocks have no experts
			cfg := llamaConfig(7, 64, 4, 4, 256, 64, 16)
			cfg.Family = spec.DeepseekV2
			problems.DeepSeek(&cfg)
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
		group := slices.DeleteFunc(slices.Clone(sp.families), func(f *spaceFamily) bool {
			return f.Plan.PP == 1 || f.Plan.VPP > 1
		})
		if len(group) == 0 {
			continue
		}
		f, mean := group[r.IntN(len(group))], strings.Contains(strings.Join(Restricted(p), "; "),
			"each block counting as the mean of all")
		got, best := s.slowestOf(&f.Plan, f.Counts), s.fastestSplit(&f.Plan, nil)
		switch {
		case mean != space.HasUnlikeBlocks(p.Model, &s.dims):
			t.Errorf("%v", Restricted(p))
		case got > best*(1+2*price.Tie):
			t.Errorf("%v: its slowest stage takes %v, that of another split %v", f.Plan.Text(), got, best)
		case mean:
			unlike++
		default:
			alike++
		}
	}
	t.Log(alike, unlike)
	if alike < 10 || unlike < 10 {
		t.Errorf("%d splits of blocks that are alike, %d of others", alike, unlike)
	}
}

// Of splits with the fastest slowest stage, the one for unlike blocks has the least sum of squares, and the earlier
// stages have fewer blocks. It is compared with every split.
func TestRunsAgainstEverySplit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	for range 2000 {
		b := stageBalancer{}
		stages, blocks := 1+r.IntN(4), 3+r.IntN(7)
		for st := range stages {
			least := 1
			if st == 0 || st == stages-1 {
				least = r.IntN(2)
			}
			b.fixedTime, b.minBlocks = append(b.fixedTime, float64(r.IntN(4))), append(b.minBlocks, least)
		}
		b.ends = []float64{0}
		for i := range blocks {
			b.ends = append(b.ends, b.ends[i]+float64(1+r.IntN(5)))
		}
		best, limit, squares := []int(nil), math.Inf(1), math.Inf(1)
		everySplit(b.minBlocks, blocks, nil, func(split []int) {
			m, q, at := 0.0, 0.0, 0
			for st, n := range split {
				time := b.fixedTime[st] + b.ends[at+n] - b.ends[at]
				m, q, at = max(m, time), q+time*time, at+n
			}
			if m < limit || m == limit && q < squares {
				best, limit, squares = slices.Clone(split), m, q
			}
		})
		if best == nil {
			continue
		}
		if got := b.balanceUnlike(b.ends); !slices.Equal(got, best) {
			t.Fatalf("loads %v, at least %v, blocks until %v: split %v, want %v", b.fixedTime, b.minBlocks,
				b.ends, got, best)
		}
	}
}

// everySplit visits the splits of some blocks, those whose first stages have fewer first.
func everySplit(least []int, blocks int, begun []int, visit func([]int)) {
	st := len(begun)
	if st == len(least)-1 {
		if blocks >= least[st] {
			visit(append(begun, blocks))
		}
		return
	}
	for n := least[st]; n <= blocks; n++ {
		everySplit(least, blocks-n, append(begun, n), visit)
	}
}

// slowestOf returns the time of the slowest stage of a split for a micro-batch, with one chunk per stage.
func (s *searcher) slowestOf(plan *ir.Plan, split []int) (limit float64) {
	totals := s.LayerTotals(&price.DegreeClass{}, plan)
	last := len(totals) - 1
	var blocks []float64
	for i, seg := range s.problem.Model.Segments {
		if !(i == 0 && s.dims.Embed) && !(i == last && s.dims.Head) {
			blocks = append(blocks, slices.Repeat([]float64{float64(totals[i])}, seg.Count)...)
		}
	}
	for c, n := range split {
		sum := 0.0
		if c == 0 && s.dims.Embed {
			sum += float64(totals[0])
		}
		for _, block := range blocks[:n] {
			sum += block
		}
		if c == len(split)-1 && s.dims.Head {
			sum += float64(totals[last])
		}
		blocks, limit = blocks[n:], max(limit, sum)
	}
	return limit
}

// fastestSplit returns the least time of the slowest stage, over all splits that begin in a given way.
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
