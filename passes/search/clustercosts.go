package search

import (
	"maps"
	"reflect"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// clusterCosts hold the times of layers and collectives on one cluster. They do not depend on the batch or on the
// devices' memory.
type clusterCosts struct {
	firstProblem *Problem // one of the problems that they are valid for
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
func newClusterCosts(p *Problem, dev costmodel.Device) *clusterCosts {
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
func (v *clusterCosts) validFor(s *pricer) bool {
	p, q := v.firstProblem, s.problem
	if p.Model != q.Model || p.Precision != q.Precision || p.PricedEngine() != q.PricedEngine() ||
		p.Computes() != q.Computes() ||
		v.firstDevice != s.device {
		return false
	}
	a, b := *p.Cluster, *q.Cluster
	a.GPU.MemoryGiB, b.GPU.MemoryGiB = 0, 0
	return reflect.DeepEqual(a, b)
}
