package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// profileKey is everything that a block's partitioned functions depend on. Of dp they need only whether there
// are replicas: a rank's part of the batch is the micro-batch whatever dp is.
type profileKey struct {
	tp       int
	cp       int
	kind     string // of cp
	sp       bool
	micro    int
	replicas bool
	// what recomputed blocks do again: the plan's recompute; groups of blocks have no functions of their own
	again   string
	split   bool
	apart   bool // backward is two passes
	each    bool // whose gradients are scattered after each micro-batch
	experts expertKey
}

func keyOf(p ir.Plan) profileKey {
	k := profileKey{p.TP, p.CP, p.CPKind, p.SP, p.MicroBatch, p.DP > 1, p.Recompute, p.RecomputeSplit, p.Splits(),
		p.Splits() && p.Zero >= 2, expertKeyOf(&p)}
	if p.RecomputeEvery > 1 {
		k.again = "none"
	}
	return k
}

// profile is what one micro-batch costs, block by block: the passes' own result at one key.
type profile struct {
	prog   *ir.Program      // of one micro-batch, dp 1 or 2
	segs   []segmentProfile // and recomputed variants
	kinds  []commKind       // of the collectives of all of them
	rows   []rowBytes       // the batch inputs
	logits int              // bytes of the logits entry's result
	wide   int              // bytes of a CPU rank's scratch
	plain  *profile         // whose segments it shares, where it was put together from another's
}

// segmentProfile is one layer of a variant of a segment.
type segmentProfile struct {
	variant                    *ir.Segment
	forward, backward, weights funcProfile
	again                      bool // it makes forward values again
	work                       int  // bytes of temporaries
	saved                      line // of other engines: bytes that a layer keeps beside its input
}

// rowBytes is a batch input: bytes of a rank's part of one sequence.
type rowBytes struct{ size int }

// function is the profile of a function.
func (p *segmentProfile) function(kind ir.ActionKind) *funcProfile {
	switch kind {
	case ir.Forward:
		return &p.forward
	case ir.Backward:
		return &p.backward
	}
	return &p.weights
}

// functions are all of them.
func (p *segmentProfile) functions() [3]*funcProfile {
	return [3]*funcProfile{&p.forward, &p.backward, &p.weights}
}

// funcProfile is the work of a function on one rank, an entry for each node that has any.
type funcProfile struct {
	ops     []opLine
	comms   []commLine
	flights bool    // some of comms are on their way while ops run
	flops   float64 // of all nodes
	hard    float64 // of matmuls and attention
	more    float64 // of those, by which they grow with the micro-batch
	round   flopLine
}

// flopLine is flops as a line over the micro-batch.
type flopLine struct{ at, more float64 }

// hardAt is the flops of matmuls and attention at a micro-batch, where tokens load experts so.
func (p *funcProfile) hardAt(micro int, l load) float64 {
	all := p.hard + float64(float64(micro-1)*p.more)
	return all + float64((l.rounds*l.filled-1)*(p.round.at+float64(float64(micro-1)*p.round.more)))
}

// opLine is an op as a line over the micro-batch: at size k, at grown by (k-1)·slope.
type opLine struct {
	at, slope costmodel.Op
	round     bool // done in each round of the experts
	places    bool // of those, a product with a row for each place
	remade    bool // of those, a forward value that backward makes again
}

// commLine is a collective in line, its bytes as a line over the micro-batch.
type commLine struct {
	what   ir.Collective
	slope  float64
	once   costmodel.Routing // of other engines: of a token that goes once to each place
	beside bool              // of other engines: runs beside attention, but for the first of its members' turns
	flight
	group group
	round bool
	kind  int // among the profile's
}

// profile finds a profile, or makes it.
func (s *searcher) profile(k profileKey) *profile {
	if p := s.profiles[k]; p != nil {
		if s.stale[k] {
			s.foreign(p, k)
			p.sort()
			delete(s.stale, k)
		}
		return p
	}
	p := s.newProfile(k)
	s.profiles[k] = p
	return p
}

