package price

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// AxisOrder is an order of a plan's axes, with the stride of each axis: the distance in ranks of neighbours on it.
type AxisOrder struct {
	Name       string
	index      int // among the orders of its family
	tp, dp, pp int
	cp         int // 1 if the order has no cp
}

// axisOrders returns the orders that the pins allow.
func (f *Family) axisOrders() []AxisOrder {
	c := f.class.withDetails()
	if c.orders == nil {
		c.orders = make([]AxisOrder, 0, len(f.OrderNames))
		for i, name := range f.OrderNames {
			o := newAxisOrder(f.Plan, name)
			o.index = i
			c.orders = append(c.orders, o)
		}
	}
	return c.orders
}

// newAxisOrder returns an order by its name.
func newAxisOrder(plan ir.Plan, name string) AxisOrder {
	plan.AxisOrder = name
	return AxisOrder{Name: name, tp: stride(&plan, "tp"), dp: stride(&plan, "dp"),
		pp: stride(&plan, "pp"),
		cp: stride(&plan, "cp")}
}

// passWork is the compute time of a pass, and the time of its ZeRO collectives on the communication stream.
type passWork struct{ compute, comm costmodel.Seconds }

// bound returns a lower bound of a pass's time. It is monotone in both fields.
func (w passWork) bound(overlap bool, contention costmodel.Contention) costmodel.Seconds {
	if overlap {
		return w.compute + contention.Added(w.compute, w.comm, max(0, w.comm-w.compute))
	}
	return w.compute + w.comm
}

// chunkBound holds lower bounds of the time of one pass over a chunk of one kind.
type chunkBound struct{ forward, backward, weights costmodel.Seconds }

// boundTerms are the inputs of timeBound that all kinds of chunks of a plan share.
type boundTerms struct {
	family     *Family
	costs      []layerTimes
	zeroTimes  []zeroTime // nil if ZeRO communicates nothing
	overlap    bool
	contention costmodel.Contention
	exact      bool // the number of recomputed layers is known, not only its minimum
}

// timeBound returns lower bounds of the pass times of a chunk that recomputes its first layers, in groups of every.
func (c *chunkKind) timeBound(t *boundTerms, layers, every int) (out chunkBound) {
	var forward, backward, weights passWork
	var first costmodel.Seconds
	for i := range c.runs {
		r := &c.runs[i]
		l := &t.costs[r.segment]
		n, k := costmodel.Seconds(r.count), costmodel.Seconds(0)
		if layers > 0 && !r.end {
			recomputed := min(layers, r.count)
			layers -= recomputed
			k = costmodel.Seconds(recomputed)
		}
		forward.compute += (n - k) * l.forward
		backward.compute += (n - k) * l.backward
		weights.compute += (n - k) * l.weights
		if every > 1 {
			forward.compute += k * l.forward
			backward.compute += k * (l.forward + l.backward + l.weights)
		} else {
			forward.compute += k * l.rematForward
			backward.compute += k * l.rematBackward
		}
		if t.zeroTimes != nil {
			m := &t.zeroTimes[r.segment]
			first = max(first, m.gather)
			forward.comm += n * m.gather
			backward.comm += n * (m.gather + m.scatter)
			if l.weights > 0 { // a pass that computes gradients of weights scatters them
				backward.comm -= (n - k) * m.scatter
				weights.comm += (n - k) * m.scatter
			}
		}
	}
	if t.family.Plan.VPP == 1 { // the first layer's parameters are already gathered
		forward.comm -= first
		backward.comm -= first
	}
	out.forward = forward.bound(t.overlap, t.contention)
	if t.family.splitsBackward && !t.exact { // either part may communicate the gradients
		out.backward, out.weights = backward.compute, weights.compute
		return out
	}
	out.backward, out.weights = backward.bound(t.overlap, t.contention), weights.bound(t.overlap, t.contention)
	return out
}

