package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// degreeClass is what families share that agree in degrees, sp, micro-batch, and in whether the backward pass is
// split. They differ in chunks and schedules.
type degreeClass struct {
	*degreeClassDetails                   // nil until one of the families is examined, see withDetails
	minLayerTime        costmodel.Seconds // see [layerTimer.minLayerTime]; 0 if not computed
	minWork             costmodel.Seconds // see [layerTimer.minWork]; 0 if not computed
	base                *baseProfile      // nil if not computed
	// layer times with the axes in their default order; nil if not computed
	costs []layerTimes
	// see [layerTimer.routeSetsOf]; one list for all classes with the same routes, nil if the class shares none
	routeSets *[]*routeSet
}

// degreeClassDetails is what is known about a class whose families are examined, which are few.
type degreeClassDetails struct {
	orders     []axisOrder // once computed
	blocks     [space.VariantCount]*blocks
	layerTimes [space.VariantCount][][]layerTimes // by the axis order's index
	timeBounds []layerTimeBound
	// by whether the first and the last chunk are on different stages, by ZeRO stage, and by groupsOf
	stateLayouts [2][4][3]*stateLayout
}

// withDetails returns the class after allocating its details.
func (c *degreeClass) withDetails() *degreeClass {
	if c.degreeClassDetails == nil {
		c.degreeClassDetails = &degreeClassDetails{}
	}
	return c
}

// baseOf returns the base profile of a class, given one of its plans.
func (s *layerProfiler) baseOf(c *degreeClass, plan *ir.Plan) *baseProfile {
	if c.base == nil {
		c.base = s.base(*plan)
	}
	return c.base
}

// degreeClass returns the class of a plan with the current micro-batch. Plans whose degrees are illegal have none.
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

// workBound returns [layerTimer.minWork] of a class's plans, which is the same for each.
func (s *layerTimer) workBound(c *degreeClass, plan *ir.Plan) costmodel.Seconds {
	if c == nil {
		return s.minWork(plan)
	}
	if c.minWork == 0 {
		c.minWork = s.minWork(plan)
	}
	return c.minWork
}

// minLayerTime returns a lower bound of the time of a micro-batch in all layers, collectives included, in any order
// of the axes.
func (s *layerTimer) minLayerTime(p *Problem, c *degreeClass, plan ir.Plan) costmodel.Seconds {
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

// routeSetsOf returns the distinct route sets of a class's layers over all orders of the axes. They do not depend on
// the micro-batch.
func (s *layerTimer) routeSetsOf(p *Problem, c *degreeClass, plan ir.Plan) (out []*routeSet) {
	if c.routeSets != nil && *c.routeSets != nil {
		return *c.routeSets
	}
	prof := s.baseOf(c, &plan).profile
	for _, plan.AxisOrder = range s.Orders(p, &plan) {
		if g := s.routeSetAt(&plan, prof); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	if c.routeSets != nil {
		*c.routeSets = out
	}
	return out
}

// pipelineBound returns a lower bound of a family's step for any split of its blocks: [layerTimer.minWork] with
// collectives, and with the fill and drain of the pipeline if a stage has one chunk. With m micro-batches, a stage
// with the part w of a micro-batch's work W ends no earlier than after m·w plus the parts of all earlier stages. The
// last stage ends earliest if all end at once, each part being 1-1/m times the previous one: after W/(1-(1-1/m)^pp).
// It is 0 for plans with a split backward pass.
func (s *layerTimer) pipelineBound(p *Problem, c *degreeClass, plan *ir.Plan) costmodel.Seconds {
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

// base returns the base profile of a family that has a bound of its own or of its class.
func (f *family) base() *baseProfile {
	if f.class.degreeClassDetails != nil && f.class.blocks[0] != nil {
		return f.class.blocks[0].base
	}
	return f.class.base
}
