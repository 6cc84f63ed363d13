package space

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// expertRules are the rules of expert parallelism. Experts regroup the ranks of dp, cp and tp as edp · ep · etp.
var expertRules = []Rule{
	{"ep", "ep above 1 requires a model with experts, and divides their number", func(p *ir.Plan, s *RuleContext) bool {
		return p.EP == 1 || s.Experts%p.EP == 0 && s.Experts > 0
	}, func(p *ir.Plan, s *RuleContext) string {
		if s.Experts == 0 {
			return fmt.Sprintf("ep %d requires a model with experts: use ep 1", p.EP)
		}
		return fmt.Sprintf("ep %d must divide %d experts%s", p.EP, s.Experts, s.suggest(p, "ep", Divisors(s.Experts)))
	}},
	{"etp", "etp above 1 requires a model with experts, and divides tp", func(p *ir.Plan, s *RuleContext) bool {
		return p.ETP == 1 || s.Experts > 0 && p.TP%p.ETP == 0
	}, func(p *ir.Plan, s *RuleContext) string {
		if s.Experts == 0 {
			return fmt.Sprintf("etp %d requires a model with experts: use etp 1", p.ETP)
		}
		return fmt.Sprintf("etp %d must divide tp %d%s", p.ETP, p.TP, s.suggest(p, "etp", Divisors(p.TP)))
	}},
	{"etp", "etp divides an expert's width", func(p *ir.Plan, s *RuleContext) bool { return s.ExpertFFN%p.ETP == 0 },
		func(p *ir.Plan, s *RuleContext) string {
			return fmt.Sprintf("etp %d must divide an expert's width %d%s", p.ETP, s.ExpertFFN,
				s.suggest(p, "etp", Divisors(s.ExpertFFN)))
		}},
	{"etp", "tp / etp divides the positions of a rank, train.seq_len / cp, because these ranks share them " +
		"before they " +
		"send tokens to experts", func(p *ir.Plan, s *RuleContext) bool {
		return s.Experts == 0 || p.TP%p.ETP != 0 || (s.Seq/p.CP)%(p.TP/p.ETP) == 0
	}, func(p *ir.Plan, s *RuleContext) string {
		return fmt.Sprintf("tp %d / etp %d must divide %d positions%s", p.TP, p.ETP, s.Seq/p.CP,
			s.suggest(p, "etp", Divisors(p.TP)))
	}},
	{"ep", "ep · etp divides dp · cp · tp. ep takes the rest of tp after etp, then cp, then dp, splits each into " +
		"equal parts, and does not split the ranks that share K/V heads",
		func(p *ir.Plan, s *RuleContext) bool { return s.wrongExperts(p) == "" },
		func(p *ir.Plan, s *RuleContext) string {
			return s.wrongExperts(p) + s.suggest(p, "ep", Divisors(s.Experts))
		}},
	{"zero_group", "zero_group is all of dp · cp if experts have replicas of their own (edp): groups of the one " +
		"would split " +
		"the other differently, which is not supported yet",
		func(p *ir.Plan, _ *RuleContext) bool {
			return p.Zero == 0 || !ExpertsHaveOwnReplicas(p) || p.Replicas() == 1 || p.ZeroGroup == p.Replicas() ||
				!slices.Contains(replicaGroups(p), p.ZeroGroup)
		}, func(p *ir.Plan, _ *RuleContext) string {
			return fmt.Sprintf("zero_group %d: experts have %d replicas, on other ranks than the %d of dp · cp, and "+
				"groups of one would split the other differently: use zero_group %d",
				p.ZeroGroup, ExpertReplicas(p), p.Replicas(), p.Replicas())
		}},
	{"moe_slack", "moe_slack is at least 1 with experts, otherwise 0", func(p *ir.Plan, s *RuleContext) bool {
		return s.Experts == 0 && p.MoESlack == 0 || s.Experts > 0 && p.MoESlack >= 1
	}, func(p *ir.Plan, s *RuleContext) string {
		if s.Experts == 0 {
			return fmt.Sprintf("moe_slack %v requires a model with experts: use moe_slack 0", p.MoESlack)
		}
		return fmt.Sprintf("moe_slack %v must be at least 1, so that every token has a slot: use moe_slack %v",
			p.MoESlack, DefaultMoESlack)
	}},
}

// wrongExperts returns what is wrong with the ranks that ep takes; "" if nothing is.
func (s *RuleContext) wrongExperts(p *ir.Plan) string {
	if p.EP*p.ETP == 1 || s.Experts == 0 || p.TP%p.ETP != 0 {
		return "" // or another rule reports it
	}
	tp, cp, dp, err := p.ExpertParts()
	if err != nil {
		return err.Error()
	}
	kv, contexts := 1, 1
	if s.KVHeads > 0 && p.TP > s.KVHeads {
		kv = p.TP / s.KVHeads
	}
	if p.CPKind == "heads" && s.KVHeads > 0 {
		contexts = p.CP / min(p.CP, max(1, s.KVHeads/p.TP))
	}
	if !nests(kv, p.ETP, p.ETP*tp, p.TP) || !nests(contexts, cp, p.CP) || !nests(dp, p.DP) {
		return fmt.Sprintf("ep %d · etp %d splits tp %d · cp %d differently from the %d K/V heads",
			p.EP, p.ETP, p.TP, p.CP, s.KVHeads)
	}
	return ""
}

// nests reports whether one axis can be split at each of these numbers of ranks.
func nests(cuts ...int) bool {
	slices.Sort(cuts)
	for i := 1; i < len(cuts); i++ {
		if cuts[i]%cuts[i-1] != 0 {
			return false
		}
	}
	return true
}

// ExpertsHaveOwnReplicas reports whether experts have replicas other than those of the rest of the model: edp differs
// from dp · cp.
func ExpertsHaveOwnReplicas(p *ir.Plan) bool { return p.MoESlack > 0 && p.EP*p.ETP != p.TP }

// ExpertReplicas returns edp.
func ExpertReplicas(p *ir.Plan) int { return p.DP * p.CP * p.TP / (p.EP * p.ETP) }
