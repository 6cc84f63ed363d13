package price

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/fusion"
	"github.com/planc-dev/planc/passes"
)

// profileKey is everything that a block's partitioned functions depend on. Of dp it only matters whether there are
// replicas, because a rank's part of the batch is the micro-batch for any dp.
type profileKey struct {
	tp       int
	cp       int
	cpKind   string // of cp
	sp       bool
	micro    int
	replicas bool
	// kind of recomputation; "none" for groups of blocks, which have no functions of their own
	recompute        string
	split            bool
	splitBackward    bool // the backward pass has two parts
	scatterEachMicro bool // gradients are scattered after each micro-batch
	experts          expertKey
}

// keyOf returns the profile key of a plan.
func keyOf(p ir.Plan) profileKey {
	k := profileKey{p.TP, p.CP, p.CPKind, p.SP, p.MicroBatch, p.DP > 1, p.Recompute, p.RecomputeSplit, p.Splits(),
		p.Splits() && p.Zero >= 2, expertKeyOf(&p)}
	if p.RecomputeEvery > 1 {
		k.recompute = "none"
	}
	return k
}

// profile is the cost of one micro-batch by block: the result of the passes at one key.
type profile struct {
	prog        *ir.Program      // of one micro-batch, with dp 1 or 2
	segs        []segmentProfile // segments and their recomputed variants
	kinds       []commKind       // kinds of all collectives
	batchRows   []rowBytes       // the batch inputs
	logits      int              // bytes of the result of the logits entry
	castScratch int              // bytes of a CPU rank's scratch
	plain       *profile         // the profile whose segments it shares, if it was derived from another
}

// segmentProfile is one layer of a variant of a segment.
type segmentProfile struct {
	variant                    *ir.Segment
	forward, backward, weights funcProfile
	recomputes                 bool        // it recomputes forward values
	work                       int         // bytes of temporaries
	saved                      linearBytes // other engines only: bytes that a layer saves in addition to its input
}

// rowBytes is the bytes of a rank's part of one sequence of a batch input.
type rowBytes struct{ size int }

// function returns the profile of one of the layer's functions.
func (p *segmentProfile) function(kind ir.ActionKind) *funcProfile {
	switch kind {
	case ir.Forward:
		return &p.forward
	case ir.Backward:
		return &p.backward
	}
	return &p.weights
}

// functions returns the profiles of all functions.
func (p *segmentProfile) functions() [3]*funcProfile {
	return [3]*funcProfile{&p.forward, &p.backward, &p.weights}
}

// funcProfile is the work of a function on one rank, with an entry for each call that does any.
type funcProfile struct {
	calls       *fusion.Calls // of ops and comms; nil once these have their slopes
	ops         []linearOp
	comms       []linearComm
	overlaps    bool    // some collectives overlap ops
	flops       float64 // of all nodes
	matmulFlops float64 // of matmuls and attention
	matmulSlope float64 // increase of matmulFlops per sequence of the micro-batch
	roundFlops  linearFlops
}

// linearFlops is flops as a linear function of the micro-batch.
type linearFlops struct{ atOne, slope float64 }

// matmulFlopsAt returns the flops of matmuls and attention at a micro-batch with an expert load.
func (p *funcProfile) matmulFlopsAt(micro int, l moeLoad) float64 {
	all := p.matmulFlops + float64(float64(micro-1)*p.matmulSlope)
	return all + float64((l.rounds*l.filledPart-1)*(p.roundFlops.atOne+float64(float64(micro-1)*p.roundFlops.slope)))
}

// linearOp is an op as a linear function of the micro-batch: at + (k-1) · slope for k times the size.
type linearOp struct {
	at, slope costmodel.Op
	round     bool // executed in each round of the experts
	perSlot   bool // a GEMM of a round with a row per slot
	// an op of a round that recomputes a forward value in the backward pass
	recomputed bool
}

// linearComm is a collective whose bytes are a linear function of the micro-batch.
type linearComm struct {
	collective ir.Collective
	slope      float64
	routing    costmodel.Routing // other engines only: a token is sent once to each placement
	// other engines only: overlaps attention, except for the first of its members' turns
	overlapped bool
	opSpan
	group commGroup
	round bool
	kind  int // index among the profile's kinds
}

