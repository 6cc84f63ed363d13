package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// space is the legal plans that the pins allow, in the order of the search's tie-breaking.
type space struct {
	problem  *Problem
	families []*family
	size     int

	roughly []*family // by their rough bounds, once they were asked for
}

// family is the plans that agree in all but sharding, recomputation and axis order. What prices read comes first, so that
// it lies together.
type family struct {
	splits     bool // backward is two passes
	batchBytes int
	frame      *frame // this and what follows: once it was asked for
	rows       []row  // by the sharding's index
	held       []hold
	blocks     [variants]*blocks
	costs      [variants][]*layerTable // by the order's place
	perhaps    []floorTable
	mostOwned  int

	cell   *cell   // nil of plans from outside
	plan   ir.Plan // without those, the axes in their usual order
	counts []int   // blocks of each chunk
	first  int     // where its plans begin in the space
	size   int
	rough  costmodel.Seconds // no plan of it takes less, by its arithmetic alone; 0 where nobody asked
	floor  costmodel.Seconds // likewise, with all that is known of it; it is the dearer bound
	least  int               // bytes; no plan of it needs less

	names    []string // of the orders of its axes that pins allow
	orders   []order
	stateOf  [4][3]*state // by zero, and by how groups share a copy
	problem  *Problem
	branches []*branch   // once it was opened
	smallest []stateNeed // of its shardings, likewise
	layers   [][]stretch // of each chunk
}

// space lists the families of the legal plans. If there are none, the error says which rules the nearest plan breaks.
func (s *searcher) space(p *Problem) (*space, error) { return s.spaceWithin(p, 0) }

// spaceWithin is a space without families that take longer than a limit, so far as that is soon seen; 0: there is none.
func (s *searcher) spaceWithin(p *Problem, limit costmodel.Seconds) (*space, error) {
	if err := p.pinned(s.dims); err != nil {
		return nil, err
	}
	e := &enumeration{s: s, p: p, limit: limit, out: &space{problem: p}, shares: map[string]sharedSplit{}, fewest: len(rules) + 2,
		set: &setting{s.dims, p.Cluster.Devices(), p.Cluster.Nodes, p.GlobalBatch, map[string][]int{}}}
	for _, key := range []string{"pp", "vpp", "schedule", "stage_layers"} {
		e.staged = e.staged || p.Pins[key] != nil
	}
	if s.ahead.helpers > 0 {
		s.ahead.make(s, s.basesOf(p, e.set))
	}
	e.degrees()
	if e.out.size == 0 && !e.passed {
		s.ahead.stop()
		return nil, &IllegalError{Plan: e.worst, Reasons: e.reasons(), Pins: p.Pins}
	}
	return e.out, nil
}

// rough are the families in the order of their rough bounds.
func (sp *space) rough(s *searcher) []*family {
	if sp.roughly != nil {
		return sp.roughly
	}
	for _, f := range sp.families {
		if f.rough == 0 {
			f.rough = s.roughly(f.cell, &f.plan)
		}
	}
	sp.roughly = slices.Clone(sp.families)
	slices.SortStableFunc(sp.roughly, func(a, b *family) int { return cmp.Compare(a.rough, b.rough) })
	return sp.roughly
}

// open are the keys that a family leaves open.
var open = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split", "axis_order"}
