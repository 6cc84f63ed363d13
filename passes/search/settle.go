package search

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// settling is at most what a stage has to do after its passes: what replicas reduce of gradients that accumulate over a
// step, and the update. Classes whose gradients other ranks than the replicas reduce too are left out of what is moved.
// A class's buckets of any sizes take no less than one of all of their elements, since no collective is cheaper in two
// parts.
type settling struct {
	after  costmodel.Seconds // reductions that begin when the passes have ended
	beside costmodel.Seconds // those that may begin in the stage's last pass, in all
	last   costmodel.Seconds // of these, that of the layer whose gradients come last
	hidden costmodel.Seconds // where reductions run beside passes, all of them: what is not exposed slows compute
	update costmodel.Seconds // the norm, and the longer of updates and gathers
}

// atLeast is what follows the passes where of the reductions so much is exposed or more: the rest has slowed compute.
// It grows with both.
func (e *settling) atLeast(exposed, slows costmodel.Seconds) costmodel.Seconds {
	return exposed + slows*max(0, e.hidden-max(0, exposed))
}

// settleKey is what settlings depend on.
type settleKey struct {
	frame       *frame
	state       *state
	zero, group int32
	dp, stride  int32 // stride: of dp
}

// settled are those of a frame's turns.
func (s *searcher) settled(f *family, of sharding, o *order) []settling {
	k := settleKey{frame: s.frame(f), state: s.stateOf(f, of), zero: int32(of.zero), group: int32(of.group),
		dp: int32(f.plan.DP), stride: int32(o.dp)}
	if out := s.settlings[k]; out != nil {
		return out
	}
	out := make([]settling, len(k.frame.turns))
	for i := range out {
		out[i] = s.settle(f, of, o, k.frame, k.state, &k.frame.turns[i])
	}
	s.settlings[k] = out
	return out
}

func (s *searcher) settle(f *family, of sharding, o *order, fr *frame, st *state, t *turn) (out settling) {
	stage, b := &fr.stages[t.stage], s.baseOf(f.cell, &f.plan)
	elems, experts, shared := 0, 0, 0
	for _, w := range stage.walk {
		elems += w.count * b.elems[w.segment]
		experts += w.count * b.experts[w.segment]
		shared += w.count * st.shared[w.segment]
	}
	if t.stage > 0 && slices.Contains(stage.chunks, len(fr.kindOf)-1) {
		elems += b.tied
	}
	all := s.reduction(f, of, o, shared)
	switch {
	case of.zero >= 2 || !s.overlap[min(of.zero, 1)]:
		out.after = all
	case len(stage.chunks) == 1 || !f.splits: // the stage's last pass is of its first chunk
		first := 0
		for _, r := range fr.kinds[stage.first].runs {
			first += r.count * st.shared[r.segment]
		}
		out.beside = s.reduction(f, of, o, first)
		out.last = s.reduction(f, of, o, st.shared[stage.walk[len(stage.walk)-1].segment])
	}
	if of.zero < 2 && s.overlap[of.zero] {
		out.hidden = all
	}
	out.update = s.updated(f, of, o, elems, ownersOf(&f.plan, of.group).least(elems, experts), shared)
	return out
}

// updated is at most what a stage does once all gradients are there: gathers wait for the norm, not for all updates.
func (s *searcher) updated(f *family, of sharding, o *order, elems, owned, shared int) costmodel.Seconds {
	prec := &f.plan.Precision
	update, gather := s.device.OptimizerTime(*prec, s.problem.Recipe, owned), costmodel.Seconds(0)
	if (of.zero == 1 || of.zero == 2) && !s.problem.engine().Ahead { // gathers may run beside the step that follows
		gather = s.routeTime(ir.OpAllGather, o.dp, of.group, shared*prec.Params.Size())
	}
	norm := s.norm(&ir.Plan{Zero: of.zero, Precision: *prec}, elems, owned)
	if s.overlap[min(of.zero, 1)] {
		return norm + max(update, gather)
	}
	return norm + update + gather
}

// reduction is what replicas take to reduce so many elements at the end of a step.
func (s *searcher) reduction(f *family, of sharding, o *order, elems int) (sum costmodel.Seconds) {
	bytes := elems * f.plan.Precision.Reduce.Size()
	if of.zero == 0 {
		return s.routeTime(ir.OpAllReduce, o.dp, f.plan.DP, bytes)
	}
	if of.zero == 1 {
		sum = s.routeTime(ir.OpReduceScatter, o.dp, of.group, bytes)
	}
	return sum + s.routeTime(ir.OpAllReduce, o.dp*of.group, f.plan.DP/of.group, bytes/of.group)
}

// routeKey is a kind of collective over ranks that are a stride apart.
type routeKey struct {
	op            ir.Op
	stride, ranks int
}

// routeTime is the time of a collective, whose way is found once.
func (s *searcher) routeTime(op ir.Op, stride, ranks, bytes int) costmodel.Seconds {
	if bytes == 0 || ranks == 1 {
		return 0
	}
	k := routeKey{op, stride, ranks}
	r := s.routes[k]
	if r == nil {
		way := s.problem.Cluster.Route(op, s.shardPlace(1, &order{dp: stride}, ranks))
		r = &way
		s.routes[k] = r
	}
	return r.Time(costmodel.Bytes(bytes))
}

// sharedElems are the elements of a layer of each segment whose gradients the replicas reduce, and nobody else, the
// owners of their state a group of them: what settlings count.
func sharedElems(p *ir.Program, classes []classState) []int {
	out := make([]int, len(p.Model.Segments))
	if p.Plan.DP == 1 {
		return out
	}
	dp := p.Mesh.Expand([]ir.Axis{"dp"})
	for i, c := range p.Classes {
		apart := slices.ContainsFunc(c.Replicas, func(a ir.Axis) bool { return !slices.Contains(dp, a) })
		owners := p.Plan.Zero == 0 || p.Mesh.Ranks(c.Shard) == p.Plan.ZeroGroup
		if c.Ends || apart || !owners || p.Mesh.Ranks(c.Replicas) != p.Plan.DP {
			continue
		}
		for seg, n := range classes[i].elems {
			out[seg] += n
		}
	}
	return out
}

// turn is the last of a frame's stages that are alike, of which none begins later, with how many chunks of each kind
// come before it as the first ones of their stages.
type turn struct {
	stage, first int     // the stage, and the kind of its first chunk
	kinds        []share // of its chunks
	before       []share
}

// turns are found when all stages are complete.
func (fr *frame) takeTurns() {
	var before []share
	for i := range fr.stages {
		st := &fr.stages[i]
		like := slices.IndexFunc(fr.turns, func(t turn) bool {
			o := &fr.stages[t.stage]
			return o.first == st.first && slices.Equal(o.walk, st.walk) && slices.Equal(o.kinds, st.kinds)
		})
		if like < 0 {
			like = len(fr.turns)
			fr.turns = append(fr.turns, turn{})
		}
		fr.turns[like] = turn{stage: i, first: st.first, kinds: st.kinds, before: slices.Clone(before)}
		before = add(before, st.first, 1)
	}
}
