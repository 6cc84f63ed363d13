package space

import (
	"slices"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
)

// Engines other than planc's run only some of the legal plans, see engines.PlanRules. A search under such an engine
// offers no other plan.

// NewRuleContext returns the rule context of a problem, including its engine's rules.
func NewRuleContext(p *Problem, d Dims) *RuleContext {
	s := &RuleContext{Dims: d, Devices: p.Cluster.Devices(), Nodes: p.Cluster.Nodes, Batch: p.GlobalBatch, Rules: rules,
		pins: p.Pins, shape: engines.Shape{KVHeads: d.KVHeads, Group: d.Group}}
	for _, r := range p.PricedEngine().PlanRules() {
		s.engine = append(s.engine, Rule{r.Key, r.When, func(p *ir.Plan, s *RuleContext) bool {
			return r.OK(p, &s.shape)
		},
			func(p *ir.Plan, s *RuleContext) string { return r.Why(p, &s.shape, KeyValues(*p)[r.Key]) }})
	}
	if len(s.engine) > 0 {
		s.Rules = slices.Concat(rules, s.engine)
	}
	return s
}

// Runs reports whether the problem's engine can run a plan, according to its rules for some keys. Those rules must
// depend on the plan alone.
func (p *Problem) Runs(plan *ir.Plan, keys ...string) bool {
	for _, r := range p.PricedEngine().PlanRules() {
		if slices.Contains(keys, r.Key) && !r.OK(plan, &engines.Shape{}) {
			return false
		}
	}
	return true
}

// recomputesAllOrNone reports whether the problem's engine recomputes selectively in all blocks or in none.
func (p *Problem) recomputesAllOrNone(plan *ir.Plan) bool {
	some := *plan
	some.Recompute, some.RecomputeLayers, some.StageLayers = "selective", 1, "2"
	return !p.Runs(&some, "recompute_layers")
}
