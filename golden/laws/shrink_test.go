package laws_test

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
)

// simpler are changes that simplify a plan, one at a time.
var simpler = []func(p *ir.Plan, layers int){
	func(p *ir.Plan, layers int) {
		p.PP, p.VPP, p.Schedule, p.StageLayers = 1, 1, "none", fmt.Sprint(layers)
	},
	func(p *ir.Plan, _ int) { p.DP, p.Zero, p.ZeroGroup = 1, 0, 1 },
	func(p *ir.Plan, _ int) { p.CP, p.CPKind, p.Zero, p.ZeroGroup = 1, "none", 0, 1 },
	func(p *ir.Plan, _ int) { p.TP, p.SP, p.RecomputeSplit = 1, false, false },
	func(p *ir.Plan, _ int) { p.TP /= 2 },
	func(p *ir.Plan, _ int) { p.DP /= 2; p.ZeroGroup = min(p.ZeroGroup, p.DP) },
	func(p *ir.Plan, _ int) { p.SP = false },
	func(p *ir.Plan, _ int) { p.Zero, p.ZeroGroup = 0, 1 },
	func(p *ir.Plan, _ int) {
		p.Recompute, p.RecomputeLayers, p.RecomputeEvery, p.RecomputeSplit = "none", 0, 1, false
	},
	func(p *ir.Plan, _ int) {
		p.AxisOrder = "tp,dp,pp"
		if p.CP > 1 {
			p.AxisOrder = "tp,cp,dp,pp"
		}
	},
	func(p *ir.Plan, _ int) { p.MicroBatch = lawBatch / max(1, p.DP) },
}

// shrink simplifies the plan of a failing case as long as it fails. All simpler plans of a round are built as one
// module.
func shrink(t *testing.T, c lawCase) lawCase {
	t.Helper()
	for round := 0; ; round++ {
		ref := c
		ref.id, ref.spoil, ref.plan = "ref", nil, ir.SerialPlan(c.model.Layers, lawBatch, c.plan.Precision)
		cases := append([]lawCase{ref}, yardsticks(ref)...)
		first := len(cases)
		for i, change := range simpler {
			s := c
			change(&s.plan, c.model.Layers)
			s.plan.RecomputeLayers = min(s.plan.RecomputeLayers, s.plan.LargestChunk())
			s.plan.MicroBatches = lawBatch / max(1, s.plan.DP*s.plan.MicroBatch)
			s.id = fmt.Sprintf("simpler%d", i)
			if s.plan != c.plan && s.plan.DP*s.plan.TP > 0 && s.legal() {
				cases = append(cases, s)
			}
		}
		if len(cases) == first {
			return c
		}
		least := -1
		for i, why := range lawFaults(cases, lawVerdicts(t, fmt.Sprintf("shrink%d", round), cases)) {
			if i >= first && why != "" && (least < 0 || cases[i].plan.Ranks() < cases[least].plan.Ranks()) {
				least = i
			}
		}
		if least < 0 {
			return c
		}
		c = cases[least]
	}
}

// A fault of tensor parallelism in a plan with many features is reduced to two ranks.
func TestLawShrinks(t *testing.T) {
	harness.OnlyLong(t)
	lost := regexp.MustCompile(`rt\.AllReduce\(r, groupTp, [^\n]*`)
	c := lawCase{id: "whole", group: "shrink", optimizer: "sgd", elem: ir.F64, model: modelNamed(t, "llama"),
		spoil: func(src []byte) []byte { return lost.ReplaceAll(bytes.Clone(src), nil) }}
	c.plan = ir.SerialPlan(c.model.Layers, 1, ir.FullPrecision(ir.F64))
	c.plan.DP, c.plan.TP, c.plan.PP, c.plan.MicroBatches, c.plan.Schedule, c.plan.StageLayers, c.plan.AxisOrder = 2, 2,
		2, 4, "1f1b", "2,1", "tp,dp,pp"
	c.plan.Zero, c.plan.ZeroGroup = 1, 2
	want := ir.SerialPlan(c.model.Layers, lawBatch, ir.FullPrecision(ir.F64))
	want.TP, want.AxisOrder = 2, "tp,dp,pp"
	if got := shrink(t, c); got.plan != want {
		t.Errorf("shrunk to %s, want %s", got.plan.Text(), want.Text())
	}
}
