package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// degreeClass is what families share that agree in the degrees, in sp and in the micro-batch, and all do backward in one pass
// or in two: they differ in chunks and schedules.
type degreeClass struct {
	*degreeClassDetails                   // nil until one of the families was looked into; see looked
	minLayerTime        costmodel.Seconds // see leastLayers; 0 where nobody asked
	minWork             costmodel.Seconds // leastWork of each plan; likewise
	base                *baseProfile      // likewise
	costs               []layerTimes      // of layers where the axes are in their usual order; likewise
	// see goingsOf: one list for all cells that it is the same for; nil: this has none in common
	routeSets *[]*routeSet
}

// degreeClassDetails is what is found out about a cell whose families are looked into, which are few.
type degreeClassDetails struct {
	orders     []axisOrder // once they were asked for
	blocks     [variantCount]*blocks
	layerTimes [variantCount][][]layerTimes // of layers, by the order's place
	timeBounds []layerTimeBound
	// by whether the first and the last chunk lie apart, by zero, and by how groups share a copy
	stateLayouts [2][4][3]*stateLayout
}

// withDetails is the cell, with room for what is found out about it.
func (c *degreeClass) withDetails() *degreeClass {
	if c.degreeClassDetails == nil {
		c.degreeClassDetails = &degreeClassDetails{}
	}
	return c
}

// baseOf is a cell's base, a plan of which is given.
func (s *searcher) baseOf(c *degreeClass, plan *ir.Plan) *baseProfile {
	if c.base == nil {
		c.base = s.base(*plan)
	}
	return c.base
}

// degreeClass finds the cell of a plan whose micro-batch is at its place, or makes it. Plans that are illegal by their degrees
// have none.
func (e *enumeration) degreeClass(plan *ir.Plan) *degreeClass {
	if !e.degreesLegal {
		return nil
	}
	all := &e.classes[bit(plan.Splits())]
	for len(*all) <= e.microIndex {
		if len(e.classSlab) == 0 {
			e.classSlab = make([]degreeClass, 64)
		}
		e.classSlab[0].routeSets = e.routeSets[bit(plan.Splits())]
		*all, e.classSlab = append(*all, &e.classSlab[0]), e.classSlab[1:]
	}
	return (*all)[e.microIndex]
}

// workBound is [searcher.minWork] of a cell's plans, which is the same of each.
func (s *searcher) workBound(c *degreeClass, plan *ir.Plan) costmodel.Seconds {
	if c == nil {
		return s.minWork(plan)
	}
	if c.minWork == 0 {
		c.minWork = s.minWork(plan)
	}
	return c.minWork
}

// minLayerTime is the least that a micro-batch takes in all layers, collectives included, of a cell's plans: in
// whichever order their axes lie.
func (s *searcher) minLayerTime(p *Problem, c *degreeClass, plan ir.Plan) costmodel.Seconds {
	if c.minLayerTime > 0 {
		return c.minLayerTime
	}
	b := s.baseOf(c, &plan)
	for i, g := range s.routeSetsOf(p, c, plan) {
		sum := costmodel.Seconds(0)
		for j, l := range s.layerTimes(g, &b.key, b.profile, plan.MicroBatch) {
			sum += costmodel.Seconds(b.prog.Model.Segments[j].Count) * (l.forward + l.backward)
		}
		if i == 0 || sum < c.minLayerTime {
			c.minLayerTime = sum
		}
	}
	return c.minLayerTime
}

// routeSetsOf are the ways in which collectives of layers go in one order of the axes or another, each once. They do not
// depend on the micro-batch.
func (s *searcher) routeSetsOf(p *Problem, c *degreeClass, plan ir.Plan) (out []*routeSet) {
	if c.routeSets != nil && *c.routeSets != nil {
		return *c.routeSets
	}
	of := s.baseOf(c, &plan).profile
	for _, plan.AxisOrder = range s.orders(p, &plan) {
		if g := s.routeSetAt(&plan, of); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	if c.routeSets != nil {
		*c.routeSets = out
	}
	return out
}

// pipelineBound is at most what a family's own bound is, however its blocks are split: [searcher.minWork] with collectives,
// and with the pipeline's fill and drain where a stage has one chunk. Of m micro-batches, a stage with the part w of a
// micro-batch's work W ends no earlier than after m·w and the parts of all stages before it. The last to end is
// earliest where all end at once, each part 1-1/m times the one before: after W/(1-(1-1/m)^pp). It says nothing of
// plans that do backward in two passes.
func (s *searcher) pipelineBound(p *Problem, c *degreeClass, plan *ir.Plan) costmodel.Seconds {
	if c == nil || plan.Splits() {
		return 0
	}
	work, m, pp := s.minLayerTime(p, c, *plan), float64(plan.MicroBatches), float64(plan.PP)
	times := m / pp
	if plan.VPP == 1 && plan.PP > 1 {
		times = 1 / (1 - math.Pow(1-1/m, pp))
	}
	return costmodel.Seconds(times) * work * (1 - 2*tie)
}

// baseProfile is that of a family which has a bound, its own or its cell's.
func (f *family) base() *baseProfile {
	if f.class.degreeClassDetails != nil && f.class.blocks[0] != nil {
		return f.class.blocks[0].base
	}
	return f.class.base
}