func (s *searcher) newProfile(k profileKey) *profile {
	plan := s.dims.plain(k.micro, s.problem.Precision)
	plan.TP, plan.SP, plan.CP, plan.CPKind = k.tp, k.sp, k.cp, k.kind
	if k.replicas {
		plan.DP = 2
	}
	k.experts.set(&plan)
	if k.apart {
		plan.PP, plan.Schedule, plan.StageLayers = 2, "zb-h1", fmt.Sprintf("%d,%d", (s.dims.Layers+1)/2,
			s.dims.Layers/2)
	}
	plan.AxisOrder = usualOrder(&plan)
	if k.each {
		plan.Zero, plan.ZeroGroup = 2, plan.Replicas()
	}
	if k.again != "none" {
		plan.Recompute, plan.RecomputeLayers, plan.RecomputeSplit = k.again, 1, k.split
	}
	prog, err := passes.Compile(s.problem.Model, plan, s.problem.Recipe, passes.Options{Layers: true})
	if err != nil {
		panic(fmt.Sprintf("search: a legal plan does not compile: %v: %v", plan, err))
	}
	p := &profile{prog: prog, wide: prog.Scratch()}
	for _, seg := range prog.Model.Variants() {
		p.segs = append(p.segs, scanned(prog, seg))
		p.segs[len(p.segs)-1].again = !slices.Contains(prog.Model.Segments, seg)
	}
	for _, in := range prog.BatchInputs() {
		p.rows = append(p.rows, rowBytes{in.Type.LocalBytes(prog.Mesh) / k.micro})
	}
	if l := prog.Model.Segments[len(prog.Model.Segments)-1].Logits; l != nil {
		p.logits = l.Outputs[0].Type.LocalBytes(prog.Mesh)
	}
	s.foreign(p, k)
	p.sort()
	return p
}

// scanned is the profile of a variant of a segment.
func scanned(p *ir.Program, seg *ir.Segment) segmentProfile {
	return segmentProfile{variant: seg, forward: scan(seg.Forward, p.Mesh), backward: scan(seg.Backward, p.Mesh),
		weights: scan(seg.Weights, p.Mesh),
		work:    temporaries(p, seg)}
}

