package price

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// stateLayout is where the parameters, gradients and optimizer state of each segment's layers live on one rank. It is
// found by running pass zero once.
type stateLayout struct {
	prog    *ir.Program // the program with its parameter classes, on some mesh
	classes []classLayout
	// every class scatters gradients after each micro-batch, so each layer is a bucket of its own
	scatterEachMicro bool
	uses             [][]bucketUse // buckets that the layers of each segment read
	// parameters per layer of each segment that the post-pass bounds count
	sharedElems []int
}

// classLayout is the layout of one parameter class.
type classLayout struct {
	elems                     []int // parameters per layer of each segment
	scatterEachMicro, gathers bool
	sharded                   bool
	// the state is sharded over the expert replicas (edp) instead of dp · cp
	experts bool
}

// owners is the number of ranks that share one copy of the state: of parameters in general, and of experts.
type owners struct{ group, experts int }

// ownersOf returns the owners of a plan with a zero_group; a group of 1 means no sharding.
func ownersOf(p *ir.Plan, group int) owners {
	if group > 1 && space.ExpertsHaveOwnReplicas(p) {
		return owners{group, space.ExpertReplicas(p)}
	}
	return owners{group, group}
}

// sharing returns how many ranks share the state of a class.
func (o owners) sharing(experts bool) int {
	if experts {
		return o.experts
	}
	return o.group
}

// minOwned returns the least number of parameters a rank owns of elems, of which some are experts'.
func (o owners) minOwned(elems, experts int) int { return (elems-experts)/o.group + experts/o.experts }

// bucketUse is a bucket whose parameters a layer reads, if each layer has buckets of its own.
type bucketUse struct{ segment, class int }

// stateLayoutKey is what a state layout depends on. Of degrees it only matters whether they are above 1.
type stateLayoutKey struct {
	profile profileKey
	zero    int
	groups  int  // see groupsOf
	apart   bool // the first and the last chunk are on different stages
	experts bool // experts have replicas
}

// stateLayout returns the layout of a family's state under a sharding. Except for padding, it is the same for any
// number of replicas.
func (s *memoryPricer) stateLayout(f *Family, shard space.Sharding) *stateLayout {
	apart := 0
	if endsApart(&f.Plan) {
		apart = 1
	}
	at := &f.class.withDetails().stateLayouts[apart][shard.Zero][groupsOf(&f.Plan, shard.Zero, shard.Group)]
	if *at == nil {
		*at = s.findStateLayout(&f.Plan, shard.Zero, shard.Group)
	}
	return *at
}

// endsApart reports whether the first and the last chunk are on different stages.
func endsApart(p *ir.Plan) bool { return p.PP > 1 && p.Schedule != "zb-v" }

// groupsOf returns how the groups that share a copy of the state split the replicas: 0 not at all, 1 within dp, 2
// between dp and cp.
func groupsOf(p *ir.Plan, zero, group int) int {
	switch {
	case zero == 0 || group >= p.Replicas():
		return 0
	case group > p.CP:
		return 1
	}
	return 2
}

// findStateLayout returns the cached layout for a plan, ZeRO stage and group, or computes it.
func (s *memoryPricer) findStateLayout(p *ir.Plan, zero, group int) *stateLayout {
	k := stateLayoutKey{baseKey(*p), zero, groupsOf(p, zero, group), endsApart(p), space.ExpertReplicas(p) > 1}
	k.profile.recompute, k.profile.split = "none", false
	k.profile.scatterEachMicro = p.Splits() && zero >= 2
	if st := s.stateLayouts[k]; st != nil {
		return st
	}
	plan := unrecomputed(*p)
	plan.Zero, plan.ZeroGroup = zero, group
	st := s.newStateLayout(plan)
	s.stateLayouts[k] = st
	return st
}

// unrecomputed returns a plan without recomputation.
func unrecomputed(p ir.Plan) ir.Plan {
	p.Recompute, p.RecomputeLayers, p.RecomputeEvery, p.RecomputeSplit = "none", 0, 1, false
	return p
}

