package search

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// space is the legal plans that the pins allow, in the order of the search's tie-breaking.
type space struct {
	problem  *Problem
	families []*family
	size     int

	ranks  []rank // the families by their bounds, once they were asked for
	raised int    // families whose bounds have risen since
}

// family is the plans that agree in all but sharding, recomputation and axis order. Few of a space's are ever looked
// into: what one then has of its own lies apart, so that the others take little room.
type family struct {
	*inside // nil until it was looked into; see looked
	*listed
	cell *cell // a plan from outside has its own
	// no plan of it takes less, so far as bounds say that are soon found; 0 where nobody asked
	rough   costmodel.Seconds
	floor   costmodel.Seconds // likewise, with all that is known of it; it is the dearer bound
	fitting *fitting          // that of its key, where it is known
	sought  bool              // and whether there was one before the family was looked into
}

// listed is what a family is, as the enumeration found it: nobody changes it any more, and twins share it.
type listed struct {
	splits bool     // backward is two passes
	plan   ir.Plan  // without those, the axes in their usual order
	counts []int    // blocks of each chunk
	names  []string // of the orders of its axes that pins allow
	first  int      // where its plans begin in the space
	size   int
}

// listedFamily is a family that lies together with what it is.
type listedFamily struct {
	family
	listed listed
}

// inside is what is found out about one family. What prices read comes first, so that it lies together.
type inside struct {
	batchBytes int
	frame      *frame
	rows       []row // by the sharding's index
	held       []hold
	mostOwned  int

	least    int // bytes; no plan of it needs less
	orders   []order
	branches []*branch   // once it was opened
	smallest []stateNeed // of its shardings, likewise
	layers   [][]stretch // of each chunk
}

// looked is the family, with room for what is found out about it.
func (f *family) looked() *family {
	if f.inside == nil {
		f.inside = &inside{}
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

// space lists the families of the legal plans. If there are none, the error says which rules the nearest plan breaks.
// If there are more than the searcher's limit, the error is a [TooManyPlans].
func (s *searcher) space(p *Problem) (*space, error) { return s.spaceWithin(p, 0) }

// spaceWithin is a space without families that take longer than a limit, so far as that is soon seen; 0: there is none.
func (s *searcher) spaceWithin(p *Problem, limit costmodel.Seconds) (*space, error) {
	if err := p.pinned(s.dims); err != nil {
		return nil, err
	}
	e := &enumeration{s: s, p: p, limit: limit, out: &space{problem: p}, shares: map[string]sharedSplit{},
		makes: map[int][]int{}, set: newSetting(p, s.dims)}
	e.set.parsed, e.fewest = map[string][]int{}, len(e.set.rules)+2
	for _, key := range []string{"pp", "vpp", "schedule", "stage_layers"} {
		e.staged = e.staged || p.Pins[key] != nil
	}
	if s.ahead.helpers > 0 {
		s.ahead.make(s, s.basesOf(p, e.set))
	}
	e.degrees()
	if e.tooMany() {
		s.ahead.stop()
		return nil, &TooManyPlans{s.maxFamilies}
	}
	if e.out.size == 0 && !e.passed {
		s.ahead.stop()
		return nil, &IllegalError{Plan: e.worst, Reasons: e.reasons(), Pins: p.Pins}
	}
	return e.out, nil
}

// rank is a family, by its place, with a bound of its plans.
type rank struct {
	floor costmodel.Seconds
	place int
}

// ranked are the families in the order of what is known of their bounds; where little more is known than when that was
// asked last, as it was then.
func (sp *space) ranked(s *searcher) []rank {
	if sp.ranks != nil && sp.raised < len(sp.ranks)/16 {
		return sp.ranks
	}
	if sp.ranks == nil {
		sp.ranks = make([]rank, len(sp.families))
		for i, f := range sp.families {
			if f.rough == 0 {
				f.rough = s.roughly(f.cell, &f.plan)
			}
			sp.ranks[i].place = i
		}
	}
	for i := range sp.ranks {
		f := sp.families[sp.ranks[i].place]
		sp.ranks[i].floor = max(f.rough, f.floor)
	}
	sp.raised = 0
	slices.SortFunc(sp.ranks, func(a, b rank) int {
		switch { // no bound is a NaN
		case a.floor < b.floor:
			return -1
		case a.floor > b.floor:
			return 1
		}
		return a.place - b.place
	})
	return sp.ranks
}

// open are the keys that a family leaves open.
var open = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split",
	"axis_order"}
