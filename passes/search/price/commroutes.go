package price

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// lazyMesh is a plan's mesh, built when it is first needed, with the strides that decide where the collectives of
// layers run.
type lazyMesh struct {
	plan    *ir.Plan
	strides [3]int
	made    *ir.Mesh
}

// mesh returns the mesh of a legal plan.
func (s *collectiveTimer) mesh(at *lazyMesh) ir.Mesh {
	if at.made == nil {
		m, err := at.plan.Mesh(s.dims.KVHeads, s.problem.Recipe.VocabMultiple)
		if err != nil {
			panic(fmt.Sprintf("price: a legal plan has no mesh: %v: %v", at.plan.Text(), err))
		}
		at.made = &m
	}
	return *at.made
}

// commRoute is how a collective of a layer runs, for any micro-batch: where its ranks are, and by which algorithms.
type commRoute struct {
	placement costmodel.Placement
	route     *costmodel.Route
	// waiting for the slowest host, in kernel launches: log2 of the ranks
	hostWaits float64
}

// commKind is what collectives of a profile have in common that take the same route on every mesh.
type commKind struct {
	op      ir.Op
	axes    []ir.Axis
	group   commGroup
	perStep bool
}

// classifyComms numbers the kinds of a profile's collectives.
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

// equal reports whether two kinds are the same.
func (k *commKind) equal(o commKind) bool {
	return k.op == o.op && k.perStep == o.perStep && slices.Equal(k.axes, o.axes) && slices.Equal(k.group.experts,
		o.group.experts) && slices.Equal(k.group.spans, o.group.spans)
}

// placementKey is a kind of collective with the placement of its ranks.
type placementKey struct {
	op    ir.Op
	place costmodel.Placement
}

// commRoutes returns the routes of a profile's kinds of collectives.
func (s *collectiveTimer) commRoutes(p *profile, m *lazyMesh) []commRoute {
	if len(p.kinds) == 0 {
		return nil
	}
	ws, mesh := make([]commRoute, len(p.kinds)), s.mesh(m)
	for i := range p.kinds {
		k := &p.kinds[i]
		place := s.problem.Cluster.Place(mesh, k.group.axesOn(mesh, k.axes))
		ws[i] = commRoute{placement: place, route: s.routesByPlacement[placementKey{k.op, place}],
			hostWaits: math.Log2(float64(place.Ranks()))}
		if ws[i].route == nil {
			ws[i].route = s.internRoute(s.problem.Cluster.Route(k.op, place))
			s.routesByPlacement[placementKey{k.op, place}] = ws[i].route
		}
		if !k.perStep { // the route already includes the distance of the ranks
			ws[i].placement.Span = 0
		}
	}
	return ws
}

// internRoute returns the one copy of a route that is stored.
func (s *collectiveTimer) internRoute(r costmodel.Route) *costmodel.Route {
	if s.internedRoutes[r] == nil {
		s.internedRoutes[r] = &r
	}
	return s.internedRoutes[r]
}

// routeSetKey is a profile with the strides of a mesh. The profile determines the rest of the mesh.
type routeSetKey struct {
	profile *profile
	strides [3]int
}

// routeSet is how the collectives of a profile run on some meshes.
type routeSet struct{ routes []commRoute } // of each kind

// routeSetFor returns the route set of a mesh. Meshes with equal routes share one, because layer costs depend on a
// mesh only through its routes.
func (s *collectiveTimer) routeSetFor(p *profile, m *lazyMesh) *routeSet {
	k := routeSetKey{p, m.strides}
	if g := s.routeSets[k]; g != nil {
		return g
	}
	g := &routeSet{s.commRoutes(p, m)}
	if i := slices.IndexFunc(s.distinctRouteSets[p], func(o *routeSet) bool {
		return slices.Equal(o.routes, g.routes)
	}); i >= 0 {
		g = s.distinctRouteSets[p][i]
	} else {
		s.distinctRouteSets[p] = append(s.distinctRouteSets[p], g)
	}
	s.routeSets[k] = g
	return g
}

// clusterCosts hold the times of layers and collectives on one cluster. They do not depend on the batch or on the
// devices' memory.
type clusterCosts struct {
	firstProblem *space.Problem // one of the problems that they are valid for
	firstDevice  costmodel.Device

	layerTimeCache    map[costKey][]layerTimes
	messages          map[[2]int]costmodel.Seconds
	routesByStride    map[routeKey]*costmodel.Route
	internedRoutes    map[costmodel.Route]*costmodel.Route
	routeSets         map[routeSetKey]*routeSet
	distinctRouteSets map[*profile][]*routeSet
	routesByPlacement map[placementKey]*costmodel.Route
	placements        map[[4]int]costmodel.Placement
}

// newClusterCosts returns empty costs.
func newClusterCosts(p *space.Problem, dev costmodel.Device) *clusterCosts {
	return &clusterCosts{firstProblem: p, firstDevice: dev, layerTimeCache: map[costKey][]layerTimes{},
		messages:       map[[2]int]costmodel.Seconds{},
		routesByStride: map[routeKey]*costmodel.Route{}, internedRoutes: map[costmodel.Route]*costmodel.Route{},
		routeSets:         map[routeSetKey]*routeSet{},
		distinctRouteSets: map[*profile][]*routeSet{}, routesByPlacement: map[placementKey]*costmodel.Route{},
		placements: map[[4]int]costmodel.Placement{}}
}

// clone returns costs that start with the same contents and can change independently.
func (v *clusterCosts) clone() *clusterCosts {
	own := *v
	own.layerTimeCache, own.messages, own.routesByStride, own.internedRoutes = maps.Clone(v.layerTimeCache),
		maps.Clone(v.messages),
		maps.Clone(v.routesByStride), maps.Clone(v.internedRoutes)
	own.routeSets, own.distinctRouteSets, own.routesByPlacement, own.placements = maps.Clone(v.routeSets),
		maps.Clone(v.distinctRouteSets), maps.Clone(v.routesByPlacement),
		maps.Clone(v.placements)
	for p, all := range own.distinctRouteSets {
		own.distinctRouteSets[p] = slices.Clone(all)
	}
	return &own
}

// validFor reports whether the costs also hold for a searcher's problem.
func (v *clusterCosts) validFor(s *Pricer) bool {
	p, q := v.firstProblem, s.problem
	if p.Model != q.Model || p.Recipe != q.Recipe || p.Precision != q.Precision ||
		p.PricedEngine() != q.PricedEngine() || p.Computes() != q.Computes() ||
		v.firstDevice != s.device {
		return false
	}
	a, b := *p.Cluster, *q.Cluster
	a.GPU.MemoryGiB, b.GPU.MemoryGiB = 0, 0
	return reflect.DeepEqual(a, b)
}
