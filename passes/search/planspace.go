package search

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// planSpace is the legal plans that the pins allow, in the order of the search's tie-breaking.
type planSpace struct {
	problem  *Problem
	families []*family
	size     int

	ranks        []rankedFamily // the families by their bounds, once they were asked for
	raisedBounds int            // families whose bounds have risen since
}

// family is the plans that agree in all but sharding, recomputation and axis order. Few of a space's are ever looked
// into: what one then has of its own lies apart, so that the others take little room.
type family struct {
	*familyDetails // nil until it was looked into; see looked
	*familySpec
	class *degreeClass // a plan from outside has its own
	// no plan of it takes less, so far as bounds say that are soon found; 0 where nobody asked
	roughFloor costmodel.Seconds
	floor      costmodel.Seconds // likewise, with all that is known of it; it is the dearer bound
	fit        *memoryFit        // that of its key, where it is known
	fitSought  bool              // and whether there was one before the family was looked into
}

// spec is what a family is, as the enumeration found it: nobody changes it any more, and twins share it.
type familySpec struct {
	splitsBackward bool     // backward is two passes
	plan           ir.Plan  // without those, the axes in their usual order
	counts         []int    // blocks of each chunk
	orderNames     []string // of the orders of its axes that pins allow
	first          int      // where its plans begin in the space
	size           int
}

// familySlot is a family that lies together with what it is.
type familySlot struct {
	family
	spec familySpec
}

// familyDetails is what is found out about one family. What prices read comes first, so that it lies together.
type familyDetails struct {
	batchBytes    int
	split         *pipelineSplit
	shardingCosts []shardingCost // by the sharding's index
	fullStages    []stageBuffers
	maxOwned      int

	minBytes       int // bytes; no plan of it needs less
	orders         []axisOrder
	branches       []*branch     // once it was opened
	minStateMemory []stateMemory // of its shardings, likewise
	layers         [][]layerRun  // of each chunk
}

// withDetails is the family, with room for what is found out about it.
func (f *family) withDetails() *family {
	if f.familyDetails == nil {
		f.familyDetails = &familyDetails{}
	}
	return f
}

// maxFamilies is the largest number of families that a search accepts. The largest accepted job that is known,
// qwen3_moe with 240 experts on 110,880 GPUs and 388,576 families, is planned in 24 s and 3.3 GiB on two cores of an
// AMD EPYC (2026-11-24), so that a plan of any accepted job ends within 30 s and 4 GiB. Real jobs have 1,000 to 150,000
// families.
const maxFamilies = 400_000

// TooManyPlans is the error of a search whose space has more than [maxFamilies] families.
type TooManyPlans struct{ Max int }

func (e *TooManyPlans) Error() string {
	return fmt.Sprintf("there are more than %d combinations of degrees, micro-batch and schedule, which is the most "+
		"that planc searches",
		e.Max)
}

// planSpace lists the families of the legal plans. If there are none, the error says which rules the nearest plan breaks.
// If there are more than the searcher's limit, the error is a [TooManyPlans].
func (s *searcher) space(p *Problem) (*planSpace, error) { return s.spaceWithin(p, 0) }

// spaceWithin is a space without families that take longer than a limit, so far as that is soon seen; 0: there is none.
func (s *searcher) spaceWithin(p *Problem, limit costmodel.Seconds) (*planSpace, error) {
	if err := p.checkPins(s.dims); err != nil {
		return nil, err
	}
	e := &enumeration{s: s, p: p, limit: limit, out: &planSpace{problem: p}, sharedSplits: map[string]sharedSplit{},
		microBatches: map[int][]int{}, set: newSetting(p, s.dims)}
	e.set.parsedCounts, e.fewest = map[string][]int{}, len(e.set.rules)+2
	for _, key := range []string{"pp", "vpp", "schedule", "stage_layers"} {
		e.wantsPipeline = e.wantsPipeline || p.Pins[key] != nil
	}
	if s.precompiler.helpers > 0 {
		s.precompiler.start(s, s.neededBases(p, e.set))
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

// rankedFamily is a family, by its place, with a bound of its plans.
type rankedFamily struct {
	floor costmodel.Seconds
	index int
}

// ranked are the families in the order of what is known of their bounds; where little more is known than when that was
// asked last, as it was then.
func (sp *planSpace) ranked(s *searcher) []rankedFamily {
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
		switch { // no bound is a NaN
		case a.floor < b.floor:
			return -1
		case a.floor > b.floor:
			return 1
		}
		return a.index - b.index
	})
	return sp.ranks
}

// openKeys are the keys that a family leaves open.
var openKeys = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split",
	"axis_order"}
