package search

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// A model's experts regroup ranks. What a block's functions are depends on how many ranks of each axis ep takes, not on
// how many there are beside; whose collectives are whose, on the order of the axes alone.

// expertKey is what a profile needs to know of experts: of dp whether there are replicas beyond those that ep takes.
type expertKey struct {
	ep, etp      int
	moreReplicas bool
	slack        float64
}

// expertKeyOf is a plan's; the zero value where there are no experts.
func expertKeyOf(p *ir.Plan) expertKey {
	if p.MoESlack == 0 {
		return expertKey{}
	}
	k := expertKey{ep: p.EP, etp: p.ETP, slack: p.MoESlack}
	_, _, dp := k.parts(p.TP, p.CP)
	k.moreReplicas = p.DP > dp
	return k
}

// parts are the ranks of tp, cp and dp that ep takes: see [ir.Plan.ExpertParts].
func (k *expertKey) parts(tp, cp int) (ofTP, ofCP, ofDP int) {
	ofTP = min(tp/k.etp, k.ep)
	ofCP = min(cp, k.ep/ofTP)
	return ofTP, ofCP, k.ep / ofTP / ofCP
}

// apply gives a profile's plan the experts of the key, with the fewest replicas.
func (k *expertKey) apply(p *ir.Plan) {
	if k.slack == 0 {
		return
	}
	_, _, dp := k.parts(p.TP, p.CP)
	p.EP, p.ETP, p.MoESlack, p.DP = k.ep, k.etp, k.slack, dp
	if k.moreReplicas {
		p.DP *= 2
	}
}

// commGroup is whose collective it is where experts regroup ranks, in words that hold for any number of replicas and any
// order of the axes; the zero value: its axes are the same in any plan.
type commGroup struct {
	experts []ir.Axis // ep, etp, or both
	spans   []span
}

// span is some ranks of an axis, to 0: up to its end.
type span struct {
	axis     ir.Axis
	from, to int
}

// commGroupOf finds whose collective a node's is.
func commGroupOf(n *ir.Node, axes []ir.Axis, m ir.Mesh) (g commGroup) {
	// cp in zigzag
	if !m.Has("ep") && !m.Has("etp") || slices.ContainsFunc(axes, func(a ir.Axis) bool { return a != a.Plain() }) {
		return g
	}
	switch {
	case n.Op == ir.OpRounds:
		g.experts = present(m, "ep", "etp")
	case n.Attr.Round && n.Op == ir.OpAllToAll:
		g.experts = []ir.Axis{"ep"}
	case n.Attr.Round:
		g.experts = []ir.Axis{"etp"}
	default:
		g.spans = spansOf(m, m.Expand(axes))
	}
	return g
}

// present are those of some axes that a mesh has.
func present(m ir.Mesh, axes ...ir.Axis) []ir.Axis {
	return slices.DeleteFunc(axes, func(a ir.Axis) bool { return !m.Has(a) })
}

// spansOf are atoms of a mesh as ranks of tp, cp and dp.
func spansOf(m ir.Mesh, atoms []ir.Axis) (out []span) {
	for _, axis := range present(m, "tp", "cp", "dp") {
		all := m.Expand([]ir.Axis{axis})
		for i, n := 0, 1; i < len(all); i++ {
			size := m.Ranks(all[i : i+1])
			if slices.Contains(atoms, all[i]) {
				to := n * size
				if i == len(all)-1 {
					to = 0
				}
				if k := len(out) - 1; k >= 0 && out[k].axis == axis && out[k].to == n {
					out[k].to = to
				} else {
					out = append(out, span{axis, n, to})
				}
			}
			n *= size
		}
	}
	return out
}

// axesOn are the group's axes on a plan's mesh, the major one first.
func (g *commGroup) axesOn(m ir.Mesh, axes []ir.Axis) []ir.Axis {
	if g.experts == nil && g.spans == nil {
		return axes
	}
	var atoms []ir.Axis
	for _, a := range g.experts {
		atoms = append(atoms, m.Expand([]ir.Axis{a})...)
	}
	for _, s := range g.spans {
		n := 1
		for _, a := range m.Expand([]ir.Axis{s.axis}) {
			if n >= s.from && (s.to == 0 || n < s.to) {
				atoms = append(atoms, a)
			}
			n *= m.Ranks([]ir.Axis{a})
		}
	}
	var out []ir.Axis
	for _, x := range slices.Backward(m.Atoms) {
		if slices.Contains(atoms, x.Name) {
			out = append(out, x.Name)
		}
	}
	return out
}

// Experts is how a plan regroups ranks for experts, and what its prices rest on.
type Experts struct {
	Replicas int // edp: ranks that have the same experts
	Own      int // dp where ep is counted as an axis of its own, 0 where that is no whole number
	// expected, where tokens choose any expert as likely as any other; 0: the engine has tokens without places
	Rounds  float64
	Empty   float64 // of the places of these rounds, the part that stays empty
	Fullest float64 // tokens that the fullest expert is expected to get of a rank, over its even share
	// the same of what these rounds have places for, above which there are more; 0 where no expert can get that many
	Room float64
}

// ExpertsOf says so of a plan of a model with experts.
func ExpertsOf(p *Problem, plan ir.Plan) Experts {
	s, k := &searcher{dims: DimsOf(p.Model)}, keyOf(plan)
	e := Experts{Replicas: expertReplicas(&plan)}
	if p.engine().Own && plan.MoESlack > 0 {
		l := s.moeLoad(&k, plan.MicroBatch)
		e.Rounds, e.Empty = l.rounds, l.emptyPart
		c := s.expertDemand(&k, plan.MicroBatch)
		e.Fullest = c.fullest / c.even
		if places := l.rounds * c.slots; places < c.limit {
			e.Room = places / c.even
		}
	}
	if plan.DP%plan.EP == 0 {
		e.Own = plan.DP / plan.EP
	}
	return e
}

// expertPlacement is where the replicas of an expert are, edp.
func (s *searcher) expertPlacement(f *family, o *axisOrder) costmodel.Placement {
	plan := f.plan
	plan.AxisOrder = o.name
	mesh, err := plan.Mesh(s.dims.KVHeads)
	if err != nil {
		panic(fmt.Sprintf("search: a legal plan has no mesh: %v: %v", plan.Text(), err))
	}
	return s.problem.Cluster.Place(mesh, ir.ExpertReplicas(mesh))
}
