package search

import (
	"strconv"

	"github.com/planc-dev/planc/ir"
)

// choice is a key that is searched.
type choice struct {
	name    string
	value   func(p *ir.Plan) string
	asks    scope
	applies func(p *ir.Plan) bool // nil: to any plan, and is explained where it has no other value too
}

// scope is which other values of a choice are alternatives.
type scope int

const (
	theBest scope = iota // the best of them
	nextTo               // that, and the next smaller and the next larger one
	eachOne              // each of them
)

func number(get func(*ir.Plan) int) func(*ir.Plan) string {
	return func(p *ir.Plan) string { return strconv.Itoa(get(p)) }
}

func staged(p *ir.Plan) bool { return p.PP > 1 }

func experts(p *ir.Plan) bool { return p.MoESlack > 0 }

func always(*ir.Plan) bool { return true }

// choices are the keys that are searched, in the order in which they are explained.
var choices = []choice{
	{"zero", number(func(p *ir.Plan) int { return p.Zero }), eachOne, nil},
	{"zero_group", number(func(p *ir.Plan) int { return p.ZeroGroup }), theBest, func(p *ir.Plan) bool {
		return p.Zero > 0
	}},
	{"tp", number(func(p *ir.Plan) int { return p.TP }), nextTo, nil},
	{"pp", number(func(p *ir.Plan) int { return p.PP }), nextTo, nil},
	{"cp", number(func(p *ir.Plan) int { return p.CP }), nextTo, always},
	{"cp_kind", func(p *ir.Plan) string { return p.CPKind }, eachOne, func(p *ir.Plan) bool { return p.CP > 1 }},
	{"ep", number(func(p *ir.Plan) int { return p.EP }), nextTo, experts},
	{"etp", number(func(p *ir.Plan) int { return p.ETP }), nextTo, func(p *ir.Plan) bool {
		return experts(p) && p.TP > 1
	}},
	{"vpp", number(func(p *ir.Plan) int { return p.VPP }), theBest, staged},
	{"schedule", func(p *ir.Plan) string { return p.Schedule }, eachOne, staged},
	{"sp", func(p *ir.Plan) string { return strconv.FormatBool(p.SP) }, eachOne, nil},
	{"micro_batch", number(func(p *ir.Plan) int { return p.MicroBatch }), nextTo, nil},
	{"recompute", func(p *ir.Plan) string { return p.Recompute }, eachOne, nil},
	{"axis_order", func(p *ir.Plan) string { return p.AxisOrder }, theBest, always},
}

// follow says which other keys can no longer be as they were when a key changes.
var follow = map[string][]string{
	"dp": {"tp", "ep", "etp", "zero_group", "micro_batches"},
	"tp": {"dp", "ep", "etp", "zero_group", "axis_order", "stage_layers", "micro_batches",
		"recompute_split"},
	"pp": {"dp", "ep", "etp", "zero_group", "axis_order", "stage_layers", "micro_batches", "vpp",
		"schedule", "recompute_layers"},
	"cp":              {"dp", "ep", "cp_kind", "zero_group", "axis_order", "stage_layers", "micro_batches"},
	"cp_kind":         {"cp", "dp", "ep", "zero_group", "axis_order", "stage_layers", "micro_batches"},
	"ep":              {"etp", "zero_group", "stage_layers"},
	"etp":             {"ep", "zero_group", "stage_layers"},
	"moe_slack":       {"stage_layers"},
	"vpp":             {"stage_layers", "schedule", "recompute_layers"},
	"schedule":        {"stage_layers", "vpp", "recompute_layers"},
	"sp":              {"stage_layers", "recompute_split"},
	"zero":            {"zero_group"},
	"micro_batch":     {"micro_batches", "stage_layers"},
	"micro_batches":   {"micro_batch", "stage_layers"},
	"recompute":       {"recompute_layers", "recompute_every", "recompute_split"},
	"recompute_every": {"recompute_layers", "recompute"},
	"stage_layers":    {"recompute_layers"},
}

// Kept pins all that a plan has decided, but for what is asked and what follows from it: of dp and tp, and of the
// micro-batch and their number, the one follows from the other.
func Kept(plan ir.Plan, but Pins) Pins {
	out := Pins{}
	for key, value := range keyValues(plan) {
		switch key {
		case "precision", "offload":
		default:
			out[key] = []string{value}
		}
	}
	for key := range but {
		out = out.Without(follow[key]...)
	}
	if but["dp"] != nil && but["tp"] == nil && but["pp"] != nil {
		out = out.Without("tp")
	}
	return out.With(but)
}

// only restricts a search to plans in which a choice's value is one that want holds of. Orders of the axes are compared
// where the degrees are a plan's.
func only(c *choice, than *ir.Plan, want func(string) bool) *keep {
	switch c.name {
	case "recompute":
		return &keep{kind: want}
	case "zero":
		return &keep{member: func(m *member) bool { return want(strconv.Itoa(m.of.zero)) }}
	case "zero_group":
		return &keep{member: func(m *member) bool { return want(strconv.Itoa(m.of.group)) }}
	case "axis_order":
		return &keep{family: func(f *family) bool {
			return sameDegrees(&f.plan, than)
		}, member: func(m *member) bool {
			return want(m.order.name)
		}}
	}
	return &keep{family: func(f *family) bool { return want(c.value(&f.plan)) }}
}

func sameDegrees(a, b *ir.Plan) bool {
	return a.DP == b.DP && a.TP == b.TP && a.PP == b.PP && a.CP == b.CP && a.EP == b.EP && a.ETP == b.ETP
}

// others are a choice's values in a space but a plan's own, in order of first occurrence; of orders of the axes, those
// of the plan's degrees.
func (s *searcher) others(sp *space, c *choice, than *ir.Plan) []string {
	var out []string
	latest := c.value(than) // neighbours in a space mostly agree
	seen := map[string]bool{latest: true}
	add := func(v string) {
		if v != latest && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
		latest = v
	}
	var last []sharding // of families one after the other that have the same
	for _, f := range sp.families {
		switch c.name {
		case "zero", "zero_group":
			all := s.shardings(sp.problem, &f.plan)
			if len(last) > 0 && len(all) > 0 && &last[0] == &all[0] {
				continue
			}
			for last = all; len(all) > 0; all = all[1:] {
				if c.name == "zero" {
					add(strconv.Itoa(all[0].zero))
				} else {
					add(strconv.Itoa(all[0].group))
				}
			}
		case "recompute":
			for _, a := range s.agains(sp.problem, &f.plan, 1) {
				add(a.kind)
			}
		case "axis_order":
			if !sameDegrees(&f.plan, than) {
				continue
			}
			for _, o := range s.orders(sp.problem, &f.plan) {
				add(o)
			}
		default:
			add(c.value(&f.plan))
		}
	}
	return out
}

// whyNone says which rule leaves a key its one value; none where pins do.
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
	if other.Zero > 0 && other.DP != best.DP { // which follows
		other.ZeroGroup = other.Replicas()
		if other.ZeroGroup == 1 {
			other.Zero = 0
		}
	}
	other.MicroBatches = s.problem.GlobalBatch / max(1, other.DP*other.MicroBatch)
	for _, r := range legal(&other, newSetting(s.problem, s.dims)) {
		if r.Key != "stage_layers" && r.Key != "axis_order" {
			return []Reason{r}
		}
	}
	return nil
}
