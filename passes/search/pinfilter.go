package search

import (
	"strconv"

	"github.com/planc-dev/planc/ir"
)

// narrowing are the keys whose pins only take families out of a space, with their values; pins of others may ask for
// plans that are tried on request alone.
var narrowing = map[string]func(*ir.Plan) string{
	"dp":            intValue(func(p *ir.Plan) int { return p.DP }),
	"tp":            intValue(func(p *ir.Plan) int { return p.TP }),
	"pp":            intValue(func(p *ir.Plan) int { return p.PP }),
	"vpp":           intValue(func(p *ir.Plan) int { return p.VPP }),
	"sp":            func(p *ir.Plan) string { return strconv.FormatBool(p.SP) },
	"micro_batch":   intValue(func(p *ir.Plan) int { return p.MicroBatch }),
	"micro_batches": intValue(func(p *ir.Plan) int { return p.MicroBatches }),
}

// filterFor restricts a search under some pins to plans with further pinned values, where that is the same as a search of
// the space with all of them; else nil.
func (p Pins) filterFor(under Pins) *filter {
	families := Pins{}
	for key, values := range p {
		switch {
		case under[key] != nil: // which these replace
			return nil
		case narrowing[key] != nil:
			families[key] = values
		case key != "zero" && key != "zero_group" && key != "recompute" && key != "axis_order":
			return nil
		}
	}
	return &filter{
		family: func(f *family) bool {
			for key := range families {
				if !families.allows(key, narrowing[key](&f.plan)) {
					return false
				}
			}
			return true
		},
		recompute: func(kind string) bool { return p.allows("recompute", kind) },
		member: func(m *member) bool {
			return p.allows("zero", strconv.Itoa(m.sharding.zero)) && p.allows("zero_group", strconv.Itoa(m.sharding.group)) &&
				p.allows("axis_order", m.order.name)
		},
	}
}

// bestWithPins is the plan to recommend with further pins, found in the space that was searched if it holds one that fits. It
// fails as [Series.alternative] does.
func (r *Result) bestWithPins(pins Pins, by *Series) (Alternative, error) {
	if pins.matches(&r.Best.Plan) {
		return Alternative{Plan: r.Best.Plan, Predict: r.Best.Predict}, nil
	}
	if k := pins.filterFor(r.searcher.problem.Pins); k != nil {
		if c, _, ok := r.searcher.choose(r.searcher.searched, k); ok {
			return Alternative{Plan: c.best.Plan, Predict: c.best.Predict,
				SlowerBy: slowerBy(c.best.Predict, r.Best.Predict)}, nil
		}
	}
	return by.alternative(r.searcher.problem, pins, r.Best)
}

// WhyNot is [WhyNot] of the result's problem and plan, answered from what the search has found out. It is for results
// of [Search].
func (r *Result) WhyNot(pins Pins) (Alternative, error) {
	return r.bestWithPins(pins, &Series{model: r.searcher.problem.Model, caches: r.searcher.caches})
}
