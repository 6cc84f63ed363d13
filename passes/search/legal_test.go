package search

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// The message names the wrong key of the batch, and the values that are right.
func TestBatchRules(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 4), gpt2Config(4, 64, 4, 64, 16), 16, 128, ir.FullPrecision(ir.F32))
	for _, c := range []struct {
		dp, micro, micros int
		want              Reason // empty if legal
	}{
		{4, 1, 32, Reason{}},
		{4, 1, 5, Reason{Key: "micro_batches",
			Message: "micro_batches 5: micro_batch 1 × dp 4 splits a global batch of 128 into 32"}},
		{4, 1, 0, Reason{Key: "micro_batches",
			Message: "micro_batches 0: micro_batch 1 × dp 4 splits a global batch of 128 into 32"}},
		{4, 1, 16, Reason{Key: "micro_batches",
			Message: "micro_batches 16: micro_batch 1 × dp 4 splits a global batch of 128 into 32"}},
		{4, 3, 10, Reason{Key: "micro_batch",
			Message: "micro_batch 3 × dp 4 must divide the global batch of 128: use micro_batch 2 or 4"}},
		{4, 0, 1, Reason{Key: "micro_batch",
			Message: "micro_batch 0 × dp 4 must divide the global batch of 128: use micro_batch 1"}},
		{4, 64, 1, Reason{Key: "micro_batch",
			Message: "micro_batch 64 × dp 4 must divide the global batch of 128: use micro_batch 32"}},
	} {
		plan := ir.SerialPlan(4, c.micro, p.Precision)
		plan.DP, plan.MicroBatches = c.dp, c.micros
		var got Reason
		if rs := Legal(plan, DimsOf(p.Model), p.Cluster, p.GlobalBatch); len(rs) == 1 {
			got = rs[0]
		} else if len(rs) > 1 {
			t.Errorf("dp %d, %d×%d: %v", c.dp, c.micro, c.micros, rs)
		}
		if got != c.want {
			t.Errorf("dp %d, %d×%d: %q, want %q", c.dp, c.micro, c.micros, got, c.want)
		}
	}
}

// A pinned cp_kind requests cp: there are plans whichever key of such pins is freed.
func TestContextPins(t *testing.T) {
	for _, pins := range []Pins{{"cp": {"2"}, "cp_kind": {"gather"}}, {"cp_kind": {"heads"}}, {"cp": {"4"}},
		{"cp": {"1"}, "cp_kind": {"none"}}} {
		p := problem(cluster(t, "cpu", 1, 4), gpt2Config(2, 64, 4, 256, 64), 64, 8, ir.FullPrecision(ir.F32))
		p.Pins = pins
		if b := must(t, p).Best.Plan; !pins.Allows("cp_kind", b.CPKind) || (b.CP == 1) != (b.CPKind == "none") {
			t.Errorf("%v: %v", pins, b)
		}
	}
}
