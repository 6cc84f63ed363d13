package ir

import (
	"fmt"
	"math"
	"slices"
)

// expertView is how experts factor the ranks of a stage: etp, ep and edp, the fastest-varying first. It is nil where the
// plan regroups nothing, and experts are replicated over all of them.
func (p Plan) expertView(ranks View) (View, error) {
	etp, ep := max(p.ETP, 1), max(p.EP, 1)
	if etp*ep == 1 {
		return nil, nil
	}
	stage := p.DP * p.CP * p.TP
	if stage%(etp*ep) != 0 {
		return nil, fmt.Errorf("ep %d · etp %d does not divide dp %d · cp %d · tp %d", ep, etp, p.DP, p.CP, p.TP)
	}
	axes := View{{"etp", etp}, {"ep", ep}, {"edp", stage / (etp * ep)}}
	var out View
	for _, a := range ranks {
		if a.Name == "pp" && a.Size > 1 {
			out = append(out, a)
			continue
		}
		for n := a.Size; n > 1; {
			x := &axes[0]
			if x.Size == 1 {
				axes = axes[1:]
				continue
			}
			step := min(n, x.Size)
			if n%step != 0 || x.Size%step != 0 {
				return nil, fmt.Errorf("ep %d · etp %d: %s and %s %d do not cut each other evenly", ep, etp, x.Name, a.Name, a.Size)
			}
			if last := len(out) - 1; last >= 0 && out[last].Name == x.Name {
				out[last].Size *= step
			} else if slices.ContainsFunc(out, func(o Atom) bool { return o.Name == x.Name }) {
				return nil, fmt.Errorf("axis order %s: %s would have ranks on both sides of pp", p.AxisOrder, x.Name)
			} else {
				out = append(out, Atom{x.Name, step})
			}
			n, x.Size = n/step, x.Size/step
		}
	}
	return out, nil
}

// dispatchLayout is where tokens are when they are sent to experts: the ranks of one etp group have the same tokens, all
// others their own.
func (p Plan) dispatchLayout(m Mesh) Layout {
	var etp []Axis
	if m.Has("etp") {
		etp = m.Expand([]Axis{"etp"})
	}
	rest := func(names ...Axis) []Axis {
		var out []Axis
		for _, a := range names {
			if !m.Has(a) {
				continue
			}
			atoms := slices.Clone(m.Expand([]Axis{a}))
			slices.Reverse(atoms)
			for _, x := range atoms {
				if !slices.Contains(etp, x) {
					out = append(out, x)
				}
			}
		}
		return out
	}
	return Layout{Batch: rest("dp"), Seq: rest("cp", "tp")}
}

// ExpertSlots is how many places each expert has for the tokens of a micro-batch in one round, over all ranks that send
// some. Each of these has moe_slack times as many as its tokens would need if they were even; without a moe_slack as many as
// they could ever need, so that there is one round.
func (p Plan) ExpertSlots(seq, experts, choices int) int {
	senders := p.DP * p.CP * p.TP / max(p.ETP, 1)
	local := p.MicroBatch * p.DP * seq / senders
	if p.MoESlack <= 0 {
		return local * senders
	}
	rows := max(1, p.MicroBatch*p.DP/senders)
	even := float64(local/rows*choices) / float64(experts)
	return min(local, rows*int(math.Ceil(p.MoESlack*even))) * senders
}

// ExpertReplicas are the axes over which an expert has replicas, the major one first: edp, or all ranks of a stage where
// experts do not regroup them.
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
