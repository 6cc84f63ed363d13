package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// contextRules are the rules of context parallelism.
var contextRules = []rule{
	{"cp_kind", "cp 1 has cp_kind none, cp above 1 gather, heads or ring", func(p *ir.Plan, _ *ruleContext) bool {
		return (p.CP == 1) == (p.CPKind == "none") && slices.Contains(ir.ContextKinds, p.CPKind)
	}, func(p *ir.Plan, _ *ruleContext) string {
		switch {
		case !slices.Contains(ir.ContextKinds, p.CPKind):
			return fmt.Sprintf("there is no cp_kind %s (%s)", p.CPKind, strings.Join(ir.ContextKinds, ", "))
		case p.CP == 1:
			return fmt.Sprintf("cp_kind %s needs cp above 1 (none does not)", p.CPKind)
		}
		return fmt.Sprintf("cp_kind none is of cp 1; cp %d has gather, heads or ring", p.CP)
	}},
	{"cp_kind", "ring: ep takes all of cp or none of it", func(p *ir.Plan, s *ruleContext) bool {
		return p.CPKind != "ring" || s.Experts == 0 || !p.CutsContext()
	}, func(p *ir.Plan, _ *ruleContext) string {
		return fmt.Sprintf("ep %d takes a part of cp %d, and a ring goes over all of it (gather and heads can do "+
			"with parts)", p.EP, p.CP)
	}},
	{"cp", "cp above 1 has a model with attention", func(p *ir.Plan, s *ruleContext) bool {
		return p.CP == 1 || s.KVHeads > 0
	},
		func(*ir.Plan, *ruleContext) string { return "cp above 1 needs a model with attention (1 does not)" }},
	{"cp", "gather and ring: 2 · cp divides train.seq_len, since each rank has one chunk of the first half and one " +
		"of the second", func(p *ir.Plan, s *ruleContext) bool {
		return p.CP == 1 || p.CPKind == "heads" || s.Seq%(2*p.CP) == 0
	}, func(p *ir.Plan, s *ruleContext) string {
		return fmt.Sprintf("cp %d: %d positions are not two chunks a rank (cp %s)", p.CP, s.Seq,
			nearbyDo(divisors(max(1, s.Seq/2)), p.CP))
	}},
	{"cp", "heads: cp divides train.seq_len", func(p *ir.Plan, s *ruleContext) bool {
		return p.CPKind != "heads" || s.Seq%p.CP == 0
	},
		func(p *ir.Plan, s *ruleContext) string {
			return fmt.Sprintf("cp %d does not divide %d positions (%s)", p.CP, s.Seq, nearbyDo(divisors(s.Seq), p.CP))
		}},
	{"cp", "heads: up to the K/V heads of a rank cp divides them; beyond, it is a multiple of them that cuts the " +
		"queries of each into equal groups", func(p *ir.Plan, s *ruleContext) bool {
		return p.CPKind != "heads" || slices.Contains(s.contextCuts(p), p.CP)
	}, func(p *ir.Plan, s *ruleContext) string {
		return fmt.Sprintf("cp %d, heads: it does not cut %d heads with %d K/V heads, split over tp %d, into equal "+
			"groups (%s; gather and ring can do with any)",
			p.CP, s.Heads(), s.KVHeads, p.TP, nearbyDo(s.contextCuts(p), p.CP))
	}},
}

// contextCuts returns the values of cp that split the heads of a rank evenly, as headCuts does for all heads.
func (d *Dims) contextCuts(p *ir.Plan) []int {
	own := Dims{KVHeads: max(1, d.KVHeads/p.TP), Group: max(1, d.Group/max(1, p.TP/max(1, d.KVHeads)))}
	return own.headCuts()
}

// zeroGroups returns the numbers of replicas that can share a copy of the state. If experts have replicas of their
// own (edp), it is all of them, because experts then share one copy too.
func zeroGroups(p *ir.Plan) []int {
	if hasOwnReplicas(p) && p.Replicas() > 1 {
		return []int{p.Replicas()}
	}
	return replicaGroups(p)
}

// replicaGroups returns the sizes of equal groups of replicas: all of cp times a divisor of dp.
func replicaGroups(p *ir.Plan) []int {
	var out []int
	for _, n := range divisors(p.DP) {
		n *= p.CP
		if n > 1 {
			out = append(out, n)
		}
	}
	return out
}
