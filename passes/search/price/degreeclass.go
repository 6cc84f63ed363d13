package price

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// DegreeClass is what families share that agree in degrees, sp, micro-batch, and in whether the backward pass is
// split. They differ in chunks and schedules.
type DegreeClass struct {
	*degreeClassDetails                     // nil until one of the families is examined, see withDetails
	minLayerTime        costmodel.Seconds   // see [layerTimer.minLayerTime]; 0 if not computed
	minWork             costmodel.Seconds   // see [layerTimer.minWork]; 0 if not computed
	base                *baseProfile        // nil if not computed
	layerTotals         []costmodel.Seconds // see [layerTimer.LayerTotals]; nil if not computed
	// see [layerTimer.routeSetsOf]; one list for all classes with the same routes, nil if the class shares none
	routeSets *[]*routeSet
}

// degreeClassDetails is what is known about a class whose families are examined, which are few.
type degreeClassDetails struct {
	orders     []AxisOrder // once computed
	blocks     [space.VariantCount]*blocks
	layerTimes [space.VariantCount][][]layerTimes // by the axis order's index
	timeBounds []layerTimeBound
	// by whether the first and the last chunk are on different stages, by ZeRO stage, and by groupsOf
	stateLayouts [2][4][3]*stateLayout
}

// ClassSlab allocates the degree classes of one choice of the degrees and of sp, one for each micro-batch and for
// whether the backward pass is split. They share the routes of their collectives. The zero value is ready to use.
type ClassSlab struct {
	// by whether the backward pass is split; classes by the index of the micro-batch
	classes   [2][]*DegreeClass
	routeSets [2]*[]*routeSet
	free      []DegreeClass // allocated, but not used yet
}

// Start begins with new degrees.
func (s *ClassSlab) Start() {
	s.classes[0], s.classes[1] = s.classes[0][:0], s.classes[1][:0]
	s.routeSets = [2]*[]*routeSet{new([]*routeSet), new([]*routeSet)}
}

// Class returns the class of a plan, given the index of its micro-batch size.
func (s *ClassSlab) Class(plan *ir.Plan, microIndex int) *DegreeClass {
	const slab = 64 // classes that are allocated at once
	split := 0
	if plan.Splits() {
		split = 1
	}
	all := &s.classes[split]
	for len(*all) <= microIndex {
		if len(s.free) == 0 {
			s.free = make([]DegreeClass, slab)
		}
		s.free[0].routeSets = s.routeSets[split]
		*all, s.free = append(*all, &s.free[0]), s.free[1:]
	}
	return (*all)[microIndex]
}

// withDetails returns the class after allocating its details.
func (c *DegreeClass) withDetails() *DegreeClass {
	if c.degreeClassDetails == nil {
		c.degreeClassDetails = &degreeClassDetails{}
	}
	return c
}

// baseOf returns the base profile of a class, given one of its plans.
func (s *layerProfiler) baseOf(c *DegreeClass, plan *ir.Plan) *baseProfile {
	if c.base == nil {
		c.base = s.base(*plan)
	}
	return c.base
}

// LayerTotals returns the time of a layer of each segment for one micro-batch of a class's plans: forward and backward
// pass with their collectives, without recomputation, with the axes in their default order. plan is one of the plans.
func (s *layerTimer) LayerTotals(c *DegreeClass, plan *ir.Plan) []costmodel.Seconds {
	if c.layerTotals == nil {
		b := s.baseOf(c, plan)
		times := s.layerTimes(s.routeSetAt(plan, b.profile), &b.key, b.profile, plan.MicroBatch)
		c.layerTotals = make([]costmodel.Seconds, len(times))
		for i := range times {
			c.layerTotals[i] = times[i].total()
		}
	}
	return c.layerTotals
}

// WorkBound returns a lower bound of the steps of a class's plans, from compute alone, see [layerTimer.minWork]. It is
// the same for each. plan is one of the plans.
func (s *layerTimer) WorkBound(c *DegreeClass, plan *ir.Plan) costmodel.Seconds {
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
	return costmodel.Seconds(p.MicroBatches) * work / costmodel.Seconds(p.PP) * (1 - Tie)
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
func (s *layerTimer) minLayerTime(p *space.Problem, c *DegreeClass, plan ir.Plan) costmodel.Seconds {
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
func (s *layerTimer) routeSetsOf(p *space.Problem, c *DegreeClass, plan ir.Plan) (out []*routeSet) {
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

// PipelineBound returns a lower bound of a family's step for any split of its blocks: [layerTimer.minWork] with
// collectives, and with the fill and drain of the pipeline if a stage has one chunk. With m micro-batches, a stage
// with the part w of a micro-batch's work W ends no earlier than after m·w plus the parts of all earlier stages. The
// last stage ends earliest if all end at once, each part being 1-1/m times the previous one: after W/(1-(1-1/m)^pp).
// It is 0 for plans with a split backward pass.
func (s *layerTimer) PipelineBound(p *space.Problem, c *DegreeClass, plan *ir.Plan) costmodel.Seconds {
	if c == nil || plan.Splits() {
		return 0
	}
	work, m, pp := s.minLayerTime(p, c, *plan), float64(plan.MicroBatches), float64(plan.PP)
	times := m / pp
	if plan.VPP == 1 && plan.PP > 1 {
		times = 1 / (1 - math.Pow(1-1/m, pp))
	}
	return costmodel.Seconds(times) * work * (1 - 2*Tie)
}

// base returns the base profile of a family that has a bound of its own or of its class.
func (f *Family) base() *baseProfile {
	if f.class.degreeClassDetails != nil && f.class.blocks[0] != nil {
		return f.class.blocks[0].base
	}
	return f.class.base
}

// CopyFamily returns a family of another pricer for its fork: with what is known about its class, but without its own
// details. classes are those that were copied already, so that the copies share classes like the families do.
func (s *layerProfiler) CopyFamily(f *Family, classes map[*DegreeClass]*DegreeClass) Family {
	return Family{FamilySpec: f.FamilySpec, class: s.copyClass(f.class, classes)}
}

// copyClass returns a class of another pricer for its fork.
func (s *layerProfiler) copyClass(c *DegreeClass, all map[*DegreeClass]*DegreeClass) *DegreeClass {
	if c == nil || all[c] != nil {
		return all[c]
	}
	own := *c
	if c.routeSets != nil && *c.routeSets == nil {
		own.routeSets = nil
	}
	if c.base != nil {
		own.base = s.bases[c.base.key]
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
