package search

import (
	"fmt"
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// lazyMesh is a plan's mesh, made once it is asked for, with the strides that tell whose collectives of layers are whose.
type lazyMesh struct {
	plan    *ir.Plan
	strides [3]int
	made    *ir.Mesh
}

// mesh is the mesh of a plan that is legal.
func (s *searcher) mesh(at *lazyMesh) ir.Mesh {
	if at.made == nil {
		m, err := at.plan.Mesh(s.dims.KVHeads)
		if err != nil {
			panic(fmt.Sprintf("search: a legal plan has no mesh: %v: %v", at.plan.Text(), err))
		}
		at.made = &m
	}
	return *at.made
}

// index is how a collective of a layer goes, whatever the micro-batch: where its ranks are, and by which algorithms.
type commRoute struct {
	placement costmodel.Placement
	route     *costmodel.Route
	hostWaits float64 // kernels' worth of waiting for the slowest host: log2 of the ranks
}

// commKind is what collectives of a profile agree in that go the same way on every mesh.
type commKind struct {
	op    ir.Op
	axes  []ir.Axis
	group commGroup
	once  bool
}

// classifyComms tells the kinds of a profile's collectives apart.
func (p *profile) classifyComms() {
	p.kinds = nil
	for i := range p.segs {
		for _, f := range p.segs[i].functions() {
			for j := range f.comms {
				l := &f.comms[j]
				k := commKind{l.collective.Op, l.collective.Axes, l.group, l.routing.Choices > 0}
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

// placementKey is a kind of collective over ranks in some places.
type placementKey struct {
	op    ir.Op
	place costmodel.Placement
}

// commRoutes are those of a profile's kinds of collectives.
func (s *searcher) commRoutes(p *profile, m *lazyMesh) []commRoute {
	if len(p.kinds) == 0 {
		return nil
	}
	ws, mesh := make([]commRoute, len(p.kinds)), s.mesh(m)
	for i := range p.kinds {
		k := &p.kinds[i]
		place := s.problem.Cluster.Place(mesh, k.group.axesOn(mesh, k.axes))
		ws[i] = commRoute{placement: place, route: s.routesByPlacement[placementKey{k.op, place}], hostWaits: math.Log2(float64(place.Ranks()))}
		if ws[i].route == nil {
			ws[i].route = s.internRoute(s.problem.Cluster.Route(k.op, place))
			s.routesByPlacement[placementKey{k.op, place}] = ws[i].route
		}
		if !k.once { // how far the ranks are apart is in the route
			ws[i].placement.Span = 0
		}
	}
	return ws
}

// internRoute is a route that is kept once, so that equal ones are one.
func (s *searcher) internRoute(r costmodel.Route) *costmodel.Route {
	if s.internedRoutes[r] == nil {
		s.internedRoutes[r] = &r
	}
	return s.internedRoutes[r]
}

// routeSetKey is a profile with the strides of a mesh: what else a mesh has the profile fixes.
type routeSetKey struct {
	of      *profile
	strides [3]int
}

// routeSet is how a profile's collectives go on some meshes.
type routeSet struct{ routes []commRoute } // of each kind

// routeSetFor is that of a mesh, one for all strides with which collectives go the same ways: layers cost the same with
// each, since of a mesh costs depend on ways alone.
func (s *searcher) routeSetFor(p *profile, m *lazyMesh) *routeSet {
	k := routeSetKey{p, m.strides}
	if g := s.routeSets[k]; g != nil {
		return g
	}
	g := &routeSet{s.commRoutes(p, m)}
	if i := slices.IndexFunc(s.distinctRouteSets[p], func(o *routeSet) bool { return slices.Equal(o.routes, g.routes) }); i >= 0 {
		g = s.distinctRouteSets[p][i]
	} else {
		s.distinctRouteSets[p] = append(s.distinctRouteSets[p], g)
	}
	s.routeSets[k] = g
	return g
}
