package search

import (
	"fmt"
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// meshAt is a plan's mesh, made once it is asked for, with the strides that tell whose collectives of layers are whose.
type meshAt struct {
	plan    *ir.Plan
	strides [3]int
	made    *ir.Mesh
}

// mesh is the mesh of a plan that is legal.
func (s *searcher) mesh(at *meshAt) ir.Mesh {
	if at.made == nil {
		m, err := at.plan.Mesh(s.dims.KVHeads)
		if err != nil {
			panic(fmt.Sprintf("search: a legal plan has no mesh: %v: %v", at.plan.Text(), err))
		}
		at.made = &m
	}
	return *at.made
}

// way is how a collective of a layer goes, whatever the micro-batch: where its ranks are, and by which algorithms.
type way struct {
	place costmodel.Placement
	route *costmodel.Route
	waits float64 // kernels' worth of waiting for the slowest host: log2 of the ranks
}

// commKind is what collectives of a profile agree in that go the same way on every mesh.
type commKind struct {
	op    ir.Op
	axes  []ir.Axis
	group group
	once  bool
}

// sort tells the kinds of a profile's collectives apart.
func (p *profile) sort() {
	p.kinds = nil
	for i := range p.segs {
		for _, f := range p.segs[i].functions() {
			for j := range f.comms {
				l := &f.comms[j]
				k := commKind{l.what.Op, l.what.Axes, l.group, l.once.Choices > 0}
				l.kind = slices.IndexFunc(p.kinds, k.equal)
				if l.kind < 0 {
					l.kind = len(p.kinds)
					p.kinds = append(p.kinds, k)
				}
			}
		}
	}
}

func (k *commKind) equal(o commKind) bool {
	return k.op == o.op && k.once == o.once && slices.Equal(k.axes, o.axes) && slices.Equal(k.group.experts,
		o.group.experts) && slices.Equal(k.group.spans, o.group.spans)
}

// placedKey is a kind of collective over ranks in some places.
type placedKey struct {
	op    ir.Op
	place costmodel.Placement
}

// waysOf are those of a profile's kinds of collectives.
func (s *searcher) waysOf(p *profile, m *meshAt) []way {
	if len(p.kinds) == 0 {
		return nil
	}
	ws, mesh := make([]way, len(p.kinds)), s.mesh(m)
	for i := range p.kinds {
		k := &p.kinds[i]
		place := s.problem.Cluster.Place(mesh, k.group.on(mesh, k.axes))
		ws[i] = way{place: place, route: s.placed[placedKey{k.op, place}], waits: math.Log2(float64(place.Ranks()))}
		if ws[i].route == nil {
			ws[i].route = s.interned(s.problem.Cluster.Route(k.op, place))
			s.placed[placedKey{k.op, place}] = ws[i].route
		}
		if !k.once { // how far the ranks are apart is in the route
			ws[i].place.Span = 0
		}
	}
	return ws
}

// interned is a route that is kept once, so that equal ones are one.
func (s *searcher) interned(r costmodel.Route) *costmodel.Route {
	if s.interns[r] == nil {
		s.interns[r] = &r
	}
	return s.interns[r]
}

// goingKey is a profile with the strides of a mesh: what else a mesh has the profile fixes.
type goingKey struct {
	of      *profile
	strides [3]int
}

// going is how a profile's collectives go on some meshes.
type going struct{ ways []way } // of each kind

// goingOf is that of a mesh, one for all strides with which collectives go the same ways: layers cost the same with
// each, since of a mesh costs depend on ways alone.
func (s *searcher) goingOf(p *profile, m *meshAt) *going {
	k := goingKey{p, m.strides}
	if g := s.goings[k]; g != nil {
		return g
	}
	g := &going{s.waysOf(p, m)}
	if i := slices.IndexFunc(s.likes[p], func(o *going) bool { return slices.Equal(o.ways, g.ways) }); i >= 0 {
		g = s.likes[p][i]
	} else {
		s.likes[p] = append(s.likes[p], g)
	}
	s.goings[k] = g
	return g
}
