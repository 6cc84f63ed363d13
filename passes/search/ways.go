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
			ws[i].route = s.interned(s.problem.Cluster.Route(l.what.Op, place))
			s.placed[placedKey{l.what.Op, place}] = ws[i].route
		}
	}
	s.ways[k] = ws
	return ws
}

// interned is a route that is kept once, so that equal ones are one.
func (s *searcher) interned(r costmodel.Route) *costmodel.Route {
	if s.interns[r] == nil {
		s.interns[r] = &r
	}
	return s.interns[r]
}

// likeKey is a profile with the strides of a mesh.
type likeKey struct {
	of      *profile
	strides [3]int
}

// like are strides, with the ways that all collectives of a profile go.
type like struct {
	strides [3]int
	ways    []way
}

// alike are, of all strides with which a profile's collectives go the same ways, those that were met first: layers cost the
// same with each, since of a mesh costs depend on ways alone.
func (s *searcher) alike(p *profile, m *meshAt) [3]int {
	k := likeKey{p, m.strides}
	if to, known := s.alikes[k]; known {
		return to
	}
	var all []way
	for i := range p.segs {
		v := &p.segs[i]
		for _, f := range []*funcProfile{&v.forward, &v.backward, &v.weights} {
			for j, w := range s.waysOf(f, m) {
				if f.comms[j].once == 0 { // else how far the ranks are apart counts beside the route
					w.place.Span = 0
				}
				all = append(all, w)
			}
		}
	}
	to := m.strides
	if i := slices.IndexFunc(s.likes[p], func(o like) bool { return slices.Equal(o.ways, all) }); i >= 0 {
		to = s.likes[p][i].strides
	} else {
		s.likes[p] = append(s.likes[p], like{to, all})
	}
	s.alikes[k] = to
	return to
}
