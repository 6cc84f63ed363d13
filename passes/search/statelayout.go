package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// findStateLayout is where parameters, gradients and the optimizer's state of a layer of each segment lie on one rank: what
// passes zero and bucket do with each, found by running zero once.
type stateLayout struct {
	prog             *ir.Program // with its classes, on some mesh
	classes          []classLayout
	scatterEachMicro bool // every class scatters gradients after each micro-batch, so that each layer is a bucket of its own
	uses             [][]bucketUse
	sharedElems      []int // elements of a layer of each segment that settlings count
}

// classLayout is a class: elements of a layer of each segment.
type classLayout struct {
	elems                     []int
	scatterEachMicro, gathers bool
	sharded                   bool
	experts                   bool // its state is shared out among edp, not among dp · cp
}

// owners is how many ranks share one copy of the state: of a plan's parameters, and of its experts.
type owners struct{ group, experts int }

// ownersOf are those of a plan whose zero_group is group, 1 where ZeRO does nothing.
func ownersOf(p *ir.Plan, group int) owners {
	if group > 1 && hasOwnReplicas(p) {
		return owners{group, expertReplicas(p)}
	}
	return owners{group, group}
}

// segment is how many share that of a class.
func (o owners) sharing(experts bool) int {
	if experts {
		return o.experts
	}
	return o.group
}

// minOwned is how many elements a rank owns at least, of which so many are experts'.
func (o owners) minOwned(elems, experts int) int { return (elems-experts)/o.group + experts/o.experts }

// bucketUse is a bucket that a layer's functions read parameters from, where each layer has buckets of its own.
type bucketUse struct{ segment, class int }

// stateLayoutKey is what a state depends on: of degrees only whether there are several ranks.
type stateLayoutKey struct {
	profile profileKey
	zero    int
	groups  int  // see groupsOf
	apart   bool // the first and the last chunk lie on different stages
	experts bool // have replicas
}

// stateLayout finds where the state of a family's plans lies. All of it but the padding is the same for any number of
// replicas.
func (s *searcher) stateLayout(f *family, of sharding) *stateLayout {
	at := &f.class.withDetails().stateLayouts[bit(endsApart(&f.plan))][of.zero][groupsOf(&f.plan, of.zero, of.group)]
	if *at == nil {
		*at = s.findStateLayout(&f.plan, of.zero, of.group)
	}
	return *at
}

// endsApart tells whether the first and the last chunk lie on different stages.
func endsApart(p *ir.Plan) bool { return p.PP > 1 && p.Schedule != "zb-v" }

// groupsOf tells how groups that share a copy of the state cut the replicas: 0 not at all, 1 dp, 2 between dp and cp.
func groupsOf(p *ir.Plan, zero, group int) int {
	switch {
	case zero == 0 || group >= p.Replicas():
		return 0
	case group > p.CP:
		return 1
	}
	return 2
}

func (s *searcher) findStateLayout(p *ir.Plan, zero, group int) *stateLayout {
	k := stateLayoutKey{baseKey(*p), zero, groupsOf(p, zero, group), endsApart(p), expertReplicas(p) > 1}
	k.profile.recompute, k.profile.split = "none", false
	k.profile.scatterEachMicro = p.Splits() && zero >= 2
	if st := s.stateLayouts[k]; st != nil {
		return st
	}
	plan := *p
	plan.Zero, plan.ZeroGroup = zero, group
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery, plan.RecomputeSplit = "none", 0, 1, false
	st := s.newStateLayout(plan)
	s.stateLayouts[k] = st
	return st
}

func (s *searcher) newStateLayout(plan ir.Plan) *stateLayout {
	base := s.base(plan).prog
	mesh, err := plan.Mesh(s.dims.KVHeads)
	if err != nil {
		panic(fmt.Sprintf("search: a legal plan has no mesh: %v: %v", plan, err))
	}
	t := &tables{Program: &ir.Program{Name: base.Name, Plan: plan, Mesh: mesh, Recipe: base.Recipe,
		Layouts: base.Layouts, Model: base.Model}}
	t.run("zero")
	st := &stateLayout{prog: t.Program, scatterEachMicro: true}
	size, segs := passes.ClassSizes(t.Program), base.Model.Segments
	for i, c := range t.Classes {
		cs := classLayout{scatterEachMicro: c.Each, gathers: c.Fetch, sharded: len(c.Shard) > 0}
		cs.experts = cs.sharded && hasOwnReplicas(&plan) && ofExperts(t.Program, c)
		for _, seg := range segs {
			cs.elems = append(cs.elems, size(seg.Name, i))
		}
		st.scatterEachMicro = st.scatterEachMicro && c.Each
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

// ofExperts tells whether a class's state is shared out among other ranks than dp · cp.
func ofExperts(p *ir.Program, c ir.Class) bool {
	replicas := p.Mesh.Expand(present(p.Mesh, "dp", "cp"))
	return len(c.Shard) != len(replicas) || slices.ContainsFunc(c.Shard, func(a ir.Axis) bool {
		return !slices.Contains(replicas, a)
	})
}

// padTo is what the size of a bucket of a class is a multiple of.
func (c *classLayout) padTo(o owners) int {
	if !c.sharded {
		return bucketLine
	}
	return o.sharing(c.experts) * bucketLine
}

// bucketLine is what parameters are laid out in, in elements.
const bucketLine = passes.BucketLine

// stageScratch are the elements of a stage's buckets, and those that one rank owns the state of.
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

// bucketElems is the elements of a class's buckets in a stage. Each layer is a bucket, or one ends with the layer that fills
// it.
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
		if pad == bucketLine { // layers are whole lines
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

// collectiveTime is how many bytes a layer of a segment needs for parameters that are gathered for it, and for gradients that
// are scattered after it.
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