// messageTime returns the time to send a stage's output to the next stage.
func (s *collectiveTimer) messageTime(f *Family, stream int, o *AxisOrder) costmodel.Seconds {
	if f.Plan.PP == 1 {
		return 0
	}
	if s.problem.PricedEngine().Scattered && !f.Plan.SP {
		stream /= f.Plan.TP
	}
	k := [2]int{stream, o.pp*1<<20 + f.Plan.PP}
	if t, ok := s.messages[k]; ok {
		return t
	}
	m := ir.Mesh{Atoms: []ir.Atom{{Name: "before", Size: o.pp}, {Name: "pp", Size: f.Plan.PP}}}
	t := s.problem.Cluster.SendTime(m, "pp", costmodel.Bytes(stream))
	s.messages[k] = t
	return t
}

// copyTime is the time in which a pass copies a message from the buffer of a preposted receive, or from the stage's own
// memory; 0 if receives are not preposted.
type copyTime costmodel.Seconds

// copyTime returns the time for messages of this size.
func (s *collectiveTimer) copyTime(stream int) copyTime {
	if !s.problem.Recipe.PrepostReceives {
		return 0
	}
	return copyTime(s.device.StreamTime(costmodel.Bytes(2 * stream)))
}

// passes returns the times of the passes of chunk i of n. The first chunk has no input, and the last one no gradient.
func (t copyTime) passes(i, n int) (input, grad costmodel.Seconds) {
	if i > 0 {
		input = costmodel.Seconds(t)
	}
	if i+1 < n {
		grad = costmodel.Seconds(t)
	}
	return input, grad
}

// copyAtPasses makes the messages of a chunk part of its passes if planc runs on a CPU: the receiver copies a message
// from the sender's memory when its pass begins, and the sender does not wait. A chunk receives its input from the
// chunk to which it sends a gradient.
func (s *collectiveTimer) copyAtPasses(c *costmodel.Chunk) {
	if s.problem.Cluster.IsCPU() && s.problem.PricedEngine().Own {
		c.CopyInput, c.CopyGrad, c.Output, c.Grad = c.Grad, c.Output, 0, 0
	}
}

// stepBound returns a lower bound of the step of a family's plan with n or more recomputed blocks. If
// shard.WithoutTraffic is set, the bound leaves out ZeRO communication.
func (s *stepBounder) stepBound(f *Family, shard space.Sharding, a *space.RecomputeChoice, n int,
	o *AxisOrder) costmodel.Seconds {
	terms := s.boundTerms(f, shard, s.layerTimeBounds(f, a, f.splitsBackward && shard.Zero >= 2, o))
	terms.exact = a.Kind == "none"
	return s.closedForm(&terms, shard, a, n, o)
}

// boundTerms returns the inputs of timeBound for a family and a sharding, without the times of ZeRO.
func (s *stepBounder) boundTerms(f *Family, shard space.Sharding, costs []layerTimes) boundTerms {
	return boundTerms{family: f, costs: costs, overlap: s.overlap[min(shard.Zero, 1)],
		contention: s.contends(shard.Zero)}
}

// closedForm returns a closed-form lower bound of the simulated step time. Its bound for the passes is that of
// [costmodel.Floor] with the given terms. It adds the step overhead and the update of the fullest stage.
func (s *stepBounder) closedForm(terms *boundTerms, shard space.Sharding, a *space.RecomputeChoice, n int,
	o *AxisOrder) costmodel.Seconds {
	f := terms.family
	stream := s.blocksOf(f, a, f.splitsBackward && shard.Zero >= 2).stream
	var end *postPassCost
	if !shard.WithoutTraffic {
		end = s.postPassCost(f, shard, o)
		terms.zeroTimes = end.zeroTimes
	}
	fr := s.pipelineSplit(f)
	layers, every := a.LayersAndEvery(n)
	slows := costmodel.Seconds(terms.contention.Slows)
	kinds := s.boundScratch[:0]
	through := costmodel.Seconds(0)
	for i := range fr.kinds {
		k := fr.kinds[i].timeBound(terms, layers, every)
		through += costmodel.Seconds(fr.kinds[i].count) * (k.forward + k.backward)
		kinds = append(kinds, k)
	}
	s.boundScratch = kinds
	message := s.messageTime(f, stream, o)
	through += costmodel.Seconds(2*fr.sends) * message
	if shard.WithoutTraffic {
		once := s.leastUpdate(f)
		return (max(through, s.slowestStage(f, fr, message, nil, slows)) + s.device.StepOverhead() + once) * (1 - Tie)
	}
	if t := &fr.groups[0]; t.stage == 0 && !f.splitsBackward { // the passes end on this stage
		through += end.bounds[0].lowerBound(max(end.bounds[0].after, end.bounds[0].last), slows)
	}
	return (max(through, s.slowestStage(f, fr, message, end.bounds, slows)) + s.device.StepOverhead() +
		end.update) * (1 - Tie)
}