// profile returns the profile of a key, and computes it if needed.
func (s *layerProfiler) profile(k profileKey) *profile {
	if p := s.profiles[k]; p != nil {
		if s.stale[k] {
			s.replaceByEngine(p, k)
			p.classifyComms()
			delete(s.stale, k)
		}
		return p
	}
	p := s.newProfile(k)
	s.profiles[k] = p
	return p
}

// newProfile compiles the layers of a key.
func (s *layerProfiler) newProfile(k profileKey) *profile {
	plan := s.dims.SerialPlan(k.micro, s.problem.Precision)
	plan.TP, plan.SP, plan.CP, plan.CPKind = k.tp, k.sp, k.cp, k.cpKind
	if k.replicas {
		plan.DP = 2
	}
	k.experts.apply(&plan)
	if k.splitBackward {
		plan.PP, plan.Schedule, plan.StageLayers = 2, "zb-h1", fmt.Sprintf("%d,%d", (s.dims.Layers+1)/2,
			s.dims.Layers/2)
	}
	plan.AxisOrder = space.DefaultOrder(&plan)
	if k.scatterEachMicro {
		plan.Zero, plan.ZeroGroup = 2, plan.Replicas()
	}
	if k.recompute != "none" {
		plan.Recompute, plan.RecomputeLayers, plan.RecomputeSplit = k.recompute, 1, k.split
	}
	prog, err := passes.Compile(s.problem.Model, plan, s.problem.Recipe, passes.Options{Layers: true})
	if err != nil {
		panic(fmt.Sprintf("price: a legal plan does not compile: %v: %v", plan, err))
	}
	p := &profile{prog: prog, castScratch: prog.Scratch()}
	for _, seg := range prog.Model.Variants() {
		p.segs = append(p.segs, s.profileVariant(prog, seg))
		p.segs[len(p.segs)-1].recomputes = !slices.Contains(prog.Model.Segments, seg)
	}
	for _, in := range prog.BatchInputs() {
		p.batchRows = append(p.batchRows, rowBytes{in.Type.LocalBytes(prog.Mesh) / k.micro})
	}
	if l := prog.Model.Segments[len(prog.Model.Segments)-1].Logits; l != nil {
		p.logits = l.Outputs[0].Type.LocalBytes(prog.Mesh)
	}
	s.replaceByEngine(p, k)
	p.classifyComms()
	return p
}

// profileVariant returns the profile of a variant of a segment. Functions of other engines are set later.
func (s *layerProfiler) profileVariant(p *ir.Program, seg *ir.Segment) segmentProfile {
	out := segmentProfile{variant: seg, work: workspaceBytes(p, seg)}
	if s.problem.PricedEngine().Own {
		onGPU := !s.problem.Cluster.IsCPU()
		for i, f := range []*ir.Func{seg.Forward, seg.Backward, seg.Weights} {
			*out.functions()[i] = profileFunction(f, onGPU, p.Mesh)
		}
	}
	return out
}

// workspaceBytes returns the workspace that a segment's functions need.
func workspaceBytes(p *ir.Program, s *ir.Segment) int {
	end := 0
	for _, f := range s.Funcs() {
		for _, n := range f.Nodes {
			for _, o := range n.Outs {
				if o.Place.Region == ir.PlaceWork {
					end = max(end, o.Place.Offset+roundUp(o.Type.LocalBytes(p.Mesh)))
				}
			}
		}
	}
	return end
}

