package search

import (
	"strconv"

	"github.com/planc-dev/planc/ir"
)

// narrowing are the keys whose pins only remove families from a space, with their values. Pins of other keys may ask
// for plans that are only tried on request.
var narrowing = map[string]func(*ir.Plan) string{
	"dp":            intValue(func(p *ir.Plan) int { return p.DP }),
	"tp":            intValue(func(p *ir.Plan) int { return p.TP }),
	"pp":            intValue(func(p *ir.Plan) int { return p.PP }),
	"vpp":           intValue(func(p *ir.Plan) int { return p.VPP }),
	"sp":            func(p *ir.Plan) string { return strconv.FormatBool(p.SP) },
	"micro_batch":   intValue(func(p *ir.Plan) int { return p.MicroBatch }),
	"micro_batches": intValue(func(p *ir.Plan) int { return p.MicroBatches }),
}

// filterFor returns the filter for plans with further pinned values, if filtering is the same as searching the space
// with all pins; otherwise nil.
func filterFor(p, under Pins) *filter {
	families := Pins{}
	for key, values := range p {
		switch {
		case under[key] != nil: // these pins replace those
			return nil
		case narrowing[key] != nil:
			families[key] = values
		case key != "zero" && key != "zero_group" && key != "recompute" && key != "axis_order":
			return nil
		}
	}
	return &filter{
		family: func(f *spaceFamily) bool {
			for key := range families {
				if !families.Allows(key, narrowing[key](&f.Plan)) {
					return false
				}
			}
			return true
		},
		recompute: func(kind string) bool { return p.Allows("recompute", kind) },
		member: func(m *member) bool {
			return p.Allows("zero", strconv.Itoa(m.Sharding.Zero)) && p.Allows("zero_group",
				strconv.Itoa(m.Sharding.Group)) &&
				p.Allows("axis_order", m.Order.Name)
		},
	}
}

// bestWithPins returns the plan to recommend with further pins, from the space that was searched if it has one that
// fits. Its errors are those of [Series.alternative].
func (r *Result) bestWithPins(pins Pins, by *Series) (Alternative, error) {
	if pins.Match(&r.Best.Plan) {
		return Alternative{Plan: r.Best.Plan, Predict: r.Best.Predict}, nil
	}
	if k := filterFor(pins, r.searcher.problem.Pins); k != nil {
		if c, _, ok := r.searcher.choose(r.searcher.searched, k); ok {
			return Alternative{Plan: c.best.Plan, Predict: c.best.Predict,
				SlowerBy: slowerBy(c.best.Predict, r.Best.Predict)}, nil
		}
	}
	return by.alternative(r.searcher.problem, pins, r.Best)
}

// WhyNot is [WhyNot] for the result's problem and plan. It reuses what the search found. The result must come from
// [Search].
func (r *Result) WhyNot(pins Pins) (Alternative, error) {
	return r.bestWithPins(pins, &Series{memo: *r.searcher.Memo()})
}
