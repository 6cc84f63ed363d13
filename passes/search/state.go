package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// state is where parameters, gradients and the optimizer's state of a layer of each segment lie on one rank: what
// passes zero and bucket do with each, found by running zero once.
type state struct {
	prog    *ir.Program // with its classes, on some mesh
	classes []classState
	each    bool // every class scatters gradients after each micro-batch, so that each layer is a bucket of its own
	uses    [][]use
	shared  []int // elements of a layer of each segment that settlings count
}

// classState is a class: elements of a layer of each segment.
type classState struct {
	elems       []int
	each, fetch bool
	sharded     bool
	experts     bool // its state is shared out among edp, not among dp · cp
}

// owners is how many ranks share one copy of the state: of a plan's parameters, and of its experts.
type owners struct{ group, experts int }

// ownersOf are those of a plan whose zero_group is group, 1 where ZeRO does nothing.
func ownersOf(p *ir.Plan, group int) owners {
	if group > 1 && apart(p) {
		return owners{group, expertReplicas(p)}
	}
	return owners{group, group}
}

// of is how many share that of a class.
func (o owners) of(experts bool) int {
	if experts {
		return o.experts
	}
	return o.group
}

// least is how many elements a rank owns at least, of which so many are experts'.
func (o owners) least(elems, experts int) int { return (elems-experts)/o.group + experts/o.experts }

// use is a bucket that a layer's functions read parameters from, where each layer has buckets of its own.
type use struct{ segment, class int }

// stateKey is what a state depends on: of degrees only whether there are several ranks.
type stateKey struct {
	profile profileKey
	zero    int
	groups  int  // see groupsOf
	apart   bool // the first and the last chunk lie on different stages
	experts bool // have replicas
}

// stateOf finds where the state of a family's plans lies. All of it but the padding is the same for any number of
// replicas.
func (s *searcher) stateOf(f *family, of sharding) *state {
	at := &f.cell.looked().stateOf[bit(endsApart(&f.plan))][of.zero][groupsOf(&f.plan, of.zero, of.group)]
	if *at == nil {
		*at = s.state(&f.plan, of.zero, of.group)
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

func (s *searcher) state(p *ir.Plan, zero, group int) *state {
	k := stateKey{baseKey(*p), zero, groupsOf(p, zero, group), endsApart(p), expertReplicas(p) > 1}
	k.profile.again, k.profile.split = "none", false
	k.profile.each = p.Splits() && zero >= 2
	if st := s.states[k]; st != nil {
		return st
	}
	plan := *p
	plan.Zero, plan.ZeroGroup = zero, group
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery, plan.RecomputeSplit = "none", 0, 1, false
	st := s.newState(plan)
	s.states[k] = st
	return st
}

func (s *searcher) newState(plan ir.Plan) *state {
	base := s.base(plan).prog
	mesh, err := plan.Mesh(s.dims.KVHeads)
	if err != nil {
		panic(fmt.Sprintf("search: a legal plan has no mesh: %v: %v", plan, err))
	}
	t := &tables{Program: &ir.Program{Name: base.Name, Plan: plan, Mesh: mesh, Recipe: base.Recipe,
		Layouts: base.Layouts, Model: base.Model}}
	t.run("zero")
	st := &state{prog: t.Program, each: true}
	size, segs := passes.ClassSizes(t.Program), base.Model.Segments
	for i, c := range t.Classes {
		cs := classState{each: c.Each, fetch: c.Fetch, sharded: len(c.Shard) > 0}
		cs.experts = cs.sharded && apart(&plan) && ofExperts(t.Program, c)
		for _, seg := range segs {
			cs.elems = append(cs.elems, size(seg.Name, i))
		}
		st.each = st.each && c.Each
		st.classes = append(st.classes, cs)
	}
	st.shared = sharedElems(t.Program, st.classes)
	index := map[string]int{}
	for i, seg := range segs {
		index[seg.Name] = i
	}
	for i, seg := range segs {
		var us []use
		for _, w := range seg.Forward.Weights() {
			owner, slot, ok := i, ir.Slot{}, false
			slot, ok = t.Slot(seg.Name, w.Name)
			if !ok {
				name, param, _ := strings.Cut(w.Param.Tied, ".")
				owner = index[name]
				slot, _ = t.Slot(name, param)
			}
			if u := (use{owner, slot.Class}); !slices.Contains(us, u) {
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
func (c *classState) padTo(o owners) int {
	if !c.sharded {
		return bucketLine
	}
	return o.of(c.experts) * bucketLine
}

// bucketLine is what parameters are laid out in, in elements.
const bucketLine = passes.BucketLine

// held are the elements of a stage's buckets, and those that one rank owns the state of.
func (st *state) held(walk []stretch, o owners) (elems, owned int) {
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
		sum := c.sum(walk, pad, limit)
		elems += sum
		owned += sum / (pad / bucketLine)
	}
	return elems, owned
}

// sum is the elements of a class's buckets in a stage. Each layer is a bucket, or one ends with the layer that fills
// it.
func (c *classState) sum(walk []stretch, pad, limit int) int {
	sum, open := 0, 0
	for _, w := range walk {
		n, k := c.elems[w.segment], w.count
		if n == 0 {
			continue
		}
		if c.each {
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

// moving is how many bytes a layer of a segment needs for parameters that are gathered for it, and for gradients that
// are scattered after it.
func (st *state) moving(segment int, o owners, prec *ir.Precision) (gather, scatter int) {
	for _, u := range st.uses[segment] {
		c := &st.classes[u.class]
		if !c.each && !c.fetch {
			continue
		}
		n := passes.RoundUp(c.elems[u.segment], c.padTo(o))
		if c.fetch {
			gather += roundUp(n * prec.Params.Size())
		}
		if c.each {
			scatter += roundUp(n * prec.Grads.Size())
		}
	}
	return gather, scatter
}