// profileFunction lists the work of a function's calls at its current micro-batch.
func profileFunction(f *ir.Func, onGPU bool, m ir.Mesh) funcProfile {
	p := funcProfile{}
	if f == nil {
		return p
	}
	remade := recomputedOps(f)
	p.calls = fusion.Of(f, onGPU, m)
	p.ops = make([]linearOp, 0, len(p.calls.Nodes))
	for i, n := range p.calls.Nodes {
		if c, ok := n.Collective(m); ok {
			p.comms = append(p.comms, linearComm{collective: c, opSpan: overlapSpan(p.calls.Nodes[i:], m, len(p.ops)),
				group: commGroupOf(n, c.Axes, m), round: n.Attr.Round})
			p.overlaps = p.overlaps || n.Op == ir.OpShift
			continue
		}
		if n.Op.NoWork() {
			continue
		}
		perSlot := len(n.Outs) > 0 && n.Outs[0].Type.Has(ir.SlotDim)
		p.add(costmodel.OpOfCall(n, p.calls.Call(n), m), n.Attr.Round, perSlot)
		p.ops[len(p.ops)-1].recomputed = remade[n]
	}
	return p
}

// setSlopes sets the slopes of a function that now has one more sequence.
func (p *funcProfile) setSlopes(m ir.Mesh) {
	if p.calls == nil {
		return
	}
	hard, round, ops, comms := 0.0, 0.0, p.ops, p.comms
	for _, n := range p.calls.Nodes {
		if c, ok := n.Collective(m); ok {
			comms[0].slope = float64(c.Bytes - comms[0].collective.Bytes)
			comms = comms[1:]
			continue
		}
		if n.Op.NoWork() {
			continue
		}
		o := costmodel.OpOfCall(n, p.calls.Call(n), m)
		ops[0].slope = ops[0].at.Slope(&o)
		if o.Kind != costmodel.Vector {
			hard += o.Flops
			if ops[0].round {
				round += o.Flops
			}
		}
		ops = ops[1:]
	}
	p.matmulSlope, p.roundFlops.slope, p.calls = hard-p.matmulFlops, round-p.roundFlops.atOne, nil
}

// add adds an op. round says that it belongs to the experts' rounds, and perSlot that its result has a row per slot.
func (p *funcProfile) add(o costmodel.Op, round, places bool) {
	p.flops += o.Flops + o.Fused.Flops
	if o.Kind != costmodel.Vector {
		p.matmulFlops += o.Flops
		if round {
			p.roundFlops.atOne += o.Flops
		}
	}
	p.ops = append(p.ops, linearOp{at: o, round: round, perSlot: places})
}

// segment returns the profile of a variant of a segment.
func (p *profile) segment(v *ir.Segment) *segmentProfile { return &p.segs[p.index(v)] }

// index returns the index of a variant.
func (p *profile) index(v *ir.Segment) int {
	return slices.IndexFunc(p.segs, func(s segmentProfile) bool { return s.variant == v })
}

// layerCost is the cost of a layer of a segment and of its recomputed variant.
type layerCost struct {
	forward, backward, weights  costmodel.Cost
	rematForward, rematBackward costmodel.Cost
}

// layerTimes are the totals of a layerCost, in seconds.
type layerTimes struct{ forward, backward, weights, rematForward, rematBackward costmodel.Seconds }

// sums returns the totals.
func (c *layerCost) sums() layerTimes {
	return layerTimes{c.forward.Sum(), c.backward.Sum(), c.weights.Sum(), c.rematForward.Sum(), c.rematBackward.Sum()}
}

// total returns the time of a layer that is not recomputed.
func (c *layerTimes) total() costmodel.Seconds { return c.forward + c.backward + c.weights }

// costKey is what the costs of layers depend on: the routes of their collectives, and the multiple of the profile's
// micro-batch.
type costKey struct {
	routeSet *routeSet
	times    int
}

// routeSetAt returns the route set of a profile on a plan's mesh.
func (s *collectiveTimer) routeSetAt(plan *ir.Plan, p *profile) *routeSet {
	return s.routeSetFor(p, &lazyMesh{plan: plan, strides: strides(plan, stride(plan, "tp"), stride(plan, "cp"),
		stride(plan, "dp"))})
}

// layerTimes returns the layer times of the model's segments at a multiple of the profile's micro-batch. They are
// cached, because bounds of very many plans need them. Full costs are not.
func (s *layerTimer) layerTimes(g *routeSet, k *profileKey, p *profile, times int) []layerTimes {
	key := costKey{g, times}
	if c := s.layerTimeCache[key]; c != nil {
		return c
	}
	s.costScratch = s.layerCosts(s.costScratch[:0], g, k, p, times)
	out := make([]layerTimes, len(s.costScratch))
	for i := range out {
		out[i] = s.costScratch[i].sums()
	}
	s.layerTimeCache[key] = out
	return out
}

