package price

import (
	"fmt"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// Candidate is a plan in the form in which a search compares plans: its family, and the choices that a family leaves
// open.
type Candidate struct {
	Family    *Family
	Sharding  *space.Sharding
	Recompute *space.RecomputeChoice
	N         int // recompute count: recompute_layers or, for groups of blocks, recompute_every
	Order     *AxisOrder
}

// Plan returns the candidate as an [ir.Plan].
func (p *Candidate) Plan() ir.Plan {
	out := p.Family.Plan
	p.Recompute.Apply(&out, p.N)
	out.Zero, out.ZeroGroup, out.AxisOrder = p.Sharding.Zero, p.Sharding.Group, p.Order.Name
	return out
}

// CandidateOf returns a plan from outside a search as a candidate.
func CandidateOf(plan ir.Plan) *Candidate {
	family := NewFamily(&FamilySpec{Plan: plan, Counts: space.ParseCounts(&plan)}, &DegreeClass{})
	f := &family
	f.Plan.Zero, f.Plan.ZeroGroup, f.Plan.Recompute, f.Plan.RecomputeLayers, f.Plan.RecomputeEvery, f.Plan.
		RecomputeSplit = 0, 1, "none", 0, 1, false
	a := &space.RecomputeChoice{Kind: plan.Recompute, Split: plan.RecomputeSplit, MinN: min(1, plan.RecomputeLayers),
		MaxN: plan.LargestChunk()}
	o := newAxisOrder(plan, plan.AxisOrder)
	p := &Candidate{Family: f, Sharding: &space.Sharding{Zero: plan.Zero, Group: plan.ZeroGroup}, Recompute: a,
		N: plan.RecomputeLayers, Order: &o}
	if plan.RecomputeEvery > 1 {
		a.Grouped, a.Layers, a.MinN, a.MaxN, p.N = true, plan.RecomputeLayers, 2, plan.RecomputeLayers,
			plan.RecomputeEvery
	}
	return p
}

// scattersEachMicro reports whether gradients are scattered after each micro-batch by a pass of their own.
func (p *Candidate) scattersEachMicro() bool { return p.Family.splitsBackward && p.Sharding.Zero >= 2 }

// Priced is a plan with its prediction.
type Priced struct {
	Plan    ir.Plan
	Predict costmodel.Predict
	Stage   int // the fullest stage, whose memory the prediction reports
}

// Fits reports whether the plan fits into the devices' memory.
func (p Priced) Fits() bool { return p.Predict.MemoryBytes.Fits() }

// Price is what a search compares between plans.
type Price struct {
	Time   costmodel.Seconds // of the step; 0 if the plan does not fit
	Memory costmodel.Memory  // what a rank of the fullest stage needs
	Stage  int               // the fullest stage, whose memory it is
}

// candidateMemory returns what a rank of the fullest stage needs, and that stage.
func (s *Pricer) candidateMemory(p *Candidate) (costmodel.Memory, int) {
	s.measureActivations(&s.activationScratch, p.Family, p.Recompute, p.N, p.scattersEachMicro())
	a, stage := s.fullestStage(p.Family, &s.activationScratch, s.shardingCost(p.Family, *p.Sharding).stateMemory)
	return s.memoryOf(&a, p.Family), stage
}

// Moments returns what a rank of the fullest stage needs at each moment of training.
func (s *Pricer) Moments(p *Candidate) []costmodel.MemoryMoment {
	s.measureActivations(&s.activationScratch, p.Family, p.Recompute, p.N, p.scattersEachMicro())
	a, _ := s.fullestStage(p.Family, &s.activationScratch, s.shardingCost(p.Family, *p.Sharding).stateMemory)
	return s.problem.PricedEngine().Moments(s.memoryOf(&a, p.Family), int64(a.moment1+a.moment2))
}

// ArenaBytes returns the bytes of the arena of a candidate's fullest stage.
func (s *stepBounder) ArenaBytes(p *Candidate) int {
	s.measureActivations(&s.activationScratch, p.Family, p.Recompute, p.N, p.scattersEachMicro())
	return s.peakBytes(p.Family, &s.activationScratch, s.shardingCost(p.Family, *p.Sharding).stateMemory)
}

// Price simulates a plan that fits. Of a plan that does not fit, only the memory is known.
func (s *Pricer) Price(p *Candidate) (q Price) {
	q.Memory, q.Stage = s.candidateMemory(p)
	if q.Memory.Fits() {
		q.Time = s.stepOf(p).Total()
	}
	return q
}

// StepTime returns the step time of a plan, whether it fits or not.
func (s *Pricer) StepTime(p *Candidate) costmodel.Seconds {
	if q := s.Price(p); q.Time > 0 {
		return q.Time
	}
	return s.stepOf(p).Total()
}

// Priced returns a plan with its prediction.
func (s *Pricer) Priced(p *Candidate) Priced {
	plan := p.Plan()
	run := plan
	run.Precision = planPrecision(s.problem, &plan, plan.Zero)
	memory, stage := s.candidateMemory(p)
	predict := s.problem.PricedEngine().Predict(s.problem.Cluster, engines.Run{
		Time: s.stepOf(p).Simulate(), Memory: memory,
		Tokens:        s.problem.GlobalBatch * s.dims.Seq,
		ModelFlops:    float64(float64(s.problem.GlobalBatch) * s.modelFlops),
		Formula:       s.formula,
		HardwareFlops: s.hardwareFlops(p), Ranks: plan.Ranks(), Precision: run.Precision, GEMM: s.problem.Computes(),
		PP: plan.PP, Experts: plan.MoESlack > 0,
	})
	predict.BytesPerParam = s.problem.PricedEngine().BytesPerParam(&run, s.problem.Recipe)
	return Priced{plan, predict, stage}
}

// hardwareFlops returns the matmul and attention flops of a rank in a step, in the mean over the stages.
func (s *Pricer) hardwareFlops(p *Candidate) float64 {
	f := p.Family
	b, fr := s.blocksOf(f, p.Recompute, p.scattersEachMicro()), s.pipelineSplit(f)
	layers, every := p.Recompute.LayersAndEvery(p.N)
	sum, load := 0.0, s.moeLoad(&b.base.key, b.micro)
	for i := range fr.kinds {
		for _, r := range fr.kinds[i].parts(layers, every, p.Recompute.Split) {
			seg := b.base.prog.Model.Segments[r.segment]
			if r.Remat {
				seg = seg.Remat
			}
			found := b.base.profile.segment(seg)
			hard := found.forward.matmulFlopsAt(b.micro, load) + found.backward.matmulFlopsAt(b.micro, load) +
				found.weights.matmulFlopsAt(b.micro,
					load)
			if r.Every > 0 {
				hard += found.forward.matmulFlopsAt(b.micro, load)
			}
			sum += float64(float64(fr.kinds[i].count*r.Count*f.Plan.MicroBatches) * hard)
		}
	}
	return sum / float64(f.Plan.PP)
}

// part is a run of a kind of chunk. Its layers are numbered from the first of their segment in the chunk.
type part struct {
	ir.Run
	segment int
}

// parts returns a kind's runs; recomputed layers are separate runs.
func (c *chunkKind) parts(layers, every int, split bool) (out []part) {
	for _, r := range c.runs {
		recomputed := 0
		if !r.end {
			recomputed = min(layers, r.count)
			layers -= recomputed
		}
		if recomputed > 0 {
			p := part{ir.Run{Count: recomputed, Remat: every == 1, Split: split}, r.segment}
			if every > 1 {
				p.Every = every
			}
			out = append(out, p)
		}
		if recomputed < r.count {
			out = append(out, part{ir.Run{From: recomputed, Count: r.count - recomputed}, r.segment})
		}
	}
	return out
}

// stepOf returns the times of a plan's step.
func (s *Pricer) stepOf(p *Candidate) *costmodel.Step {
	f, plan, e := p.Family, p.Plan(), s.problem.PricedEngine()
	plan.Precision = planPrecision(s.problem, &plan, plan.Zero)
	b, fr, st := s.blocksOf(f, p.Recompute, p.scattersEachMicro()), s.pipelineSplit(f),
		s.shardingCost(p.Family, *p.Sharding).layout
	costs := s.layerCosts(nil, s.routeSetOn(f, b, p.Order), &b.base.key, b.base.profile, b.micro)
	prices := &bucketPrices{pricer: s, state: st, plan: plan, order: p.Order, owners: ownersOf(&plan, p.Sharding.Group)}
	updates := s.updatesOf(p, fr, prices)
	step := &costmodel.Step{Timetable: s.timetable(f), Overlap: s.overlap[min(p.Sharding.Zero, 1)],
		Other:     s.device.StepOverhead() + prices.price(0, bucketLine).other,
		Preposted: s.problem.Recipe.PrepostReceives, Stages: make([]costmodel.Stage, f.Plan.PP)}
	e.SetAhead(step)
	kinds, plain := make([][]costmodel.Layers, len(fr.kinds)), s.plainPasses(&plan, b.base)
	layers, every := p.Recompute.LayersAndEvery(p.N)
	for i := range fr.kinds {
		for _, r := range fr.kinds[i].parts(layers, every, p.Recompute.Split) {
			l := layersOf(&r.Run, r.segment, &costs[r.segment])
			l.Fetch, l.Scatter = prices.zeroTime(r.segment)
			plain.addTo(&l, r.segment)
			kinds[i] = append(kinds[i], l)
		}
	}
	message, copied := s.messageTime(f, b.stream, p.Order), s.copyTime(b.stream)
	for i := range step.Stages {
		from := &fr.stages[i]
		to := &step.Stages[i]
		to.Chunks = make([]costmodel.Chunk, 0, len(from.chunks))
		for _, c := range from.chunks {
			chunk := costmodel.Chunk{Runs: kinds[fr.kindOf[c]], From: fr.firstLayer[c], Split: f.splitsBackward,
				Apart: len(from.chunks) > 1,
				Waits: e.Waits(&f.Plan), Contention: s.contends(p.Sharding.Zero),
				Host: s.device.PassOverhead() / costmodel.Seconds(f.Plan.VPP)}
			if c+1 < len(fr.kindOf) && f.Plan.StageOf(c+1) != i {
				chunk.Output = message
			}
			if c > 0 && f.Plan.StageOf(c-1) != i {
				chunk.Grad = message
			}
			chunk.CopyInput, chunk.CopyGrad = copied.passes(c, len(fr.kindOf))
			s.copyAtPasses(&chunk)
			to.Chunks = append(to.Chunks, chunk)
		}
		to.Buckets, to.Norm = updates[i].buckets, updates[i].norm
	}
	return step
}

// stageBuckets are a stage's buckets, and the time of its norm.
type stageBuckets struct {
	buckets []costmodel.BucketCost
	norm    costmodel.Seconds
}

// pricedUpdates are the buckets of all stages of plans that differ only in recomputation. The search often prices such
// plans in sequence.
type pricedUpdates struct {
	family   *Family
	sharding space.Sharding
	order    AxisOrder
	stages   []stageBuckets
}

// updatesOf returns the buckets of a plan's stages.
func (s *Pricer) updatesOf(p *Candidate, fr *pipelineSplit, prices *bucketPrices) []stageBuckets {
	if u := &s.lastUpdates; u.family == p.Family && u.sharding == *p.Sharding && u.order == *p.Order {
		return u.stages
	}
	stages := make([]stageBuckets, len(fr.stages))
	size := 0 // buckets of the largest stage so far
	for i := range stages {
		to := &stages[i]
		to.buckets, to.norm = prices.stage(make([]costmodel.BucketCost, 0, size), fr, &fr.stages[i])
		size = max(size, len(to.buckets))
	}
	s.lastUpdates = pricedUpdates{p.Family, *p.Sharding, *p.Order, stages}
	return stages
}

// timetable returns the schedule of a family's stages.
func (s *layerProfiler) timetable(f *Family) *ir.Timetable {
	k := scheduleKey{f.Plan.Schedule, f.Plan.PP, f.Plan.VPP, f.Plan.MicroBatches}
	if t := s.timetables[k]; t != nil {
		return t
	}
	t := &ir.Timetable{Micro: k.micro}
	for i, st := range s.pipelineSplit(f).stages {
		t.Chunks = append(t.Chunks, st.chunks)
		t.Do = append(t.Do, passes.Turns(f.Plan, i))
	}
	s.timetables[k] = t
	return t
}

// bucketPrices computes the costs of one plan's buckets.
type bucketPrices struct {
	pricer *Pricer
	state  *stateLayout
	plan   ir.Plan
	order  *AxisOrder
	owners

	// the last price, because most buckets of a class have the same size
	lastClass, lastElems int
	last                 *bucketPrice
}

// bucketKey is what the cost of a bucket depends on.
type bucketKey struct {
	state                        *stateLayout
	tp, dp, pp, cp, group        int
	strideTP, strideDP, stridePP int
	strideCP, ep, etp            int
	class, elems                 int
}

// bucketPrice is the cost of a bucket once per step, and of its parameters and gradients for each use.
type bucketPrice struct {
	costmodel.BucketCost
	gather, scatter, other costmodel.Seconds // other is what all stages do together
}

// Price returns the cost of a bucket, from the functions that pass bucket writes for it.
func (b *bucketPrices) price(class, elems int) *bucketPrice {
	if b.last == nil || b.lastClass != class || b.lastElems != elems {
		b.last, b.lastClass, b.lastElems = b.findPrice(class, elems), class, elems
	}
	return b.last
}

// findPrice returns the cached cost of a bucket, or computes it.
func (b *bucketPrices) findPrice(class, elems int) *bucketPrice {
	k := bucketKey{b.state, b.plan.TP, b.plan.DP, b.plan.PP, b.plan.CP, b.plan.ZeroGroup, b.order.tp, b.order.dp,
		b.order.pp, b.order.cp, b.plan.EP, b.plan.ETP, class, elems}
	if p := b.pricer.bucketPrices[k]; p != nil {
		return p
	}
	mesh, err := b.plan.Mesh(b.pricer.dims.KVHeads, b.pricer.problem.Recipe.VocabMultiple)
	if err != nil {
		panic(fmt.Sprintf("price: a legal plan has no mesh: %v: %v", b.plan, err))
	}
	from := b.state.prog
	t := &tables{Program: &ir.Program{Name: from.Name, Plan: b.plan, Mesh: mesh, Recipe: from.Recipe,
		Classes: from.Classes, Slots: from.Slots, Model: from.Model}}
	t.Stages = []ir.Stage{{Buckets: []ir.Bucket{{Class: class, Elems: elems,
		Pieces: []ir.Piece{{Segment: from.Model.Segments[0].Name}}}}}}
	passes.StageFuncs(t.Program, &t.Stages[0])
	t.Begin = passes.Begin(t.Program)
	to := b.pricer.stageUpdate(t, 0)
	p := &bucketPrice{BucketCost: to.buckets[0], other: to.other,
		gather:  b.pricer.bucketTime(t, t.Stages[0].GatherParams, 0),
		scatter: b.pricer.bucketTime(t, t.Stages[0].ScatterGrads, 0)}
	b.pricer.bucketPrices[k] = p
	return p
}

// zeroTime returns the time that a layer of a segment takes to gather before each use and to scatter after each
// backward pass.
func (b *bucketPrices) zeroTime(segment int) (fetch, scatter costmodel.Seconds) {
	if b.plan.Zero < 2 {
		return 0, 0
	}
	for _, u := range b.state.uses[segment] {
		c := &b.state.classes[u.class]
		p := b.price(u.class, passes.RoundUp(c.elems[u.segment], c.padTo(b.owners)))
		fetch, scatter = fetch+p.gather, scatter+p.scatter
	}
	return fetch, scatter
}

// stage appends a stage's buckets, as pass bucket splits them, to out, and returns them with the time of its norm.
func (b *bucketPrices) stage(out []costmodel.BucketCost, fr *pipelineSplit,
	from *splitStage) ([]costmodel.BucketCost, costmodel.Seconds) {
	elems, owned := b.state.elements(from.backwardOrder, b.owners)
	total := 0
	for i := range b.state.classes {
		for _, w := range from.backwardOrder {
			total += w.count * b.state.classes[i].elems[w.segment]
		}
	}
	limit := passes.BucketLimit(total)
	for i := range b.state.classes {
		c := &b.state.classes[i]
		open, last := 0, [2]int{}
		shut := func() {
			cost := b.price(i, passes.RoundUp(open, c.padTo(b.owners))).BucketCost
			cost.Segment, cost.Layer = last[0], last[1]
			out, open = append(out, cost), 0
		}
		fr.eachLayer(from, func(segment, layer int) {
			n := c.elems[segment]
			if n == 0 {
				return
			}
			open += n
			last = [2]int{segment, layer}
			if open >= limit || c.scatterEachMicro {
				shut()
			}
		})
		if open > 0 {
			shut()
		}
	}
	return out, b.pricer.norm(&b.plan, elems, owned)
}

// eachLayer calls do for a stage's layers in the order in which the backward pass computes their gradients.
func (fr *pipelineSplit) eachLayer(stage *splitStage, do func(segment, layer int)) {
	for i := len(stage.chunks) - 1; i >= 0; i-- {
		c := stage.chunks[i]
		runs := fr.kinds[fr.kindOf[c]].runs
		for j := len(runs) - 1; j >= 0; j-- {
			from := 0
			if j == 0 {
				from = fr.firstLayer[c]
			}
			for k := runs[j].count - 1; k >= 0; k-- {
				do(runs[j].segment, from+k)
			}
		}
	}
}

// quote is a plan's price in closed form: a lower bound of its step, and the bytes of the arena of its fullest stage,
// which are exact. The search compares plans by quotes, and simulates the few that no other quote rules out.
type quote struct {
	time  costmodel.Seconds
	bytes int
}

// quote returns a candidate's quote.
func (s *stepBounder) quote(p *Candidate) quote {
	s.measureActivations(&s.activationScratch, p.Family, p.Recompute, p.N, p.scattersEachMicro())
	r := s.shardingCost(p.Family, *p.Sharding)
	costs := s.layerTimesOf(p.Family, p.Recompute, p.scattersEachMicro(), p.Order)
	terms := s.boundTerms(p.Family, *p.Sharding, costs)
	terms.exact = true
	return quote{s.closedForm(&terms, *p.Sharding, p.Recompute, p.N, p.Order), s.peakBytes(p.Family,
		&s.activationScratch, r.stateMemory)}
}