// slowestStage returns a lower bound of the time when the last stage has finished its passes and reduced its gradients,
// see [costmodel.Floor]. Among identical stages, the last one takes longest. A stage's last pass is the backward pass
// of its first chunk, or its second part if backward passes are split. Reductions cannot start before it.
func (s *stepBounder) slowestStage(f *Family, fr *pipelineSplit, message costmodel.Seconds, ends []postPassBound,
	slows costmodel.Seconds) (best costmodel.Seconds) {
	kinds := s.boundScratch
	for i := range fr.groups {
		t := &fr.groups[i]
		work, head, tail := costmodel.Seconds(0), costmodel.Seconds(0), costmodel.Seconds(0)
		for _, c := range t.kinds {
			k := &kinds[c.kind]
			work += costmodel.Seconds(c.n) * (k.forward + k.backward + k.weights)
		}
		for _, c := range t.before {
			k, n := &kinds[c.kind], costmodel.Seconds(c.n)
			head += n * (k.forward + message)
			if !f.splitsBackward {
				tail += n * (k.backward + message)
			}
		}
		if ends != nil {
			pass := kinds[t.first].backward
			if f.splitsBackward {
				pass = kinds[t.first].weights
			}
			tail = max(tail, ends[i].lowerBound(max(ends[i].after, ends[i].last, ends[i].overlapped-pass), slows))
		}
		best = max(best, head+costmodel.Seconds(f.Plan.MicroBatches)*work+tail)
	}
	return best
}

// leastUpdate returns a lower bound of the optimizer's time over all shardings of a family.
func (s *stepBounder) leastUpdate(f *Family) costmodel.Seconds {
	owned, best := s.maxOwned(f), costmodel.Seconds(0)
	for _, zero := range []int{0, 3} {
		t := s.device.OptimizerTime(planPrecision(s.problem, &f.Plan, zero), s.problem.Recipe, owned)
		if zero == 0 || t < best {
			best = t
		}
	}
	return best
}

// maxOwned returns a lower bound of the parameters whose optimizer state one rank of the largest stage owns, if the
// state is sharded over all replicas.
func (s *stepBounder) maxOwned(f *Family) (largest int) {
	b, fr, shared := s.baseOf(f.class, &f.Plan), s.pipelineSplit(f), ownersOf(&f.Plan, f.Plan.Replicas())
	for i := range fr.stages {
		sum, experts := 0, 0
		for _, w := range fr.stages[i].backwardOrder {
			sum += w.count * b.elems[w.segment]
			experts += w.count * b.experts[w.segment]
		}
		if last := len(fr.kindOf) - 1; i > 0 && slices.Contains(fr.stages[i].chunks, last) {
			sum += b.tied
		}
		largest = max(largest, shared.minOwned(sum, experts))
	}
	return largest
}

// FamilyBound returns a lower bound of the step of all plans of a family, with any recomputation, see
// [stepBounder.RecomputeBound].
func (s *stepBounder) FamilyBound(f *Family) costmodel.Seconds {
	return s.RecomputeBound(f, &anyRecompute, 0)
}

