package search

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// planSpace is the legal plans that the pins allow, in the order that breaks ties.
type planSpace struct {
	problem  *Problem
	families []*family
	size     int // number of plans

	// the families in the order of their bounds, once requested
	ranks []rankedFamily
	// number of families whose bounds have increased since ranks was sorted
	raisedBounds int
}

// family is the plans that agree in everything except sharding, recomputation and axis order. Most families are never
// examined, so the details of those that are live in a separate allocation.
type family struct {
	*familyDetails // nil until the family is examined, see withDetails
	*familySpec
	class *degreeClass // a plan from outside the search has a class of its own
	// cheap lower bound of the step of any plan; 0 if not computed
	roughFloor costmodel.Seconds
	// tighter and more expensive lower bound; 0 if not computed
	floor costmodel.Seconds
}

// familySpec identifies a family, as the enumeration found it. It never changes, and workers share it.
type familySpec struct {
	splitsBackward bool // the backward pass has two parts, for inputs and for weights
	// without the open choices, with the axes in their default order
	plan       ir.Plan
	counts     []int    // blocks per chunk
	orderNames []string // axis orders that the pins allow
	first      int      // index of its first plan in the space
	size       int
}

// familySlot allocates a family together with its spec.
type familySlot struct {
	family
	spec familySpec
}

// familyDetails is what is known about one examined family. The fields that pricing reads most come first, for
// locality.
type familyDetails struct {
	split         *pipelineSplit
	shardingCosts []shardingCost // by the sharding's index
	fullStages    []stageBuffers

	minBytes       int           // no plan of the family needs less
	branches       []*branch     // once expanded
	minStateMemory []stateMemory // minimum over its shardings, once expanded
	layers         [][]layerRun  // of each chunk
}

// withDetails returns the family after allocating its details.
func (f *family) withDetails() *family {
	if f.familyDetails == nil {
		f.familyDetails = &familyDetails{}
	}
	return f
}

// maxFamilies is the largest number of families that a search accepts, so that any accepted job is planned within 30 s
// and 4 GiB. Six jobs of real size, Llama 405B and a MoE of 256 experts on 2,048 to 131,072 GPUs, have 5,911 to
// 138,392. Measured: the largest accepted job known, qwen3_moe with 240 experts on 110,880 GPUs and 388,576 families,
// takes 24 s and 3.3 GiB on two cores of an AMD EPYC (2026-11-24).
const maxFamilies = 400_000

// TooManyPlans is the error of a search whose space has more than [maxFamilies] families.
type TooManyPlans struct{ Max int }

func (e *TooManyPlans) Error() string {
	return fmt.Sprintf("there are more than %d combinations of degrees, micro-batch and schedule, which is the most "+
		"that planc searches",
		e.Max)
}

// space lists the families of the legal plans. If there are none, the error names the rules that the nearest plan
// breaks. If there are more than the searcher's limit, the error is a [TooManyPlans].
func (s *searcher) space(p *Problem) (*planSpace, error) { return s.spaceWithin(p, 0) }

// spaceWithin is space without the families that a cheap bound proves slower than a limit; 0 means no limit.
func (s *searcher) spaceWithin(p *Problem, limit costmodel.Seconds) (*planSpace, error) {
	if err := p.CheckPins(s.dims); err != nil {
		return nil, err
	}
	e := &enumeration{s: s, p: p, limit: limit, out: &planSpace{problem: p}, sharedSplits: map[string]sharedSplit{},
		microBatches: map[int][]int{}, set: space.NewRuleContext(p, s.dims)}
	e.set.ParsedCounts, e.fewest = map[string][]int{}, len(e.set.Rules)+2
	for _, key := range []string{"pp", "vpp", "schedule", "stage_layers"} {
		e.wantsPipeline = e.wantsPipeline || p.Pins[key] != nil
	}
	if s.precompiler.helpers > 0 {
		s.precompiler.start(&s.layerProfiler, s.neededBases(p, e.set))
	}
	e.degrees()
	if e.tooMany() {
		s.precompiler.stop()
		return nil, &TooManyPlans{s.maxFamilies}
	}
	if e.out.size == 0 && !e.skipped {
		s.precompiler.stop()
		return nil, &IllegalError{Plan: e.worst, Reasons: e.reasons(), Pins: p.Pins}
	}
	return e.out, nil
}

// rankedFamily is a family, by its index, with a lower bound of its plans.
type rankedFamily struct {
	floor costmodel.Seconds
	index int
}

// ranked returns the families in the order of their known bounds. If few bounds have increased since the last call,
// it returns the previous order.
func (sp *planSpace) ranked(s *layerTimer) []rankedFamily {
	if sp.ranks != nil && sp.raisedBounds < len(sp.ranks)/16 {
		return sp.ranks
	}
	if sp.ranks == nil {
		sp.ranks = make([]rankedFamily, len(sp.families))
		for i, f := range sp.families {
			if f.roughFloor == 0 {
				f.roughFloor = s.workBound(f.class, &f.plan)
			}
			sp.ranks[i].index = i
		}
	}
	for i := range sp.ranks {
		f := sp.families[sp.ranks[i].index]
		sp.ranks[i].floor = max(f.roughFloor, f.floor)
	}
	sp.raisedBounds = 0
	slices.SortFunc(sp.ranks, func(a, b rankedFamily) int {
		switch { // bounds are never NaN
		case a.floor < b.floor:
			return -1
		case a.floor > b.floor:
			return 1
		}
		return a.index - b.index
	})
	return sp.ranks
}
