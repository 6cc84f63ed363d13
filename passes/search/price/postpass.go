package price

import (
	"slices"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// postPassBound is a lower bound of what a stage does after its passes: replicas reduce the accumulated gradients,
// and the optimizer updates. It leaves out classes whose gradients ranks other than the replicas also reduce. A
// class's buckets of any sizes take no less than one bucket with all of their elements, because no collective is
// cheaper in two parts.
type postPassBound struct {
	after      costmodel.Seconds // reductions that begin when the passes have ended
	overlapped costmodel.Seconds // reductions that may begin in the stage's last pass
	// of these, the reduction of the layer whose gradients are computed last
	last costmodel.Seconds
	// all reductions, if they overlap passes: what is not exposed slows compute
	hidden costmodel.Seconds
	update costmodel.Seconds // the norm, and the longer of updates and gathers
}

// lowerBound returns a lower bound of what follows the passes if at least that much of the reductions is exposed. The
// rest has slowed compute. It grows with both.
func (e *postPassBound) lowerBound(exposed, slows costmodel.Seconds) costmodel.Seconds {
	return exposed + slows*max(0, e.hidden-max(0, exposed))
}

// postPassKey is what post-pass bounds depend on.
type postPassKey struct {
	frame       *pipelineSplit
	state       *stateLayout
	zero, group int32
	dp, stride  int32 // stride: of dp
}

// postPassBounds returns the bounds of a split's stage groups.
func (s *stepBounder) postPassBounds(f *Family, shard space.Sharding, o *AxisOrder) []postPassBound {
	k := postPassKey{frame: s.pipelineSplit(f), state: s.stateLayout(f, shard), zero: int32(shard.Zero),
		group: int32(shard.Group),
		dp:    int32(f.Plan.DP), stride: int32(o.dp)}
	if out := s.postPassCache[k]; out != nil {
		return out
	}
	out := make([]postPassBound, len(k.frame.groups))
	for i := range out {
		out[i] = s.newPostPassBound(f, shard, o, k.frame, k.state, &k.frame.groups[i])
	}
	s.postPassCache[k] = out
	return out
}

// newPostPassBound computes the bound of one stage group.
func (s *stepBounder) newPostPassBound(f *Family, shard space.Sharding, o *AxisOrder, fr *pipelineSplit,
	st *stateLayout,
	t *stageGroup) (out postPassBound) {
	stage, b := &fr.stages[t.stage], s.baseOf(f.class, &f.Plan)
	elems, experts, shared := 0, 0, 0
	for _, w := range stage.backwardOrder {
		elems += w.count * b.elems[w.segment]
		experts += w.count * b.experts[w.segment]
		shared += w.count * st.sharedElems[w.segment]
	}
	if t.stage > 0 && slices.Contains(stage.chunks, len(fr.kindOf)-1) {
		elems += b.tied
	}
	all := s.reductionTime(f, shard, o, shared)
	switch {
	case shard.Zero >= 2 || !s.overlap[min(shard.Zero, 1)]:
		out.after = all
	case len(stage.chunks) == 1 || !f.splitsBackward: // the stage's last pass is of its first chunk
		first := 0
		for _, r := range fr.kinds[stage.firstKind].runs {
			first += r.count * st.sharedElems[r.segment]
		}
		out.overlapped = s.reductionTime(f, shard, o, first)
		out.last = s.reductionTime(f, shard, o, st.sharedElems[stage.backwardOrder[len(stage.backwardOrder)-1].segment])
	}
	if shard.Zero < 2 && s.overlap[shard.Zero] {
		out.hidden = all
	}
	out.update = s.updateBound(f, shard, o, elems, ownersOf(&f.Plan, shard.Group).minOwned(elems, experts), shared)
	return out
}

// updateBound returns a lower bound of what a stage does once all gradients are reduced. Gathers wait for the norm,
// not for all updates.
func (s *stepBounder) updateBound(f *Family, shard space.Sharding, o *AxisOrder,
	elems, owned, shared int) costmodel.Seconds {
	plan := f.Plan
	plan.Zero, plan.Precision = shard.Zero, planPrecision(s.problem, &plan, shard.Zero)
	prec := &plan.Precision
	update, gather := s.device.OptimizerTime(*prec, s.problem.Recipe, owned), costmodel.Seconds(0)
	// otherwise gathers may overlap the next step
	if (shard.Zero == 1 || shard.Zero == 2) && !s.problem.PricedEngine().Ahead {
		gather = s.routeTime(ir.OpAllGather, o.dp, shard.Group, shared*prec.Params.Size())
	}
	norm := s.norm(&plan, elems, owned)
	if s.overlap[min(shard.Zero, 1)] {
		return norm + max(update, gather)
	}
	return norm + update + gather
}

// reductionTime returns the time in which replicas reduce some elements at the end of a step.
func (s *stepBounder) reductionTime(f *Family, shard space.Sharding, o *AxisOrder, elems int) (sum costmodel.Seconds) {
	prec := planPrecision(s.problem, &f.Plan, shard.Zero)
	bytes := elems * prec.Reduce.Size()
	if shard.Zero == 0 {
		return s.routeTime(ir.OpAllReduce, o.dp, f.Plan.DP, bytes)
	}
	if shard.Zero == 1 {
		sum = s.routeTime(ir.OpReduceScatter, o.dp, shard.Group, bytes)
	}
	return sum + s.routeTime(ir.OpAllReduce, o.dp*shard.Group, f.Plan.DP/shard.Group, bytes/shard.Group)
}

// routeKey is a kind of collective over ranks with a stride.
type routeKey struct {
	op            ir.Op
	stride, ranks int
}

// routeTime returns the time of a collective; its route is computed once.
func (s *collectiveTimer) routeTime(op ir.Op, stride, ranks, bytes int) costmodel.Seconds {
	if bytes == 0 || ranks == 1 {
		return 0
	}
	k := routeKey{op, stride, ranks}
	r := s.routesByStride[k]
	if r == nil {
		way := s.problem.Cluster.Route(op, s.shardPlacement(1, &AxisOrder{dp: stride}, ranks))
		r = &way
		s.routesByStride[k] = r
	}
	return r.Time(costmodel.Bytes(bytes))
}

// sharedElems returns the parameters per layer of each segment that post-pass bounds count: those whose gradients
// only the replicas reduce, with the owners of their state a group of the replicas.
func sharedElems(p *ir.Program, classes []classLayout) []int {
	out := make([]int, len(p.Model.Segments))
	if p.Plan.DP == 1 {
		return out
	}
	dp := p.Mesh.Expand([]ir.Axis{"dp"})
	for i, c := range p.Classes {
		apart := slices.ContainsFunc(c.Replicas, func(a ir.Axis) bool { return !slices.Contains(dp, a) })
		owners := p.Plan.Zero == 0 || p.Mesh.Ranks(c.Shard) == p.Plan.ZeroGroup
		if c.TiedStages || apart || !owners || p.Mesh.Ranks(c.Replicas) != p.Plan.DP {
			continue
		}
		for seg, n := range classes[i].elems {
			out[seg] += n
		}
	}
	return out
}

// stageGroup is the last of a split's stages that are alike, which is the last of them to begin, with the number of
// first chunks of each kind that precede it.
type stageGroup struct {
	stage, first int         // the stage, and the kind of its first chunk
	kinds        []kindCount // of its chunks
	before       []kindCount
}

// groupStages computes the groups once all stages are complete.
func (fr *pipelineSplit) groupStages() {
	var before []kindCount
	for i := range fr.stages {
		st := &fr.stages[i]
		like := slices.IndexFunc(fr.groups, func(t stageGroup) bool {
			o := &fr.stages[t.stage]
			return o.firstKind == st.firstKind && slices.Equal(o.backwardOrder, st.backwardOrder) &&
				slices.Equal(o.kinds, st.kinds)
		})
		if like < 0 {
			like = len(fr.groups)
			fr.groups = append(fr.groups, stageGroup{})
		}
		fr.groups[like] = stageGroup{stage: i, first: st.firstKind, kinds: st.kinds, before: slices.Clone(before)}
		before = addCount(before, st.firstKind, 1)
	}
}
