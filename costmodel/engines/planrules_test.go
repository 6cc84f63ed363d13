package engines

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// Engine fsdp's rule for tp calls the heads what the model has: K/V heads only if queries share them.
func TestFSDPNamesTheHeads(t *testing.T) {
	plan := ir.Plan{TP: 8}
	const rest = ": engine fsdp splits heads evenly over tp and does not repeat them (a tp that divides them, or " +
		"engine megatron)"
	for _, c := range []struct {
		shape Shape
		want  string
	}{
		{Shape{KVHeads: 12, Group: 1}, "tp 8 does not divide the 12 attention heads" + rest},
		{Shape{KVHeads: 4, Group: 8}, "tp 8 does not divide the 4 K/V heads" + rest},
		{Shape{KVHeads: 8, Group: 4}, ""},
		{Shape{}, ""},
	} {
		got := ""
		for _, r := range EngineOf("fsdp").PlanRules() {
			if r.Key == "tp" && !r.OK(&plan, &c.shape) {
				got = r.Why(&plan, &c.shape, "8")
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.shape, got, c.want)
		}
	}
}
