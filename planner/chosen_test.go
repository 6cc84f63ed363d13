package planner

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// A key is chosen if neither its pin nor the pins of other keys say its value.
func TestChosenKeys(t *testing.T) {
	plan := ir.SerialPlan(8, 1, ir.Precision{})
	plan.DP, plan.TP, plan.MicroBatch, plan.MicroBatches, plan.Recompute = 4, 2, 1, 16, "full"
	plan.RecomputeLayers = plan.LargestChunk()
	for pins, want := range map[string]string{
		"dp tp sp pp cp ep etp zero micro_batch recompute": "",
		"tp sp pp cp zero micro_batch recompute":           "", // dp follows from the devices
		"tp sp pp cp zero micro_batches recompute":         "", // and the micro-batch from the batch
		"dp tp sp pp cp zero recompute":                    "micro_batch",
		"sp pp cp zero micro_batches":                      "dp tp micro_batch recompute",
		"":                                                 "dp tp sp pp cp zero micro_batch recompute",
	} {
		given := search.Pins{}
		for _, key := range strings.Fields(pins) {
			given[key] = []string{"1"}
		}
		if got := strings.Join(chosenKeys(given, &plan, false), " "); got != want {
			t.Errorf("with pins %q: %q, want %q", pins, got, want)
		}
	}
	if got := strings.Join(chosenKeys(search.Pins{}, &plan, true), " "); !strings.Contains(got, "cp ep etp zero") {
		t.Errorf("with experts: %s", got)
	}
}
