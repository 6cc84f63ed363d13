package price

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// shardingCost is what the plans of a family with one sharding share.
type shardingCost struct {
	layout      *stateLayout    // nil until computed
	stateMemory []stateMemory   // see [memoryPricer.stateMemory]
	postPass    []*postPassCost // for different strides
}

// postPassCost is what ZeRO communicates during the passes and what follows them, in axis orders with the same strides.
type postPassCost struct {
	strides   [3]int     // of dp, cp and, if experts have replicas of their own, tp
	zeroTimes []zeroTime // per layer of each segment; nil if nothing is communicated
	bounds    []postPassBound
	update    costmodel.Seconds // the longest of any stage
}

// shardingCost returns a family's cost entry for a sharding, and computes it if needed.
func (s *stepBounder) shardingCost(f *Family, shard space.Sharding) *shardingCost {
	if len(f.withDetails().shardingCosts) <= shard.Index {
		f.shardingCosts = append(f.shardingCosts, make([]shardingCost,
			max(shard.Count, shard.Index+1)-len(f.shardingCosts))...)
	}
	r := &f.shardingCosts[shard.Index]
	if r.layout == nil {
		r.layout = s.stateLayout(f, shard)
		r.stateMemory = s.stateMemory(make([]stateMemory, 0, len(s.fullStages(f))), f, shard)
	}
	return r
}

// postPassCost returns the entry of a sharding for an axis order, and computes it if needed.
func (s *stepBounder) postPassCost(f *Family, shard space.Sharding, o *AxisOrder) *postPassCost {
	r, strides := s.shardingCost(f, shard), [3]int{o.dp, o.cp}
	if space.ExpertsHaveOwnReplicas(&f.Plan) {
		strides[2] = o.tp
	}
	for _, e := range r.postPass {
		if e.strides == strides {
			return e
		}
	}
	e := &postPassCost{strides: strides, zeroTimes: s.minZeroTimes(f, shard, o), bounds: s.postPassBounds(f, shard, o)}
	for i := range e.bounds {
		e.update = max(e.update, e.bounds[i].update)
	}
	r.postPass = append(r.postPass, e)
	return e
}

// minZeroTimes returns lower bounds of what layers gather and scatter: as if each were one bucket without padding.
func (s *stepBounder) minZeroTimes(f *Family, shard space.Sharding, o *AxisOrder) []zeroTime {
	if shard.Zero < 2 {
		return nil
	}
	b := s.baseOf(f.class, &f.Plan)
	k := zeroTimeKey{b, shard.Zero >= 3, o.dp, o.cp, shard.Group, 0, 0}
	expertsApart := space.ExpertsHaveOwnReplicas(&f.Plan)
	if expertsApart {
		k.replicas, k.strideTP = space.ExpertReplicas(&f.Plan), o.tp
	}
	if m := s.zeroTimeCache[k]; m != nil {
		return m
	}
	place, c := s.shardPlacement(f.Plan.CP, o, shard.Group), s.problem.Cluster
	prec := planPrecision(s.problem, &f.Plan, shard.Zero)
	move := func(to *zeroTime, n int, place costmodel.Placement) {
		if n == 0 {
			return
		}
		to.scatter += c.CollectiveTime(ir.OpReduceScatter, place, costmodel.Bytes(n*prec.Reduce.Size()))
		if shard.Zero >= 3 {
			to.gather += c.CollectiveTime(ir.OpAllGather, place, costmodel.Bytes(n*prec.Params.Size()))
		}
	}
	out := make([]zeroTime, len(b.elems))
	for i, n := range b.elems {
		if !expertsApart {
			move(&out[i], n, place)
			continue
		}
		move(&out[i], n-b.experts[i], place)
		if b.experts[i] > 0 {
			move(&out[i], b.experts[i], s.expertPlacement(f, o))
		}
	}
	s.zeroTimeCache[k] = out
	return out
}

// zeroTimeKey is what minZeroTimes depends on.
type zeroTimeKey struct {
	base                    *baseProfile
	gathers                 bool
	stride, strideCP, group int
	replicas, strideTP      int // of experts, if they have replicas of their own
}

// shardPlacement returns where the ranks are that share a copy of the state: all of cp, and the rest of the group
// from dp.
func (s *collectiveTimer) shardPlacement(cp int, o *AxisOrder, group int) costmodel.Placement {
	k := [4]int{cp, o.cp, o.dp, group}
	if p, ok := s.placements[k]; ok {
		return p
	}
	m := ir.Mesh{Atoms: []ir.Atom{{Name: "before", Size: o.dp}, {Name: "inner", Size: group}}}
	axes := []ir.Axis{"inner"}
	if cp > 1 {
		m.Atoms = []ir.Atom{{Name: "before", Size: o.cp}, {Name: "cp", Size: cp},
			{Name: "between", Size: o.dp / (o.cp * cp)}, {Name: "inner", Size: group / cp}}
		axes = append(axes, "cp")
	}
	p := s.problem.Cluster.Place(m, axes)
	s.placements[k] = p
	return p
}
