package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// cell is what families share that agree in the degrees, in sp and in the micro-batch, and all do backward in one pass
// or in two: they differ in chunks and schedules.
type cell struct {
	*opened                   // nil until one of the families was looked into; see looked
	least   costmodel.Seconds // see leastLayers; 0 where nobody asked
	work    costmodel.Seconds // leastWork of each plan; likewise
	base    *base             // likewise
	costs   []costSums        // of layers where the axes are in their usual order; likewise
	// see goingsOf: one list for all cells that it is the same for; nil: this has none in common
	goings *[]*going
}

// opened is what is found out about a cell whose families are looked into, which are few.
type opened struct {
	orders  []order // once they were asked for
	blocks  [variants]*blocks
	sums    [variants][][]costSums // of layers, by the order's place
	perhaps []floorTable
	// by whether the first and the last chunk lie apart, by zero, and by how groups share a copy
	stateOf [2][4][3]*state
}

// looked is the cell, with room for what is found out about it.
func (c *cell) looked() *cell {
	if c.opened == nil {
		c.opened = &opened{}
	}
	return c
}

// baseOf is a cell's base, a plan of which is given.
func (s *searcher) baseOf(c *cell, plan *ir.Plan) *base {
	if c.base == nil {
		c.base = s.base(*plan)
	}
	return c.base
}

// cell finds the cell of a plan whose micro-batch is at its place, or makes it. Plans that are illegal by their degrees
// have none.
func (e *enumeration) cell(plan *ir.Plan) *cell {
	if !e.shaped {
		return nil
	}
	all := &e.cells[bit(plan.Splits())]
	for len(*all) <= e.micro {
		if len(e.room) == 0 {
			e.room = make([]cell, 64)
		}
		e.room[0].goings = e.goings[bit(plan.Splits())]
		*all, e.room = append(*all, &e.room[0]), e.room[1:]
	}
	return (*all)[e.micro]
}

// roughly is [searcher.leastWork] of a cell's plans, which is the same of each.
func (s *searcher) roughly(c *cell, plan *ir.Plan) costmodel.Seconds {
	if c == nil {
		return s.leastWork(plan)
	}
	if c.work == 0 {
		c.work = s.leastWork(plan)
	}
	return c.work
}

// leastLayers is the least that a micro-batch takes in all layers, collectives included, of a cell's plans: in
// whichever order their axes lie.
func (s *searcher) leastLayers(p *Problem, c *cell, plan ir.Plan) costmodel.Seconds {
	if c.least > 0 {
		return c.least
	}
	b := s.baseOf(c, &plan)
	for i, g := range s.goingsOf(p, c, plan) {
		sum := costmodel.Seconds(0)
		for j, l := range s.sums(g, &b.key, b.profile, plan.MicroBatch) {
			sum += costmodel.Seconds(b.prog.Model.Segments[j].Count) * (l.forward + l.backward)
		}
		if i == 0 || sum < c.least {
			c.least = sum
		}
	}
	return c.least
}

// goingsOf are the ways in which collectives of layers go in one order of the axes or another, each once. They do not
// depend on the micro-batch.
func (s *searcher) goingsOf(p *Problem, c *cell, plan ir.Plan) (out []*going) {
	if c.goings != nil && *c.goings != nil {
		return *c.goings
	}
	of := s.baseOf(c, &plan).profile
	for _, plan.AxisOrder = range s.orders(p, &plan) {
		if g := s.goingAt(&plan, of); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	if c.goings != nil {
		*c.goings = out
	}
	return out
}

// nearly is at most what a family's own bound is, however its blocks are split: [searcher.leastWork] with collectives,
// and with the pipeline's fill and drain where a stage has one chunk. Of m micro-batches, a stage with the part w of a
// micro-batch's work W ends no earlier than after m·w and the parts of all stages before it. The last to end is
// earliest where all end at once, each part 1-1/m times the one before: after W/(1-(1-1/m)^pp). It says nothing of
// plans that do backward in two passes.
func (s *searcher) nearly(p *Problem, c *cell, plan *ir.Plan) costmodel.Seconds {
	if c == nil || plan.Splits() {
		return 0
	}
	work, m, pp := s.leastLayers(p, c, *plan), float64(plan.MicroBatches), float64(plan.PP)
	times := m / pp
	if plan.VPP == 1 && plan.PP > 1 {
		times = 1 / (1 - math.Pow(1-1/m, pp))
	}
	return costmodel.Seconds(times) * work * (1 - 2*tie)
}

// base is that of a family which has a bound, its own or its cell's.
func (f *family) base() *base {
	if f.cell.opened != nil && f.cell.blocks[0] != nil {
		return f.cell.blocks[0].base
	}
	return f.cell.base
}
