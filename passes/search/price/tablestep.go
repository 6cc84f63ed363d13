package price

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// StageTimes returns the time that each stage of a plan computes in the passes of a step.
func StageTimes(p *space.Problem, plan ir.Plan) ([]costmodel.Seconds, error) {
	s, err := New(p)
	if err != nil {
		return nil, err
	}
	return s.stepOf(CandidateOf(plan)).Work(), nil
}

// step returns the times of a plan's step, from its tables.
func (s *tablePricer) step(t *tables) *costmodel.Step {
	step := &costmodel.Step{Timetable: t.Timetable(), Overlap: s.overlap[min(t.Plan.Zero, 1)],
		Other: s.device.StepOverhead(), Preposted: s.problem.Recipe.PrepostReceives}
	s.problem.PricedEngine().SetAhead(step)
	k := keyOf(t.Plan)
	costs := s.layerCosts(nil, s.routeSetAt(&t.Plan, t.prof), &k, t.prof, 1)
	index := t.index()
	plain := s.plainPasses(&t.Plan, s.base(t.Plan))
	message, copied := costmodel.Seconds(0), s.copyTime(t.Stream)
	if t.Plan.PP > 1 {
		message = s.problem.Cluster.SendTime(t.Mesh, "pp", costmodel.Bytes(t.Stream))
	}
	for i := range t.Stages {
		st := costmodel.Stage{}
		state := &t.states[i]
		st.Buckets, st.Norm = state.buckets, state.norm
		for j := range t.Stages[i].Chunks {
			c := &t.Stages[i].Chunks[j]
			chunk := costmodel.Chunk{Split: t.Plan.Splits(), Apart: len(t.Stages[i].Chunks) > 1,
				Contention: s.contends(t.Plan.Zero)}
			for k := range c.Runs {
				r := &c.Runs[k]
				at := index[r.Segment]
				l := layersOf(r, at, &costs[at])
				l.Fetch, l.Scatter = state.zeroTimes[r.Segment].gather, state.zeroTimes[r.Segment].scatter
				plain.addTo(&l, at)
				chunk.Runs = append(chunk.Runs, l)
			}
			for _, m := range t.Messages(i, ir.Action{Kind: ir.Forward, Chunk: j}) {
				switch m.Op {
				case ir.OpSend:
					chunk.Output = message
				case ir.OpReceive:
					chunk.Grad = message
				}
			}
			chunk.CopyInput, chunk.CopyGrad = copied.passes(c.Index, t.Plan.PP*t.Plan.VPP)
			s.copyAtPasses(&chunk)
			st.Chunks = append(st.Chunks, chunk)
		}
		if i == 0 {
			step.Other += state.other
		}
		step.Stages = append(step.Stages, st)
	}
	return step
}

// overlaps reports whether collectives overlap compute; on a CPU, only if there are cores that do not compute.
func (s *collectiveTimer) overlaps(zero int) bool {
	c := s.problem.Cluster
	if !c.IsCPU() {
		return s.problem.PricedEngine().Overlap[zero]
	}
	return c.Node.Host.Cores > c.Node.Devices
}

// contends returns how much collectives slow concurrent compute, at a ZeRO stage.
func (s *collectiveTimer) contends(zero int) costmodel.Contention {
	return s.problem.PricedEngine().Contends(s.problem.Cluster, zero)
}

// layersOf returns the times of a run.
func layersOf(r *ir.Run, segment int, c *layerCost) costmodel.Layers {
	l := costmodel.Layers{Segment: segment, From: r.From, Count: r.Count, Forward: c.forward, Backward: c.backward,
		Weights: c.weights, Every: r.Every}
	if r.Every > 0 { // a group runs both parts of a split backward pass at once
		l.Backward = c.backward.Plus(c.weights)
		l.Weights = costmodel.Cost{}
	}
	if r.Remat {
		l.Forward, l.Backward = c.rematForward, c.rematBackward
		l.Recomputed = max(0, c.rematBackward.Compute-c.backward.Compute-c.weights.Compute)
		l.Weights = costmodel.Cost{}
	}
	return l
}

// zeroTime is the time that a layer of a segment gathers before each use and scatters after each backward pass.
type zeroTime struct{ gather, scatter costmodel.Seconds }

