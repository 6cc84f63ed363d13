package space

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// contextRules are the rules of context parallelism.
var contextRules = []Rule{
	{"cp_kind", "cp_kind is none if cp is 1, otherwise gather, heads or ring", func(p *ir.Plan, _ *RuleContext) bool {
		return (p.CP == 1) == (p.CPKind == "none") && slices.Contains(ir.ContextKinds, p.CPKind)
	}, func(p *ir.Plan, _ *RuleContext) string {
		switch {
		case !slices.Contains(ir.ContextKinds, p.CPKind):
			return fmt.Sprintf("cp_kind %s must be one of: %s", p.CPKind, strings.Join(ir.ContextKinds, ", "))
		case p.CP == 1:
			return fmt.Sprintf("cp_kind %s requires cp above 1: use cp_kind none", p.CPKind)
		}
		return fmt.Sprintf("cp_kind none requires cp 1: with cp %d, use gather, heads or ring", p.CP)
	}},
	{"cp_kind", "with cp_kind ring, ep takes all of cp or none of it", func(p *ir.Plan, s *RuleContext) bool {
		return p.CPKind != "ring" || s.Experts == 0 || !p.CutsContext()
	}, func(p *ir.Plan, _ *RuleContext) string {
		return fmt.Sprintf("ep %d takes a part of cp %d, but a ring needs all of it: use cp_kind gather or heads",
			p.EP, p.CP)
	}},
	{"cp", "cp above 1 requires a model with attention", func(p *ir.Plan, s *RuleContext) bool {
		return p.CP == 1 || s.KVHeads > 0
	},
		func(*ir.Plan, *RuleContext) string { return "cp above 1 requires a model with attention: use cp 1" }},
	{"cp", "with cp_kind gather and ring, 2 · cp divides train.seq_len, because each rank has one chunk of the " +
		"first half and one of the second", func(p *ir.Plan, s *RuleContext) bool {
		return p.CP == 1 || p.CPKind == "heads" || s.Seq%(2*p.CP) == 0
	}, func(p *ir.Plan, s *RuleContext) string {
		return fmt.Sprintf("cp %d: %d positions must split into two chunks per rank%s", p.CP, s.Seq,
			s.suggest(p, "cp", Divisors(max(1, s.Seq/2))))
	}},
	{"cp", "with cp_kind heads, cp divides train.seq_len", func(p *ir.Plan, s *RuleContext) bool {
		return p.CPKind != "heads" || s.Seq%p.CP == 0
	},
		func(p *ir.Plan, s *RuleContext) string {
			return fmt.Sprintf("cp %d must divide %d positions%s", p.CP, s.Seq,
				s.suggest(p, "cp", Divisors(s.Seq)))
		}},
	{"cp", "with cp_kind heads, cp divides the K/V heads of a rank or, above them, is a multiple of them that " +
		"splits the queries of each into equal groups", func(p *ir.Plan, s *RuleContext) bool {
		return p.CPKind != "heads" || slices.Contains(s.contextCuts(p), p.CP)
	}, func(p *ir.Plan, s *RuleContext) string {
		use := s.suggestOr(p, "cp", s.contextCuts(p), "cp_kind gather or ring")
		if s.Group == 1 {
			return fmt.Sprintf("cp %d with cp_kind heads must divide %d attention heads, split over tp %d%s", p.CP,
				s.KVHeads, p.TP, use)
		}
		return fmt.Sprintf("cp %d with cp_kind heads must split %d heads with %d K/V heads, split over tp %d, into "+
			"equal groups%s", p.CP, s.Heads(), s.KVHeads, p.TP, use)
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
	if ExpertsHaveOwnReplicas(p) && p.Replicas() > 1 {
		return []int{p.Replicas()}
	}
	return replicaGroups(p)
}

// replicaGroups returns the sizes of equal groups of replicas: all of cp times a divisor of dp.
func replicaGroups(p *ir.Plan) []int {
	var out []int
	for _, n := range Divisors(p.DP) {
		n *= p.CP
		if n > 1 {
			out = append(out, n)
		}
	}
	return out
}
