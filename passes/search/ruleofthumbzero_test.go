package search

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// A plan with ZeRO-3 follows the rule that asks for it, with tensor parallelism too.
func TestZero3FollowsItsRule(t *testing.T) {
	i := slices.IndexFunc(ruleOfThumbRows, func(r ruleRow) bool { return r.rule == ">10B: ZeRO-3 or 3D" })
	q := &ruleQuestion{p: &Problem{Cluster: &costmodel.Cluster{Nodes: 2, Node: costmodel.Node{Devices: 8}}}}
	for _, c := range []struct {
		plan ir.Plan
		want bool
	}{
		{ir.Plan{DP: 16, TP: 1, PP: 1, Zero: 3}, true}, {ir.Plan{DP: 8, TP: 2, PP: 1, Zero: 3}, true},
		{ir.Plan{DP: 4, TP: 2, PP: 2, Zero: 1}, true}, {ir.Plan{DP: 8, TP: 2, PP: 1, Zero: 1}, false},
	} {
		got := slices.ContainsFunc(ruleOfThumbRows[i].pins(q), func(pins Pins) bool { return pins.Match(&c.plan) })
		if got != c.want {
			t.Errorf("%v follows it: %v, want %v", c.plan, got, c.want)
		}
	}
}
