package ir

import (
	"fmt"
	"math"
	"slices"
)

// piece is a run of ranks in the order of the axes, and the axis among etp, ep, edp and pp to which it belongs.
type piece struct {
	axis Axis
	size int
}

// ExpertParts returns the parts of tp, cp and dp that ep takes: first from tp what etp leaves, then from cp, then from
// dp. It does not depend on the order of the axes. etp is the fastest part of tp, ep the fastest part of the rest of an
// axis, and edp the remainder.
func (p Plan) ExpertParts() (tp, cp, dp int, err error) {
	etp, ep := max(p.ETP, 1), max(p.EP, 1)
	if p.TP%etp != 0 {
		return 1, 1, 1, fmt.Errorf("etp %d does not divide tp %d", etp, p.TP)
	}
	if stage := p.DP * p.CP * p.TP; stage%(etp*ep) != 0 {
		return 1, 1, 1, fmt.Errorf("ep %d · etp %d does not divide the %d ranks of a stage", ep, etp, stage)
	}
	take := func(name Axis, size, left int) int {
		n := min(left, ep)
		if err == nil && (left%n != 0 || ep%n != 0) {
			err = fmt.Errorf("ep %d does not split %s %d evenly", p.EP, name, size)
			return 1
		}
		ep /= n
		return n
	}
	tp = take("tp", p.TP, p.TP/etp)
	cp = take("cp", p.CP, p.CP)
	dp = take("dp", p.DP, p.DP)
	return tp, cp, dp, err
}

// expertPieces returns how experts factor the ranks. It returns none if the plan regroups nothing, so that experts are
// replicated over all ranks of a stage.
func (p Plan) expertPieces(ranks View) ([]piece, error) {
	if max(p.ETP, 1)*max(p.EP, 1) == 1 {
		return nil, nil
	}
	tp, cp, dp, err := p.ExpertParts()
	if err != nil {
		return nil, err
	}
	var out []piece
	add := func(parts Axis, size int) {
		if n := len(out); n > 0 && out[n-1].axis == parts {
			out[n-1].size *= size
		} else if size > 1 {
			out = append(out, piece{parts, size})
		}
	}
	parts := map[Axis]int{"tp": tp, "cp": cp, "dp": dp}
	for _, a := range ranks {
		left := a.Size
		switch a.Name {
		case "pp":
			add("pp", left)
			continue
		case "tp":
			add("etp", max(p.ETP, 1))
			left /= max(p.ETP, 1)
		}
		add("ep", parts[a.Name])
		add("edp", left/parts[a.Name])
	}
	return out, nil
}

// withExperts returns the mesh of the views and of the experts' factors of the ranks.
func withExperts(pieces []piece, views ...View) (Mesh, error) {
	count := map[Axis]int{}
	for _, x := range pieces {
		count[x.axis]++
	}
	var view View
	parts := map[Axis][]Axis{}
	for _, x := range pieces {
		name := x.axis
		if count[name] > 1 {
			name += Axis(fmt.Sprintf("_%d", len(parts[x.axis])))
			parts[x.axis] = append(parts[x.axis], name)
		}
		view = append(view, Atom{name, x.size})
	}
	m, err := NewMesh(append([]View{views[0], view}, views[1:]...)...)
	if err != nil {
		return m, err
	}
	for _, x := range []Axis{"etp", "ep", "edp"} {
		if count[x] > 1 {
			var atoms []Axis
			for _, part := range parts[x] {
				atoms = append(atoms, m.expand(part)...)
			}
			m.Product(x, atoms...)
		}
	}
	return m, nil
}

// dispatchLayout returns the layout of tokens when they are sent to experts: the ranks of an etp group have the same
// tokens, all others have different ones.
func (p Plan) dispatchLayout(m Mesh) Layout {
	seq := slices.Clone(p.contexts(m))
	if m.Has("tp") {
		var etp []Axis
		if m.Has("etp") {
			etp = m.expand("etp")
		}
		for _, x := range slices.Backward(m.expand("tp")) {
			if !slices.Contains(etp, x) {
				seq = append(seq, x)
			}
		}
	}
	return Layout{Batch: have(m, "dp"), Seq: seq}
}

// ExpertSlots returns the number of slots per expert for the tokens of a micro-batch in one round, over all ranks that
// send tokens. Each of these ranks has moe_slack (the capacity factor) times the slots that its tokens would need at
// balance. Without moe_slack it has as many as they could ever need, so that there is one round.
func (p Plan) ExpertSlots(seq, experts, choices int) int {
	senders := p.DP * p.CP * p.TP / max(p.ETP, 1)
	local := p.MicroBatch * p.DP * seq / senders
	if p.MoESlack <= 0 {
		return local * senders
	}
	// per sequence, so that the number of slots is proportional to the micro-batch
	even := float64(local/p.MicroBatch*choices) / float64(experts)
	return min(local, p.MicroBatch*int(math.Ceil(p.MoESlack*even))) * senders
}

// ExpertReplicas returns the axes over which an expert has replicas, the major one first: edp, or all ranks of a stage
// if experts do not regroup them.
func ExpertReplicas(m Mesh) []Axis {
	var names []Axis
	switch {
	case m.Has("edp"):
		names = []Axis{"edp"}
	case !m.Has("ep") && !m.Has("etp"):
		names = []Axis{"dp", "cp", "tp"}
	}
	var out []Axis
	for _, a := range names {
		if m.Has(a) {
			out = append(out, m.Expand([]Axis{a})...)
		}
	}
	return m.majorFirst(out)
}

// majorFirst orders atoms as the ranks have them, the major one first.
func (m Mesh) majorFirst(atoms []Axis) []Axis {
	var out []Axis
	for _, x := range slices.Backward(m.Atoms) {
		if slices.Contains(atoms, x.Name) {
			out = append(out, x.Name)
		}
	}
	return out
}
