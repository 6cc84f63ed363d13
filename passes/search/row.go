package search

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// row is what a family's plans share that shard their state in one way.
type row struct {
	state   *state      // nil until it is asked for
	needs   []stateNeed // see [searcher.stateNeeds]
	endings []*ending   // by the order's place
}

// ending is what ZeRO moves in the passes and what comes after them, where the axes lie in one order.
type ending struct {
	move    []moved // of a layer of each segment; nil where nothing is
	settled []settling
	update  costmodel.Seconds // the longest of any stage
}

// row finds a family's row of a sharding, or makes it.
func (s *searcher) row(f *family, of sharding) *row {
	if len(f.looked().rows) <= of.index {
		f.rows = append(f.rows, make([]row, max(of.all, of.index+1)-len(f.rows))...)
	}
	r := &f.rows[of.index]
	if r.state == nil {
		r.state = s.stateOf(f, of)
		r.needs = s.stateNeeds(f, of)
	}
	return r
}

// endingOf finds an ending, or makes it.
func (s *searcher) endingOf(f *family, of sharding, o *order) *ending {
	r := s.row(f, of)
	for len(r.endings) <= o.place {
		r.endings = append(r.endings, nil)
	}
	if e := r.endings[o.place]; e != nil {
		return e
	}
	e := &ending{move: s.movesOf(f, of, o), settled: s.settled(f, of, o)}
	for i := range e.settled {
		e.update = max(e.update, e.settled[i].update)
	}
	r.endings[o.place] = e
	return e
}

// moves are what layers gather and scatter at least: as if each were one bucket without padding.
func (s *searcher) movesOf(f *family, of sharding, o *order) []moved {
	if of.zero < 2 {
		return nil
	}
	b := s.baseOf(f.cell, &f.plan)
	k := moveKey{b, of.zero >= 3, o.dp, o.cp, of.group, 0, 0}
	expertsApart := apart(&f.plan)
	if expertsApart {
		k.replicas, k.strideTP = expertReplicas(&f.plan), o.tp
	}
	if m := s.layerMoves[k]; m != nil {
		return m
	}
	place, prec, c := s.shardPlace(f.plan.CP, o, of.group), &f.plan.Precision, s.problem.Cluster
	move := func(to *moved, n int, place costmodel.Placement) {
		if n == 0 {
			return
		}
		to.scatter += c.CollectiveTime(ir.OpReduceScatter, place, costmodel.Bytes(n*prec.Reduce.Size()))
		if of.zero >= 3 {
			to.fetch += c.CollectiveTime(ir.OpAllGather, place, costmodel.Bytes(n*prec.Params.Size()))
		}
	}
	out := make([]moved, len(b.elems))
	for i, n := range b.elems {
		if !expertsApart {
			move(&out[i], n, place)
			continue
		}
		move(&out[i], n-b.experts[i], place)
		if b.experts[i] > 0 {
			move(&out[i], b.experts[i], s.expertPlace(f, o))
		}
	}
	s.layerMoves[k] = out
	return out
}

// moveKey is what the moves of layers depend on.
type moveKey struct {
	base                    *base
	fetches                 bool
	stride, strideCP, group int
	replicas, strideTP      int // of experts, where they have other replicas
}

// shardPlace is where the ranks are that share a copy of the state: all of cp, and of dp what is left of the group.
func (s *searcher) shardPlace(cp int, o *order, group int) costmodel.Placement {
	k := [4]int{cp, o.cp, o.dp, group}
	if p, ok := s.places[k]; ok {
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
	s.places[k] = p
	return p
}