// newStateLayout runs pass zero on a plan and reads the layout from the result.
func (s *memoryPricer) newStateLayout(plan ir.Plan) *stateLayout {
	base := s.base(plan).prog
	mesh, err := plan.Mesh(s.dims.KVHeads, s.problem.Recipe.VocabMultiple)
	if err != nil {
		panic(fmt.Sprintf("price: a legal plan has no mesh: %v: %v", plan, err))
	}
	t := &tables{Program: &ir.Program{Name: base.Name, Plan: plan, Mesh: mesh, Recipe: base.Recipe,
		Layouts: base.Layouts, Model: base.Model}}
	t.run("zero")
	st := &stateLayout{prog: t.Program, scatterEachMicro: true}
	size, segs := passes.ClassSizes(t.Program), base.Model.Segments
	for i, c := range t.Classes {
		cs := classLayout{scatterEachMicro: c.ShardedGrads, gathers: c.ShardedParams, sharded: len(c.Shard) > 0}
		cs.experts = cs.sharded && space.ExpertsHaveOwnReplicas(&plan) && ofExperts(t.Program, c)
		for _, seg := range segs {
			cs.elems = append(cs.elems, size(seg.Name, i))
		}
		st.scatterEachMicro = st.scatterEachMicro && c.ShardedGrads
		st.classes = append(st.classes, cs)
	}
	st.sharedElems = sharedElems(t.Program, st.classes)
	index := map[string]int{}
	for i, seg := range segs {
		index[seg.Name] = i
	}
	for i, seg := range segs {
		var us []bucketUse
		for _, w := range seg.Forward.Weights() {
			owner, slot, ok := i, ir.Slot{}, false
			slot, ok = t.Slot(seg.Name, w.Name)
			if !ok {
				name, param, _ := strings.Cut(w.Param.Tied, ".")
				owner = index[name]
				slot, _ = t.Slot(name, param)
			}
			if u := (bucketUse{owner, slot.Class}); !slices.Contains(us, u) {
				us = append(us, u)
			}
		}
		st.uses = append(st.uses, us)
	}
	return st
}

// ofExperts reports whether a class's state is sharded over ranks other than dp · cp.
func ofExperts(p *ir.Program, c ir.Class) bool {
	replicas := p.Mesh.Expand(present(p.Mesh, "dp", "cp"))
	return len(c.Shard) != len(replicas) || slices.ContainsFunc(c.Shard, func(a ir.Axis) bool {
		return !slices.Contains(replicas, a)
	})
}

// padTo returns the number of elements that the size of a bucket is padded to a multiple of.
func (c *classLayout) padTo(o owners) int {
	if !c.sharded {
		return bucketLine
	}
	return o.sharing(c.experts) * bucketLine
}

// bucketLine is the granularity of parameter layout, in elements.
const bucketLine = passes.BucketLine

// elements returns the size of a stage's buckets, and how much of it one rank owns the state of.
func (st *stateLayout) elements(walk []layerRun, o owners) (elems, owned int) {
	total := 0
	for i := range st.classes {
		c := &st.classes[i]
		for _, w := range walk {
			total += w.count * c.elems[w.segment]
		}
	}
	limit := passes.BucketLimit(total)
	for i := range st.classes {
		c := &st.classes[i]
		pad := c.padTo(o)
		sum := c.bucketElems(walk, pad, limit)
		elems += sum
		owned += sum / (pad / bucketLine)
	}
	return elems, owned
}

// params returns the parameters of a stage, without the padding of buckets.
func (st *stateLayout) params(walk []layerRun) (sum int) {
	for i := range st.classes {
		for _, w := range walk {
			sum += w.count * st.classes[i].elems[w.segment]
		}
	}
	return sum
}

// bucketElems returns the elements of a class's buckets in a stage. Each layer is a bucket, or a bucket ends with the
// layer that fills it.
func (c *classLayout) bucketElems(walk []layerRun, pad, limit int) int {
	sum, open := 0, 0
	for _, w := range walk {
		n, k := c.elems[w.segment], w.count
		if n == 0 {
			continue
		}
		if c.scatterEachMicro {
			sum += k * passes.RoundUp(n, pad)
			continue
		}
		if pad == bucketLine { // layers are already multiples of a line
			sum += k * n
			continue
		}
		first := min(k, (limit-open+n-1)/n)
		open += first * n
		k -= first
		if open < limit {
			continue
		}
		sum += passes.RoundUp(open, pad)
		per := (limit + n - 1) / n
		sum += k / per * passes.RoundUp(per*n, pad)
		open = k % per * n
	}
	return sum + passes.RoundUp(open, pad)
}

// commBytes returns the bytes that a layer of a segment needs for the parameters gathered before it and the gradients
// scattered after it.
func (st *stateLayout) commBytes(segment int, o owners, prec *ir.Precision) (gather, scatter int) {
	for _, u := range st.uses[segment] {
		c := &st.classes[u.class]
		if !c.scatterEachMicro && !c.gathers {
			continue
		}
		n := passes.RoundUp(c.elems[u.segment], c.padTo(o))
		if c.gathers {
			gather += roundUp(n * prec.Params.Size())
		}
		if c.scatterEachMicro {
			scatter += roundUp(n * prec.Grads.Size())
		}
	}
	return gather, scatter
}
