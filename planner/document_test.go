package planner

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// The latency of links is an assumption until links were measured, whatever else was.
func TestLinkIsAssumedUntilMeasured(t *testing.T) {
	q := tinyQuestion(t, "dgx-h100")
	for _, c := range []struct {
		measured costmodel.Measured
		assumed  bool
	}{
		{costmodel.Measured{}, true},
		{costmodel.Measured{By: "a bench of the network", Network: 0.136}, true},
		{costmodel.Measured{By: "planc calibrate", Link: 0.9}, false},
		{costmodel.Measured{By: "a bench", Collectives: "sizes.csv"}, false},
	} {
		own := *q.Hardware
		own.Measured = c.measured
		assumed := false
		for _, g := range assumptions(q.onHardware(&own), ir.Plan{}) {
			assumed = assumed || g.Path == "node.link.latency_us"
		}
		if assumed != c.assumed {
			t.Errorf("%+v: assumed %v, want %v", c.measured, assumed, c.assumed)
		}
	}
}
