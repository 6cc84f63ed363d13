package search

import (
	"fmt"
	"iter"
	"slices"

	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
)

// planSpace is the legal plans that the pins allow, in the order that breaks ties.
type planSpace struct {
	problem  *Problem
	families []*spaceFamily
	size     int // number of plans

	// the families in the order of their bounds, once requested
	ranks []rankedFamily
	// number of families whose bounds have increased since ranks was sorted
	raisedBounds int
}

// spaceFamily is a family of a space, with what the search knows about it.
type spaceFamily struct {
	price.Family
	// cheap lower bound of the step of any plan; 0 if not computed
	roughFloor costmodel.Seconds
	// tighter and more expensive lower bound; 0 if not computed
	floor    costmodel.Seconds
	branches []*branch // once expanded
	first    int       // index of its first plan in the space
	size     int       // number of plans
}

// familySlot allocates a family together with its spec.
type familySlot struct {
	family spaceFamily
	spec   price.FamilySpec
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
	s.precompile(p, e.set)
	e.degrees()
	if e.tooMany() {
		s.StopPrecompile()
		return nil, &TooManyPlans{s.maxFamilies}
	}
	if e.out.size == 0 && !e.skipped {
		s.StopPrecompile()
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
func (sp *planSpace) ranked(s *price.Pricer) []rankedFamily {
	if sp.ranks != nil && sp.raisedBounds < len(sp.ranks)/16 {
		return sp.ranks
	}
	if sp.ranks == nil {
		sp.ranks = make([]rankedFamily, len(sp.families))
		for i, f := range sp.families {
			if f.roughFloor == 0 {
				f.roughFloor = s.WorkBound(f.Class(), &f.Plan)
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

// branch is the plans of a family with one recompute choice. The number of recomputed blocks is solved.
type branch struct {
	family    *spaceFamily
	recompute space.RecomputeChoice
	first     int // index of its first plan in the space
	size      int
	// bytes by which even the smallest state exceeds the memory; 0 if it may fit
	overBytes int
	n         int // the smallest recompute count with which any plan may fit
	floor     costmodel.Seconds
	bounded   bool // overBytes, n and floor are computed
	// once expanded: the members that fit, and the number of others
	expanded bool
	fitting  []member
	unfit    int
}

// member is a plan of a branch with the smallest recompute count with which it fits. If none fits, it has the count
// that exceeds the memory least.
type member struct {
	price.BoundedCandidate
	index int               // in the space
	time  costmodel.Seconds // its step; 0 if it was not simulated
}

// branchesOf lists a family's branches.
func (s *searcher) branchesOf(p *Problem, f *spaceFamily) []*branch {
	if f.branches != nil {
		return f.branches
	}
	agains := s.RecomputeChoices(p, &f.Plan, slices.Max(f.Counts))
	all := make([]branch, len(agains))
	f.branches = make([]*branch, 0, len(agains))
	for i, a := range agains {
		b := &all[i]
		b.family, b.recompute, b.size = f, a, f.size/len(agains)
		b.first = f.first + i*b.size
		f.branches = append(f.branches, b)
	}
	return f.branches
}

// boundBranch computes a branch's bounds, unless that was done.
func (s *searcher) boundBranch(p *Problem, b *branch) {
	if b.bounded {
		return
	}
	b.bounded = true
	f := b.family
	b.n, b.overBytes = s.MinFit(p, &f.Family, &b.recompute)
	if b.overBytes == 0 {
		b.floor = max(f.floor, s.RecomputeBound(&f.Family, &b.recompute, b.n))
	}
}

// expand computes a branch's members, unless that was done.
func (s *searcher) expand(p *Problem, b *branch) {
	if b.expanded {
		return
	}
	b.expanded = true
	all := s.memberScratch[:0]
	for m := range s.members(p, b) {
		if m.OverBytes > 0 {
			b.unfit++
		} else {
			all = append(all, m)
		}
	}
	b.fitting, s.memberScratch = slices.Clone(all), all
}

// members returns a branch's members, also those that do not fit.
func (s *searcher) members(p *Problem, b *branch) iter.Seq[member] {
	return func(yield func(member) bool) {
		s.boundBranch(p, b)
		index := b.first
		for c := range s.Candidates(p, &b.family.Family, &b.recompute) {
			if c.OverBytes == 0 {
				c.Floor = max(c.Floor, b.floor)
			}
			if !yield(member{BoundedCandidate: c, index: index}) {
				return
			}
			index++
		}
	}
}
