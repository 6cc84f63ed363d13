package space

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// The limits of a pipeline exclude no plan of a model of 126 blocks, and limit those of a deeper one.
func TestPipelineBounds(t *testing.T) {
	for _, c := range []struct{ layers, pp, want int }{
		{126, 2, 64}, {126, 64, 2}, {126, 4, 32}, {1024, 2, 64}, {1024, 16, 8}, {1024, 1, 1}, {12, 8, 2},
	} {
		d := Dims{Layers: c.layers, Embed: true, Head: true}
		if got := d.MaxVPP(c.pp); got != c.want {
			t.Errorf("%d layers, pp %d: up to %d chunks a stage, want %d", c.layers, c.pp, got, c.want)
		}
	}
	set := &RuleContext{Dims: Dims{Layers: 1024, Embed: true, Head: true}, Devices: 256, Batch: 1024, Nodes: 32,
		Rules: stageRules}
	plan := ir.Plan{DP: 1, TP: 1, PP: 256, VPP: 1, CP: 1, EP: 1, ETP: 1, MicroBatch: 1, MicroBatches: 1024,
		Schedule: "1f1b", CPKind: "none"}
	var messages []string
	for _, r := range BrokenRules(&plan, set) {
		messages = append(messages, r.Message)
	}
	if want := "pp 256 · vpp 1 exceeds the limits"; !strings.Contains(strings.Join(messages, "\n"), want) {
		t.Errorf("%q, want %s", messages, want)
	}
}