// layerCosts appends the costs of the model's segments at a multiple of the profile's micro-batch to out.
func (s *layerTimer) layerCosts(out []layerCost, g *routeSet, k *profileKey, p *profile, times int) []layerCost {
	load, routes := s.moeLoad(k, k.micro*times), g.routes
	works := s.computeTimes(p, times, load)
	for _, seg := range p.prog.Model.Segments {
		c, at := layerCost{}, p.index(seg)
		plain, work := &p.segs[at], &works[at]
		c.forward = s.functionCost(&plain.forward, &work[0], times, load, routes)
		c.backward = s.functionCost(&plain.backward, &work[1], times, load, routes)
		c.weights = s.functionCost(&plain.weights, &work[2], times, load, routes)
		if seg.Remat != nil {
			at = p.index(seg.Remat)
			recomputed, work := &p.segs[at], &works[at]
			c.rematForward = s.functionCost(&recomputed.forward, &work[0], times, load, routes)
			c.rematBackward = s.functionCost(&recomputed.backward, &work[1], times, load, routes)
		}
		out = append(out, c)
	}
	return out
}

// strides returns the strides that the costs of layers depend on.
func strides(p *ir.Plan, tp, cp, dp int) [3]int {
	if k := expertKeyOf(p); k.slack > 0 {
		if _, _, n := k.parts(p.TP, p.CP); n > 1 {
			return [3]int{tp, cp, dp}
		}
	}
	return [3]int{tp, cp}
}

// stride returns the distance in ranks of two neighbours on an axis.
func stride(p *ir.Plan, axis string) int {
	n := 1
	for a, rest := "", p.AxisOrder; rest != ""; n *= space.Degree(p, a) {
		a, rest, _ = strings.Cut(rest, ",")
		if a == axis {
			return n
		}
	}
	return n
}

// functionCost returns a function's time at k times the micro-batch of the profile, with an expert load, and with one
// route per kind of collective.
func (s *layerTimer) functionCost(p *funcProfile, own *computeTime, k int, load moeLoad,
	routes []commRoute) costmodel.Cost {
	if p.overlaps {
		return s.overlappedCost(p, own, k, load.rounds, routes)
	}
	c := costmodel.Cost{Compute: own.time, Recomputed: own.recomputed, PaddedSlots: own.padding}
	kernels, concurrent, hidden := own.kernels, costmodel.Seconds(0), costmodel.Seconds(0)
	for i := range p.comms {
		l := &p.comms[i]
		w := &routes[l.kind]
		t, more := s.collectiveTime(l, w, k, load.rounds)
		kernels += more
		if l.overlapped {
			concurrent += t
			hidden = own.attention * costmodel.Seconds(1-1/float64(w.placement.Ranks()))
			continue
		}
		l.addTo(&c, t)
	}
	c.Context += max(0, concurrent-hidden)
	s.overlapExperts(&c)
	return s.withHostTime(c, kernels)
}

// overlapExperts subtracts the part of the expert exchange that the engine hides: a fraction of it, at most the
// compute time, which gets slower meanwhile. The sum of both grows with each of them.
func (s *layerTimer) overlapExperts(c *costmodel.Cost) {
	e := s.problem.PricedEngine()
	hidden := min(costmodel.Seconds(e.HiddenEP)*c.Experts, c.Compute)
	c.Experts -= hidden
	c.Compute += costmodel.Seconds(e.SlowsEP) * hidden
}

// withHostTime completes a cost whose Comm is that of tensor parallelism alone, as [linearComm.addTo] adds
// collectives up. Compute waits for a part of that, and for all communication over cp, ep and etp. A function takes
// at least the host's time for its kernels.
func (s *layerTimer) withHostTime(c costmodel.Cost, kernels float64) costmodel.Cost {
	c.Comm = c.Comm*costmodel.Seconds(s.exposedTP) + c.Context + c.Experts
	c.Compute = max(c.Compute, s.device.HostTime(kernels)-c.Comm)
	return c
}