// zeroTimes returns the times of a stage's segments; all layers of a segment are alike.
func (s *tablePricer) zeroTimes(t *tables, st *ir.Stage) map[string]zeroTime {
	if st.GatherParams == nil && st.ScatterGrads == nil {
		return nil
	}
	out := map[string]zeroTime{}
	for i := range st.Chunks {
		for _, r := range st.Chunks[i].Runs {
			if _, ok := out[r.Segment]; ok {
				continue
			}
			m := zeroTime{}
			for _, b := range t.LayerBuckets(st, r.Segment, r.From) {
				m.gather += s.bucketTime(t, st.GatherParams, b)
				m.scatter += s.bucketTime(t, st.ScatterGrads, b)
			}
			out[r.Segment] = m
		}
	}
	return out
}

// bucketTime returns the time that a function over buckets takes for one of them.
func (s *tablePricer) bucketTime(t *tables, f *ir.Func, bucket int) costmodel.Seconds {
	sum := costmodel.Seconds(0)
	if f == nil {
		return 0
	}
	for _, n := range f.Nodes {
		if n.Attr.Bucket == bucket {
			sum += s.commTime(t, n) + s.castTime(t, n)
		}
	}
	return sum
}

// castTime returns the time to cast a bucket's gradients to the type in which they are reduced, or back.
func (s *tablePricer) castTime(t *tables, n *ir.Node) costmodel.Seconds {
	if n.Op != ir.OpCast {
		return 0
	}
	return s.device.OpTime(n, t.Mesh)
}

// commTime returns the time of a node's collective; 0 if it has none.
func (s *collectiveTimer) commTime(t *tables, n *ir.Node) costmodel.Seconds {
	c, ok := n.Collective(t.Mesh)
	if !ok {
		return 0
	}
	place := s.problem.Cluster.Place
	if c.FirstLast {
		place = s.problem.Cluster.PlaceEnds
	}
	return s.problem.Cluster.CollectiveTime(c.Op, place(t.Mesh, c.Axes), costmodel.Bytes(c.Bytes))
}

// stageUpdate is what a stage does once per step, and for each use of its parameters.
type stageUpdate struct {
	buckets []costmodel.BucketCost
	// other: what all stages do together: collectives of the token count, the loss and the norm
	norm, other costmodel.Seconds
	zeroTimes   map[string]zeroTime
}

// index returns the index of each segment in the model.
func (t *tables) index() map[string]int {
	index := map[string]int{}
	for i, seg := range t.Model.Segments {
		index[seg.Name] = i
	}
	return index
}

// stageUpdate returns what a stage of some tables does once per step.
func (s *tablePricer) stageUpdate(t *tables, stage int) (to stageUpdate) {
	st, index := &t.Stages[stage], t.index()
	to.zeroTimes = s.zeroTimes(t, st)
	elems, owned := 0, 0
	at := map[ir.Dim]int{}
	for i, b := range st.Buckets {
		class := t.Classes[b.Class]
		own := b.Elems / t.Mesh.Ranks(class.Shard)
		elems, owned = elems+b.Elems, owned+own
		last := b.Pieces[len(b.Pieces)-1]
		to.buckets = append(to.buckets, costmodel.BucketCost{Segment: index[last.Segment], Layer: last.Layer,
			Last: class.ShardedGrads || class.TiedStages, TiedStages: class.TiedStages,
			Update: s.device.OptimizerTime(t.Plan.Precision, t.Recipe, own)})
		at[ir.Dim(fmt.Sprintf("flat(b%d)", i))] = i
	}
	for _, n := range append(append([]*ir.Node{}, t.Begin.Nodes...), st.Update.Nodes...) {
		cost := s.commTime(t, n)
		switch {
		case len(n.Args) == 0:
			to.other += cost
		case n.Op == ir.OpCast:
			to.buckets[n.Attr.Bucket].Reduce += s.castTime(t, n)
		case n.Op == ir.OpAllGather:
			to.buckets[at[n.Args[0].Type.Dims[0].Dim]].Gather += cost
		case n.Op.Comm():
			to.buckets[at[n.Args[0].Type.Dims[0].Dim]].Reduce += cost
		}
	}
	to.norm = s.norm(&t.Plan, elems, owned)
	return to
}

// norm returns the time of the global norm's arithmetic, of clearing all gradients, including those that it does not
// read, and of copying them to and from DDP's buckets.
func (s *tablePricer) norm(p *ir.Plan, elems, owned int) costmodel.Seconds {
	held := elems
	if p.Zero >= 2 {
		held = owned
	}
	grads := p.Precision.Grads.Size()
	plain := s.problem.PricedEngine().PlainCosts(&p.Precision, p, p.Zero)
	return s.device.StreamTime(costmodel.Bytes(owned*grads)) + s.device.StreamTime(costmodel.Bytes(held*grads)) +
		plain.StepTime(&s.device, elems)
}
