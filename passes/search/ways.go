package search

import (
	"fmt"
	"math"

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

// waysKey is what a function's ways depend on: of a mesh the strides alone, since the profile fixes how many ranks there are.
type waysKey struct {
	of      *funcProfile
	strides [3]int
}

// placedKey is a kind of collective over ranks in some places.
type placedKey struct {
	op    ir.Op
	place costmodel.Placement
}

// waysOf are those of a function's collectives, found once for all micro-batches.
func (s *searcher) waysOf(p *funcProfile, m *meshAt) []way {
	if len(p.comms) == 0 {
		return nil
	}
	k := waysKey{p, m.strides}
	if ws := s.ways[k]; ws != nil {
		return ws
	}
	ws, mesh := make([]way, len(p.comms)), s.mesh(m)
	for i := range p.comms {
		l := &p.comms[i]
		place := s.problem.Cluster.Place(mesh, l.group.on(mesh, l.what.Axes))
		ws[i] = way{place: place, route: s.placed[placedKey{l.what.Op, place}], waits: math.Log2(float64(place.Ranks()))}
		if ws[i].route == nil {
			r := s.problem.Cluster.Route(l.what.Op, place)
			ws[i].route = &r
			s.placed[placedKey{l.what.Op, place}] = &r
		}
	}
	s.ways[k] = ws
	return ws
}
