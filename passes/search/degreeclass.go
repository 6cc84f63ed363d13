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

// minWork returns a lower bound of a plan's step for any split of its blocks and any sharding: a stage's even share
// of the compute time of all layers, without recomputation, messages or collectives. With a split backward pass,
// gradients are counted as if they were not added to earlier ones, if a sharding allows that.
func (s *layerTimer) minWork(p *ir.Plan) costmodel.Seconds {
	work := s.layersWork(p)
	if p.Splits() && p.Replicas() > 1 {
		q := *p
		q.Zero = 2 - min(2, p.Zero)
		work = min(work, s.layersWork(&q))
	}
	return costmodel.Seconds(p.MicroBatches) * work / costmodel.Seconds(p.PP) * (1 - tie)
}

// layersWork returns the compute time of all layers for one micro-batch, under a plan's sharding.
func (s *layerTimer) layersWork(p *ir.Plan) costmodel.Seconds {
	b, k := s.base(*p), deviceMicro{s.device, p.MicroBatch}
	work, known := b.workByDevice[k]
	if !known {
		works := s.computeTimes(b.profile, p.MicroBatch, s.moeLoad(&b.key, p.MicroBatch))
		for _, seg := range b.prog.Model.Segments {
			for _, own := range works[b.profile.index(seg)] {
				work += costmodel.Seconds(seg.Count) * own.time
			}
		}
		b.workByDevice[k] = work
	}
	return work
}

// minLayerTime returns a lower bound of the time of a micro-batch in all layers, collectives included, in any order
// of the axes.
func (s *layerTimer) minLayerTime(p *space.Problem, c *degreeClass, plan ir.Plan) costmodel.Seconds {
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
func (s *layerTimer) routeSetsOf(p *space.Problem, c *degreeClass, plan ir.Plan) (out []*routeSet) {
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
func (s *layerTimer) pipelineBound(p *space.Problem, c *degreeClass, plan *ir.Plan) costmodel.Seconds {
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

// copyFor returns the class for a second worker.
func (c *degreeClass) copyFor(t *layerProfiler, all map[*degreeClass]*degreeClass) *degreeClass {
	if c == nil || all[c] != nil {
		return all[c]
	}
	own := *c
	if c.routeSets != nil && *c.routeSets == nil {
		own.routeSets = nil
	}
	if c.base != nil {
		own.base = t.bases[c.base.key]
	}
	if c.degreeClassDetails != nil {
		in := *c.degreeClassDetails
		own.degreeClassDetails = &in
		in.blocks = [space.VariantCount]*blocks{}
		for i := range in.layerTimes {
			in.layerTimes[i] = slices.Clone(in.layerTimes[i])
		}
		in.timeBounds = slices.Clone(in.timeBounds)
	}
	all[c] = &own
	return &own
}
