package ir

import (
	"fmt"
	"math"
	"slices"
)

// piece is a run of ranks in the order of the axes, and which of etp, ep, edp and pp it belongs to.
type piece struct {
	of   Axis
	size int
}

// ExpertParts are the ranks of tp, cp and dp that ep takes: of tp what etp leaves, then of cp, then of dp, so that it
// does not depend on the order of the axes. etp is the fastest part of tp, ep the fastest of what is left of an axis,
// edp the rest.
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
			err = fmt.Errorf("ep %d does not cut %s %d evenly", p.EP, name, size)
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

// expertPieces is how experts factor the ranks. There are none where the plan regroups nothing, and experts are
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
	add := func(of Axis, size int) {
		if n := len(out); n > 0 && out[n-1].of == of {
			out[n-1].size *= size
		} else if size > 1 {
			out = append(out, piece{of, size})
		}
	}
	of := map[Axis]int{"tp": tp, "cp": cp, "dp": dp}
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
		add("ep", of[a.Name])
		add("edp", left/of[a.Name])
	}
	return out, nil
}

// withExperts is the mesh of the views and of how experts factor the ranks.
func withExperts(pieces []piece, views ...View) (Mesh, error) {
	count := map[Axis]int{}
	for _, x := range pieces {
		count[x.of]++
	}
	var view View
	parts := map[Axis][]Axis{}
	for _, x := range pieces {
		name := x.of
		if count[name] > 1 {
			name += Axis(fmt.Sprintf("_%d", len(parts[x.of])))
			parts[x.of] = append(parts[x.of], name)
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

// dispatchLayout is where tokens are when they are sent to experts: the ranks of one etp group have the same tokens,
// all others their own.
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

// ExpertSlots is how many places each expert has for the tokens of a micro-batch in one round, over all ranks that send
// some. Each of these has moe_slack times as many as its tokens would need if they were even; without a moe_slack as
// many as they could ever need, so that there is one round.
func (p Plan) ExpertSlots(seq, experts, choices int) int {
	senders := p.DP * p.CP * p.TP / max(p.ETP, 1)
	local := p.MicroBatch * p.DP * seq / senders
	if p.MoESlack <= 0 {
		return local * senders
	}
	// of each sequence, so that places grow with the micro-batch
	even := float64(local/p.MicroBatch*choices) / float64(experts)
	return min(local, p.MicroBatch*int(math.Ceil(p.MoESlack*even))) * senders
}

// ExpertReplicas are the axes over which an expert has replicas, the major one first: edp, or all ranks of a stage
// where experts do not regroup them.
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

// majorFirst orders atoms as the ranks have them.
func (m Mesh) majorFirst(atoms []Axis) []Axis {
	var out []Axis
	for _, x := range slices.Backward(m.Atoms) {
		if slices.Contains(atoms, x.Name) {
			out = append(out, x.Name)
		}
	}
	return out
}