// collectiveTime returns the time of a collective at k times the micro-batch of the profile, and the wait for the
// slowest host in kernel launches.
func (s *collectiveTimer) collectiveTime(l *linearComm, w *commRoute, k int, rounds float64) (t costmodel.Seconds,
	kernels float64) {
	times := 1.0
	if l.round {
		times = rounds
	}
	bytes := costmodel.Bytes(float64(l.collective.Bytes) + float64(float64(k-1)*l.slope))
	if l.routing.Choices > 0 {
		t = s.problem.Cluster.OnceTime(w.placement, bytes, l.routing)
	} else {
		t = w.route.Time(bytes)
	}
	return costmodel.Seconds(times) * t, float64(times * w.hostWaits)
}

// addTo adds a blocking collective to one part of a cost.
func (l *linearComm) addTo(c *costmodel.Cost, t costmodel.Seconds) {
	switch {
	case l.group.experts != nil:
		c.Experts += t
	case slices.ContainsFunc(l.collective.Axes, ir.Axis.IsContext):
		c.Context += t
	default:
		c.Comm += t
	}
}

// computeKey is what functions' compute time depends on: the profile covers degrees and cluster.
type computeKey struct {
	profile *profile
	times   int
}

// computeTime is the compute time of a function, without collectives.
type computeTime struct {
	time      costmodel.Seconds
	attention costmodel.Seconds // part of time
	// part of time: experts' forward values that the backward pass recomputes
	recomputed costmodel.Seconds
	// part of time: slots that no token fills; not part of recomputed
	padding costmodel.Seconds
	kernels float64
	perOp   []costmodel.Seconds // by op, if collectives overlap them
}

// computeTimes returns the compute times of all functions of a profile at k times its micro-batch: of each segment
// the forward pass, the backward pass, and its second part. The load follows from both.
func (s *layerTimer) computeTimes(p *profile, k int, l moeLoad) [][3]computeTime {
	all := s.works[s.device]
	if all == nil {
		all = map[computeKey][][3]computeTime{}
		s.works[s.device] = all
	}
	key := computeKey{p, k}
	if known := all[key]; known != nil {
		return known
	}
	out := make([][3]computeTime, len(p.segs))
	var shared [][3]computeTime
	if p.plain != nil && s.problem.PricedEngine().Own { // the constants of other engines may have changed since
		shared = s.computeTimes(p.plain, k, l)
	}
	for i := range p.segs {
		if shared != nil && !p.segs[i].recomputes {
			out[i], shared = shared[0], shared[1:]
			continue
		}
		for j, f := range p.segs[i].functions() {
			out[i][j] = s.computeTime(f, k, l)
		}
	}
	all[key] = out
	return out
}

// computeTime returns the compute time of one function.
func (s *layerTimer) computeTime(p *funcProfile, k int, l moeLoad) (own computeTime) {
	nothing := s.device.Within(&costmodel.Op{})
	for i := range p.ops {
		o := p.ops[i].at.Grown(&p.ops[i].slope, float64(k-1))
		times, filled := 1.0, nothing
		if p.ops[i].round {
			empty := l.skipEmptySlots(&o, p.ops[i].perSlot)
			times, filled = l.rounds, s.device.Within(&empty)
		}
		t := costmodel.Seconds(times) * (s.device.Time(&o) + filled)
		own.time += t
		if o.Kind >= costmodel.Attention {
			own.attention += t
		}
		if p.ops[i].round {
			full := l.withoutPadding(o, p.ops[i].perSlot)
			idle := costmodel.Seconds(times) * (s.device.Within(&o) + filled - s.device.Within(&full))
			own.padding += idle
			if p.ops[i].recomputed {
				own.recomputed += t - idle
			}
		}
		if p.overlaps {
			own.perOp = append(own.perOp, t)
		}
		own.kernels += float64(times * o.Issued())
	}
	return own
}