// temporaries is the workspace that a segment's functions need.
func temporaries(p *ir.Program, s *ir.Segment) int {
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

// scan lists a function's work at its present micro-batch.
func scan(f *ir.Func, m ir.Mesh) funcProfile {
	p := funcProfile{}
	if f == nil {
		return p
	}
	p.ops = make([]opLine, 0, len(f.Nodes))
	remade := remadeBy(f)
	for i, n := range f.Nodes {
		if c, ok := n.Collective(m); ok {
			p.comms = append(p.comms, commLine{what: c, flight: flightOf(f, m, i, len(p.ops)),
				group: groupOf(n, c.Axes, m), round: n.Attr.Round})
			p.flights = p.flights || n.Op == ir.OpShift
			continue
		}
		if n.Op.View() {
			continue
		}
		p.add(costmodel.OpOf(n, m), n.Attr.Round, len(n.Outs) > 0 && n.Outs[0].Type.Has(ir.SlotDim))
		p.ops[len(p.ops)-1].remade = remade[n]
	}
	return p
}

// grow gives the lines of a function their slopes: f is it at one sequence more.
func (p *funcProfile) grow(f *ir.Func, m ir.Mesh) {
	if f == nil {
		return
	}
	hard, round, ops, comms := 0.0, 0.0, p.ops, p.comms
	for _, n := range f.Nodes {
		if c, ok := n.Collective(m); ok {
			comms[0].slope = float64(c.Bytes - comms[0].what.Bytes)
			comms = comms[1:]
			continue
		}
		if n.Op.View() {
			continue
		}
		o := costmodel.OpOf(n, m)
		ops[0].slope = ops[0].at.Slope(&o)
		if o.Kind != costmodel.Vector {
			hard += o.Flops
			if ops[0].round {
				round += o.Flops
			}
		}
		ops = ops[1:]
	}
	p.more, p.round.more = hard-p.hard, round-p.round.at
}

// add enters an op, which may be one of the experts' rounds, with a result for each place.
func (p *funcProfile) add(o costmodel.Op, round, places bool) {
	p.flops += o.Flops
	if o.Kind != costmodel.Vector {
		p.hard += o.Flops
		if round {
			p.round.at += o.Flops
		}
	}
	p.ops = append(p.ops, opLine{at: o, round: round, places: places})
}

// of is the profile of a variant of a segment.
func (p *profile) of(v *ir.Segment) *segmentProfile { return &p.segs[p.index(v)] }

func (p *profile) index(v *ir.Segment) int {
	return slices.IndexFunc(p.segs, func(s segmentProfile) bool { return s.variant == v })
}

// layerCost is what a layer of a segment costs, and of its recomputed variant.
type layerCost struct {
	forward, backward, weights  costmodel.Cost
	rematForward, rematBackward costmodel.Cost
}

// costSums are the whole of each cost.
type costSums struct{ forward, backward, weights, rematForward, rematBackward costmodel.Seconds }

func (c *layerCost) sums() costSums {
	return costSums{c.forward.Sum(), c.backward.Sum(), c.weights.Sum(), c.rematForward.Sum(), c.rematBackward.Sum()}
}

// whole is what a layer takes that is not recomputed.
func (c *costSums) whole() costmodel.Seconds { return c.forward + c.backward + c.weights }

// costKey is what the costs of layers depend on: how the collectives of a profile go, and how many times its
// micro-batch.
type costKey struct {
	going *going
	times int
}

// goingAt is how the collectives of a profile go on a plan's mesh.
func (s *searcher) goingAt(plan *ir.Plan, p *profile) *going {
	return s.goingOf(p, &meshAt{plan: plan, strides: strides(plan, stride(plan, "tp"), stride(plan, "cp"),
		stride(plan, "dp"))})
}

// sums are those of the costs of the model's segments at times the profile's micro-batch. Bounds need no more, of very
// many plans, so that these are kept and costs are not.
func (s *searcher) sums(g *going, k *profileKey, p *profile, times int) []costSums {
	key := costKey{g, times}
	if c := s.layerSums[key]; c != nil {
		return c
	}
	s.costing = s.costs(s.costing[:0], g, k, p, times)
	out := make([]costSums, len(s.costing))
	for i := range out {
		out[i] = s.costing[i].sums()
	}
	s.layerSums[key] = out
	return out
}

// costs are those of the model's segments at times the profile's micro-batch, behind out.
func (s *searcher) costs(out []layerCost, g *going, k *profileKey, p *profile, times int) []layerCost {
	load, ways := s.load(k, k.micro*times), g.ways
	works := s.worksOf(p, times, load)
	for _, seg := range p.prog.Model.Segments {
		c, at := layerCost{}, p.index(seg)
		plain, work := &p.segs[at], &works[at]
		c.forward = s.cost(&plain.forward, &work[0], times, load, ways)
		c.backward = s.cost(&plain.backward, &work[1], times, load, ways)
		c.weights = s.cost(&plain.weights, &work[2], times, load, ways)
		if seg.Remat != nil {
			at = p.index(seg.Remat)
			again, work := &p.segs[at], &works[at]
			c.rematForward = s.cost(&again.forward, &work[0], times, load, ways)
			c.rematBackward = s.cost(&again.backward, &work[1], times, load, ways)
		}
		out = append(out, c)
	}
	return out
}

// strides are those that costs of layers depend on.
func strides(p *ir.Plan, tp, cp, dp int) [3]int {
	if k := expertKeyOf(p); k.slack > 0 {
		if _, _, n := k.parts(p.TP, p.CP); n > 1 {
			return [3]int{tp, cp, dp}
		}
	}
	return [3]int{tp, cp}
}

// stride is how many ranks two neighbours on an axis are apart.
func stride(p *ir.Plan, axis string) int {
	n := 1
	for a, rest := "", p.AxisOrder; rest != ""; n *= degree(p, a) {
		a, rest, _ = strings.Cut(rest, ",")
		if a == axis {
			return n
		}
	}
	return n
}

// cost is the function's time at k times the micro-batch of the profile, where tokens load experts so and collectives
// go such ways, one for each kind.
func (s *searcher) cost(p *funcProfile, own *arithmetic, k int, of load, ways []way) costmodel.Cost {
	if p.flights {
		return s.flying(p, own, k, of.rounds, ways)
	}
	c := costmodel.Cost{Compute: own.time, Recomputed: own.remade, PaddedSlots: own.empty}
	kernels, beside, hidden := own.kernels, costmodel.Seconds(0), costmodel.Seconds(0)
	for i := range p.comms {
		l := &p.comms[i]
		w := &ways[l.kind]
		t, more := s.moving(l, w, k, of.rounds)
		kernels += more
		if l.beside {
			beside += t
			hidden = own.attention * costmodel.Seconds(1-1/float64(w.place.Ranks()))
			continue
		}
		l.enter(&c, t)
	}
	c.Context += max(0, beside-hidden)
	s.overlapExperts(&c)
	return s.waited(c, kernels)
}

// overlapExperts takes out of a cost what the engine hides of the way to experts and back: a part of it, and no more
// than compute takes, which is slower meanwhile. The sum of both grows with each of them.
func (s *searcher) overlapExperts(c *costmodel.Cost) {
	e := s.problem.engine()
	hidden := min(costmodel.Seconds(e.HiddenEP)*c.Experts, c.Compute)
	c.Experts -= hidden
	c.Compute += costmodel.Seconds(e.SlowsEP) * hidden
}

// waited makes whole a cost whose Comm is that of tensor parallelism alone, as [commLine.enter] adds collectives up. Of
// those compute waits for a part; what goes over cp, ep and etp is what compute waits for already. A function takes no
// less than the host's time for its kernels.
func (s *searcher) waited(c costmodel.Cost, kernels float64) costmodel.Cost {
	c.Comm = c.Comm*costmodel.Seconds(s.exposedTP) + c.Context + c.Experts
	c.Compute = max(c.Compute, s.device.HostTime(kernels)-c.Comm)
	return c
}

// moving is the time of a collective at k times the micro-batch of the profile, and the kernels' worth of waiting for
// the slowest host.
func (s *searcher) moving(l *commLine, w *way, k int, rounds float64) (t costmodel.Seconds, kernels float64) {
	times := 1.0
	if l.round {
		times = rounds
	}
	bytes := costmodel.Bytes(float64(l.what.Bytes) + float64(float64(k-1)*l.slope))
	if l.once.Choices > 0 {
		t = s.problem.Cluster.OnceTime(w.place, bytes, l.once)
	} else {
		t = w.route.Time(bytes)
	}
	return costmodel.Seconds(times) * t, float64(times * w.waits)
}

// enter adds a collective in line to a cost, each to one part of it.
func (l *commLine) enter(c *costmodel.Cost, t costmodel.Seconds) {
	switch {
	case l.group.experts != nil:
		c.Experts += t
	case slices.ContainsFunc(l.what.Axes, ir.Axis.IsContext):
		c.Context += t
	default:
		c.Comm += t
	}
}

// worksKey is what functions' arithmetic depends on: of degrees and clusters nothing that the profile does not.
type worksKey struct {
	of    *profile
	times int
}

// arithmetic is a function's own work, without collectives.
type arithmetic struct {
	time      costmodel.Seconds
	attention costmodel.Seconds // of it
	remade    costmodel.Seconds // of it, experts' forward values that backward makes again
	empty     costmodel.Seconds // of it, for places that no token has; no part of remade
	kernels   float64
	each      []costmodel.Seconds // of each op, where some collectives are under way beside them
}

// worksOf is the arithmetic of all functions of a profile, of each segment the forward pass, the backward pass and its
// second part, at k times the micro-batch of the profile, where tokens load experts so, which follows from both.
func (s *searcher) worksOf(p *profile, k int, l load) [][3]arithmetic {
	if s.own == nil {
		if s.works[s.device] == nil {
			s.works[s.device] = map[worksKey][][3]arithmetic{}
		}
		s.own = s.works[s.device]
	}
	key := worksKey{p, k}
	if known := s.own[key]; known != nil {
		return known
	}
	out := make([][3]arithmetic, len(p.segs))
	var shared [][3]arithmetic
	if p.plain != nil && s.problem.engine().Own { // another's may have moved since
		shared = s.worksOf(p.plain, k, l)
	}
	for i := range p.segs {
		if shared != nil && !p.segs[i].again {
			out[i], shared = shared[0], shared[1:]
			continue
		}
		for j, f := range p.segs[i].functions() {
			out[i][j] = s.arithmetic(f, k, l)
		}
	}
	s.own[key] = out
	return out
}

// arithmetic is a function's.
func (s *searcher) arithmetic(p *funcProfile, k int, l load) (own arithmetic) {
	nothing := s.device.Within(&costmodel.Op{})
	for i := range p.ops {
		o := p.ops[i].at.Grown(&p.ops[i].slope, float64(k-1))
		times, filled := 1.0, nothing
		if p.ops[i].round {
			empty := l.fill(&o, p.ops[i].places)
			times, filled = l.rounds, s.device.Within(&empty)
		}
		t := costmodel.Seconds(times) * (s.device.Time(&o) + filled)
		own.time += t
		if o.Kind >= costmodel.Attention {
			own.attention += t
		}
		if p.ops[i].round {
			full := l.tight(o, p.ops[i].places)
			idle := costmodel.Seconds(times) * (s.device.Within(&o) + filled - s.device.Within(&full))
			own.empty += idle
			if p.ops[i].remade {
				own.remade += t - idle
			}
		}
		if p.flights {
			own.each = append(own.each, t)
		}
		own.kernels += float64(times * o.Issued())
	}
	return own
}
