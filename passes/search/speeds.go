package search

import (
	"maps"
	"reflect"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// speeds are what layers and their collectives take on one cluster, however many sequences a step has and whatever its
// devices' memory.
type speeds struct {
	problem *Problem // one of those that they are of
	device  costmodel.Device

	layerSums map[costKey][]costSums
	messages  map[[2]int]costmodel.Seconds
	routes    map[routeKey]*costmodel.Route
	interns   map[costmodel.Route]*costmodel.Route
	goings    map[goingKey]*going
	likes     map[*profile][]*going
	placed    map[placedKey]*costmodel.Route
	places    map[[4]int]costmodel.Placement
}

func newSpeeds(p *Problem, dev costmodel.Device) *speeds {
	return &speeds{problem: p, device: dev, layerSums: map[costKey][]costSums{},
		messages: map[[2]int]costmodel.Seconds{},
		routes:   map[routeKey]*costmodel.Route{}, interns: map[costmodel.Route]*costmodel.Route{},
		goings: map[goingKey]*going{},
		likes:  map[*profile][]*going{}, placed: map[placedKey]*costmodel.Route{},
		places: map[[4]int]costmodel.Placement{}}
}

// copied are speeds of their own that begin with what these hold.
func (v *speeds) copied() *speeds {
	own := *v
	own.layerSums, own.messages, own.routes, own.interns = maps.Clone(v.layerSums), maps.Clone(v.messages),
		maps.Clone(v.routes), maps.Clone(v.interns)
	own.goings, own.likes, own.placed, own.places = maps.Clone(v.goings), maps.Clone(v.likes), maps.Clone(v.placed),
		maps.Clone(v.places)
	for p, all := range own.likes {
		own.likes[p] = slices.Clone(all)
	}
	return &own
}

// of tells whether they are those of a searcher's problem too.
func (v *speeds) of(s *searcher) bool {
	p, q := v.problem, s.problem
	if p.Model != q.Model || p.Precision != q.Precision || p.engine() != q.engine() || p.Computes() != q.Computes() ||
		v.device != s.device {
		return false
	}
	a, b := *p.Cluster, *q.Cluster
	a.GPU.MemoryGiB, b.GPU.MemoryGiB = 0, 0
	return reflect.DeepEqual(a, b)
}
