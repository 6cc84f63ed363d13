package planner

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Alternatives are named by what the user would pin to get them.
func TestDifferences(t *testing.T) {
	base := ir.SerialPlan(2, 1, ir.FullPrecision(ir.F32))
	base.DP, base.TP, base.SP, base.Zero = 4, 2, true, 1
	for _, c := range []struct {
		change func(*ir.Plan)
		want   string
	}{
		{func(*ir.Plan) {}, ""},
		{func(p *ir.Plan) { p.SP = false }, "no sp"},
		{func(p *ir.Plan) { p.Zero, p.ZeroGroup = 0, 1 }, "zero 0"},
		{func(p *ir.Plan) { p.MicroBatch, p.MicroBatches = 4, 2 }, "micro_batch 4"},
		{func(p *ir.Plan) { p.DP, p.TP, p.SP = 8, 1, false }, "dp 8 · tp 1"},
		{func(p *ir.Plan) { p.DP, p.TP, p.Zero = 1, 8, 0 }, "dp 1 · tp 8"},
		{func(p *ir.Plan) { p.AxisOrder = "dp,tp" }, "axis_order dp,tp"},
		{func(p *ir.Plan) { p.StageLayers = "1,1" }, "stage_layers 1,1"},
		{func(p *ir.Plan) { p.Recompute, p.RecomputeLayers = "selective", 2 }, "recompute selective"},
		{func(p *ir.Plan) { p.Recompute, p.RecomputeLayers = "full", 1 }, "recompute full 1 block"},
		{func(p *ir.Plan) {
			p.Recompute, p.RecomputeLayers, p.RecomputeEvery = "full", 2, 2
		}, "recompute full every 2"},
		{func(p *ir.Plan) {
			p.Zero, p.Precision.Grads, p.Precision.Reduce = 2, ir.BF16, ir.BF16
		}, "zero 2 · grads bf16 · reduce bf16"},
	} {
		p := base
		c.change(&p)
		if got := Differences(p, base); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// The reason of an alternative is the part of the step that grows most, and the next largest change if that matters.
func TestGrownParts(t *testing.T) {
	from := costmodel.Time{Compute: 10, TPComm: 1}
	for _, c := range []struct {
		t    costmodel.Time
		want string
	}{
		{from, "the same time"},
		{costmodel.Time{Compute: 10, TPComm: 3}, "tp_comm +2.00 s"},
		{costmodel.Time{Compute: 12, TPComm: 0.95}, "compute +2.00 s"},
		{costmodel.Time{Compute: 12}, "compute +2.00 s, tp_comm -1.00 s"},
		{costmodel.Time{Compute: 12, DPComm: 1.5}, "compute +2.00 s, dp_comm +1.50 s"},
	} {
		if got := grownParts(c.t, from); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