// RecomputeBound returns a lower bound of the step of all plans of a family that recompute at least n blocks: as if
// ZeRO communicated nothing, for any placement of tensor and context parallel ranks.
func (s *stepBounder) RecomputeBound(f *Family, a *space.RecomputeChoice, n int) costmodel.Seconds {
	best := costmodel.Seconds(-1)
	orders := f.axisOrders()
	for i := range orders {
		o := &orders[i]
		if slices.ContainsFunc(orders[:i], func(x AxisOrder) bool {
			return x.tp == o.tp && x.pp == o.pp && x.cp == o.cp && (x.dp == o.dp || f.Plan.EP == 1)
		}) {
			continue
		}
		for _, zero := range []int{0, 2} {
			if zero > 0 && !(f.splitsBackward && f.Plan.Replicas() > 1) {
				continue
			}
			if t := s.stepBound(f, space.Sharding{Zero: zero, Group: f.Plan.Replicas(), WithoutTraffic: true}, a, n,
				o); best < 0 || t < best {
				best = t
			}
		}
	}
	return best
}

// simulatedBoundKey is what the bound of a schedule's passes depends on. Plans that differ in sharding or axis order
// often share it.
type simulatedBoundKey struct {
	frame    *pipelineSplit
	schedule string
	micro    int
	message  costmodel.Seconds
	kinds    [4]chunkBound
}

// SimulatedBound returns a second lower bound of a plan's step, which is tighter and more expensive than the closed
// form. It simulates the schedule with lower bounds of its pass and message times, and adds the time after the passes.
// This is a lower bound because a longer pass never makes another pass end earlier. It is at least the closed form.
func (s *stepBounder) SimulatedBound(p *Candidate) costmodel.Seconds {
	closed := s.quote(p).time
	f := p.Family
	if f.Plan.PP == 1 {
		return closed
	}
	fr := s.pipelineSplit(f)
	message := s.messageTime(f, s.blocksOf(f, p.Recompute, p.scattersEachMicro()).stream, p.Order)
	if s.problem.PricedEngine().Waits(&f.Plan) {
		message = 0
	}
	k := simulatedBoundKey{frame: fr, schedule: f.Plan.Schedule, micro: f.Plan.MicroBatches, message: message}
	if len(s.boundScratch) > len(k.kinds) {
		return max(closed, s.withPostPass(p, s.passesEnd(f, fr, message)))
	}
	copy(k.kinds[:], s.boundScratch)
	end, known := s.pipelineEnds[k]
	if !known {
		end = s.passesEnd(f, fr, message)
		s.pipelineEnds[k] = end
	}
	return max(closed, s.withPostPass(p, end))
}

// withPostPass returns a lower bound of the step time: the end of the passes, plus step overhead and update.
func (s *stepBounder) withPostPass(p *Candidate, end costmodel.Seconds) costmodel.Seconds {
	return (end + s.device.StepOverhead() + s.postPassCost(p.Family, *p.Sharding, p.Order).update) * (1 - Tie)
}

// passesEnd returns when the passes of a family's schedule end if they take as long as their bounds.
func (s *stepBounder) passesEnd(f *Family, fr *pipelineSplit, message costmodel.Seconds) costmodel.Seconds {
	pipeline := costmodel.Pipeline{Timetable: s.timetable(f), Chunks: make([]costmodel.ChunkTime, len(fr.kindOf)),
		Preposted: s.problem.Recipe.PrepostReceives}
	for c, kind := range fr.kindOf {
		k, to := &s.boundScratch[kind], &pipeline.Chunks[c]
		to.Forward, to.Backward, to.Weights = k.forward, k.backward, k.weights
		if c+1 < len(fr.kindOf) && f.Plan.StageOf(c+1) != f.Plan.StageOf(c) {
			to.SendOutput = message
		}
		if c > 0 && f.Plan.StageOf(c-1) != f.Plan.StageOf(c) {
			to.SendGradient = message
		}
	}
	end, err := pipeline.Passed()
	if err != nil {
		panic("price: the schedule of a legal plan cannot be simulated: " + err.Error())
	}
	return end
}
