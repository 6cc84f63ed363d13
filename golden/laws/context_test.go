package laws_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
)

// Law 1 of context parallelism: each kind on each model, combined with what else splits the same values.

// contextPlan returns a plan with cp.
func contextPlan(layers, dp, cp, tp int, kind string, change func(p *ir.Plan)) ir.Plan {
	p := ir.SerialPlan(layers, 2, ir.FullPrecision(ir.F64))
	p.DP, p.CP, p.TP, p.CPKind, p.AxisOrder = dp, cp, tp, kind, "tp,cp,dp,pp"
	p.MicroBatches = lawBatch / dp / p.MicroBatch
	if change != nil {
		change(&p)
	}
	return p
}

// contextPlans returns the plans of a kind.
func contextPlans(layers int, kind string) []ir.Plan {
	plan := func(dp, cp, tp int, change func(p *ir.Plan)) ir.Plan {
		return contextPlan(layers, dp, cp, tp, kind, change)
	}
	return []ir.Plan{
		plan(1, 2, 1, nil),
		plan(1, 4, 1, func(p *ir.Plan) { p.Recompute, p.RecomputeLayers = "full", layers }),
		plan(2, 2, 2, func(p *ir.Plan) { p.Zero, p.ZeroGroup, p.SP = 1, 4, true }),
		plan(2, 2, 1, func(p *ir.Plan) { p.Zero, p.ZeroGroup = 3, 2 }),
		plan(4, 2, 1, func(p *ir.Plan) { p.Zero, p.ZeroGroup, p.MicroBatch, p.MicroBatches = 2, 4, 1, 2 }),
		plan(1, 2, 4, func(p *ir.Plan) { p.Recompute, p.RecomputeLayers = "selective", 1 }),
		plan(1, 2, 2, func(p *ir.Plan) {
			p.PP, p.Schedule, p.StageLayers, p.AxisOrder = 2, "1f1b", fmt.Sprintf("1,%d", layers-1), "cp,tp,pp,dp"
		}),
		plan(1, 2, 1, func(p *ir.Plan) { p.PP, p.Schedule, p.StageLayers = 2, "zb-h1", fmt.Sprintf("1,%d", layers-1) }),
	}
}

func TestLawContext(t *testing.T) {
	harness.OnlyLong(t) // random draws and TestLawTellingBugs have such plans too
	t.Parallel()        // one test generates or runs code while another compiles
	broad, others := lawVariants(ir.F64)
	var cases []lawCase
	for i, c := range append(broad, others...) {
		c.plan, c.id = ir.SerialPlan(c.model.Layers, lawBatch, ir.FullPrecision(ir.F64)), fmt.Sprintf("ref%d", i)
		cases = append(cases, c)
		for k, kind := range ir.ContextKinds[1:] {
			for j, plan := range contextPlans(c.model.Layers, kind) {
				c.plan, c.id = plan, fmt.Sprintf("%s%d_%d", kind, i, j)
				if (i+j+k)%3 == 0 && c.legal() { // plans take turns: each model has every third one
					cases = append(cases, c)
				}
			}
		}
	}
	runLawCases(t, "context", cases)
}
