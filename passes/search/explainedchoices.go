package search

import (
	"strconv"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/ir"
)

// choice is a plan key that is searched and explained.
type choice struct {
	name  string
	value func(p *ir.Plan) string
	asks  scope
	// nil: to any plan; the choice is then explained even if it has no other value
	applies func(p *ir.Plan) bool
}

// scope is which other values of a choice become alternatives.
type scope int

const (
	bestOther scope = iota // the best of them
	adjacent               // the best, and the next smaller and the next larger value
	eachOther              // each of them
)

// intValue returns a function that prints an integer key.
func intValue(get func(*ir.Plan) int) func(*ir.Plan) string {
	return func(p *ir.Plan) string { return strconv.Itoa(get(p)) }
}

// hasPipeline reports whether a plan has a pipeline.
func hasPipeline(p *ir.Plan) bool { return p.PP > 1 }

// always applies to any plan.
func always(*ir.Plan) bool { return true }

// choices are the keys that are searched, in the order in which they are explained.
var choices = []choice{
	{"zero", intValue(func(p *ir.Plan) int { return p.Zero }), eachOther, nil},
	{"zero_group", intValue(func(p *ir.Plan) int { return p.ZeroGroup }), bestOther, func(p *ir.Plan) bool {
		return p.Zero > 0
	}},
	{"tp", intValue(func(p *ir.Plan) int { return p.TP }), adjacent, nil},
	{"pp", intValue(func(p *ir.Plan) int { return p.PP }), adjacent, nil},
	{"cp", intValue(func(p *ir.Plan) int { return p.CP }), adjacent, always},
	{"cp_kind", func(p *ir.Plan) string { return p.CPKind }, eachOther, func(p *ir.Plan) bool { return p.CP > 1 }},
	{"ep", intValue(func(p *ir.Plan) int { return p.EP }), adjacent, space.HasExperts},
	{"etp", intValue(func(p *ir.Plan) int { return p.ETP }), adjacent, func(p *ir.Plan) bool {
		return space.HasExperts(p) && p.TP > 1
	}},
	{"vpp", intValue(func(p *ir.Plan) int { return p.VPP }), bestOther, hasPipeline},
	{"schedule", func(p *ir.Plan) string { return p.Schedule }, eachOther, hasPipeline},
	{"sp", func(p *ir.Plan) string { return strconv.FormatBool(p.SP) }, eachOther, nil},
	{"micro_batch", intValue(func(p *ir.Plan) int { return p.MicroBatch }), adjacent, nil},
	{"recompute", func(p *ir.Plan) string { return p.Recompute }, eachOther, nil},
	{"axis_order", func(p *ir.Plan) string { return p.AxisOrder }, bestOther, always},
}

// choiceFilter restricts a search to plans for which want accepts the value of a choice. Axis orders are only
// compared between plans with the same degrees.
func choiceFilter(c *choice, chosen *ir.Plan, want func(string) bool) *filter {
	switch c.name {
	case "recompute":
		return &filter{recompute: want}
	case "zero":
		return &filter{member: func(m *member) bool { return want(strconv.Itoa(m.Sharding.Zero)) }}
	case "zero_group":
		return &filter{member: func(m *member) bool { return want(strconv.Itoa(m.Sharding.Group)) }}
	case "axis_order":
		return &filter{family: func(f *spaceFamily) bool {
			return sameDegrees(&f.Plan, chosen)
		}, member: func(m *member) bool {
			return want(m.Order.Name)
		}}
	}
	return &filter{family: func(f *spaceFamily) bool { return want(c.value(&f.Plan)) }}
}

// sameDegrees reports whether two plans have the same degrees.
func sameDegrees(a, b *ir.Plan) bool {
	return a.DP == b.DP && a.TP == b.TP && a.PP == b.PP && a.CP == b.CP && a.EP == b.EP && a.ETP == b.ETP
}

// otherValues returns a choice's values in a space except the plan's own, in order of first occurrence. Axis orders
// are those of plans with the same degrees.
func (s *searcher) otherValues(sp *planSpace, c *choice, chosen *ir.Plan) []string {
	var out []string
	latest := c.value(chosen) // neighbours in a space usually agree
	seen := map[string]bool{latest: true}
	add := func(v string) {
		if v != latest && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
		latest = v
	}
	var last []space.Sharding // of the previous family; consecutive families often have the same
	for _, f := range sp.families {
		switch c.name {
		case "zero", "zero_group":
			all := s.Shardings(sp.problem, &f.Plan)
			if len(last) > 0 && len(all) > 0 && &last[0] == &all[0] {
				continue
			}
			for last = all; len(all) > 0; all = all[1:] {
				if c.name == "zero" {
					add(strconv.Itoa(all[0].Zero))
				} else {
					add(strconv.Itoa(all[0].Group))
				}
			}
		case "recompute":
			for _, a := range s.RecomputeChoices(sp.problem, &f.Plan, 1) {
				add(a.Kind)
			}
		case "axis_order":
			if !sameDegrees(&f.Plan, chosen) {
				continue
			}
			for _, o := range s.Orders(sp.problem, &f.Plan) {
				add(o)
			}
		default:
			add(c.value(&f.Plan))
		}
	}
	return out
}

// whyNone returns the rule that leaves a key only one value; nil if only pins do.
func (s *searcher) whyNone(name string, best ir.Plan) []Reason {
	other := best
	switch name {
	case "zero":
		other.Zero, other.ZeroGroup = 1, max(2, best.Replicas())
		if best.Zero > 0 {
			other.Zero, other.ZeroGroup = 0, 1
		}
	case "sp":
		other.SP = !best.SP
	case "tp":
		other.TP, other.DP = 2*best.TP, max(1, best.DP/2)
	case "pp":
		other.PP, other.VPP, other.DP, other.Schedule = 2*best.PP, 1, max(1, best.DP/2), "1f1b"
	case "micro_batch":
		other.MicroBatch = 2 * best.MicroBatch
	}
	if other.Zero > 0 && other.DP != best.DP { // the group depends on dp
		other.ZeroGroup = other.Replicas()
		if other.ZeroGroup == 1 {
			other.Zero = 0
		}
	}
	other.MicroBatches = s.problem.GlobalBatch / max(1, other.DP*other.MicroBatch)
	for _, r := range space.BrokenRules(&other, space.NewRuleContext(s.problem, s.dims)) {
		if r.Key != "stage_layers" && r.Key != "axis_order" {
			return []Reason{r}
		}
	}
	return nil
}
