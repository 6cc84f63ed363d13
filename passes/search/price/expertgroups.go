package price

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Experts regroup ranks. A block's functions depend on how many ranks of each axis ep takes, not on how many remain.
// Which ranks communicate depends only on the order of the axes.

// expertKey is what a profile depends on because of experts. Of dp it only matters whether replicas remain beyond the
// ranks that ep takes.
type expertKey struct {
	ep, etp      int
	moreReplicas bool
	slack        float64
}

// expertKeyOf returns the key of a plan; the zero value if there are no experts.
func expertKeyOf(p *ir.Plan) expertKey {
	if p.MoESlack == 0 {
		return expertKey{}
	}
	k := expertKey{ep: p.EP, etp: p.ETP, slack: p.MoESlack}
	_, _, dp := k.parts(p.TP, p.CP)
	k.moreReplicas = p.DP > dp
	return k
}

// parts returns the ranks of tp, cp and dp that ep takes, see [ir.Plan.ExpertParts].
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

// commGroup is the group of a collective where experts regroup ranks, in terms that hold for any number of replicas
// and any axis order. The zero value means that the collective's axes are the same in any plan.
type commGroup struct {
	experts []ir.Axis // ep, etp, or both
	spans   []span
}

// span is some ranks of an axis. If to is 0, it extends to the axis's end.
type span struct {
	axis     ir.Axis
	from, to int
}

// commGroupOf returns the group of a node's collective.
func commGroupOf(n *ir.Node, axes []ir.Axis, m ir.Mesh) (g commGroup) {
	// cp uses zigzag chunks
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

// present returns those of some axes that a mesh has.
func present(m ir.Mesh, axes ...ir.Axis) []ir.Axis {
	return slices.DeleteFunc(axes, func(a ir.Axis) bool { return !m.Has(a) })
}

// spansOf returns atoms of a mesh as spans of tp, cp and dp.
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

// axesOn returns the group's axes on a plan's mesh, the major one first.
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

// Experts is how a plan regroups ranks for experts, and the assumptions behind its price.
type Experts struct {
	Replicas int // edp: the number of ranks that hold the same experts
	// dp, if ep is counted as an axis of its own; 0 if that is not a whole number
	Own int
	// expected rounds if each token is equally likely to choose any expert; 0 if the engine has no slots
	Rounds float64
	Empty  float64 // fraction of the slots of these rounds that stays empty
	// expected tokens of the fullest expert from one rank, relative to its even share
	Fullest float64
	// tokens that these rounds have slots for, relative to the even share; with more, there are more rounds. 0 if no
	// expert can get that many.
	Room float64
}

// ExpertsOf describes the experts of a plan.
func ExpertsOf(p *space.Problem, plan ir.Plan) Experts {
	s, k := &layerTimer{}, keyOf(plan)
	s.dims = space.DimsOf(p.Model)
	e := Experts{Replicas: space.ExpertReplicas(&plan)}
	if p.PricedEngine().Own && plan.MoESlack > 0 {
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

// expertPlacement returns where the replicas of an expert are (edp).
func (s *collectiveTimer) expertPlacement(f *Family, o *AxisOrder) costmodel.Placement {
	plan := f.Plan
	plan.AxisOrder = o.Name
	mesh, err := plan.Mesh(s.dims.KVHeads, s.problem.Recipe.VocabMultiple)
	if err != nil {
		panic(fmt.Sprintf("price: a legal plan has no mesh: %v: %v", plan.Text(), err))
	}
	return s.problem.Cluster.Place(mesh, ir.ExpertReplicas(mesh))
}
