package laws_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// routedModels returns models whose routers have auxiliary losses, and whose experts have a capacity.
func routedModels() []lawModel {
	ms := expertModels()
	ms[0].Routing = spec.Routing{Balance: 0.5, RouterZ: 0.1, Over: spec.OverSequence}
	ms[1].Routing = spec.Routing{Balance: 0.7, Over: spec.OverMicroBatch}
	ms[2].Routing = spec.Routing{Balance: 0.4, RouterZ: 0.2, Over: spec.OverSequence, Capacity: 0.9}
	ms[3].Routing = spec.Routing{RouterZ: 0.3, Over: spec.OverSequence, Capacity: 1.5}
	ms[4].Routing = spec.Routing{Balance: 0.6, Over: spec.OverSequence} // weights are shares of sigmoids
	for i := range ms {
		ms[i].name += "-routed"
	}
	return ms
}

// routedPlans are plans in the notation of [expertPlans], each for one of the models in the short run.
var routedPlans = []string{
	"dp 2", "dp 4 tp 2 ep 4 first", "tp 2 sp slack 1",
	"dp 2 tp 2 sp ep 4 slack 1.25", "dp 2 tp 2 etp 2 ep 2 slack 1", "dp 2 pp 3 ep 2 zb-h1",
	"tp 4 etp 2 ep 2", "dp 2 pp 2 ep 2 full", "dp 2 cp 2 gather ep 4 slack 1",
	"dp 2 ep 2 full slack 1", "cp 2 heads tp 2 etp 2 ep 2 sp", "dp 4 ep 2 zero 3",
	"dp 2 tp 2 sp ep 4 selective", "dp 4 ep 2 zero 2 slack 1", "cp 2 gather ep 2",
}

// The auxiliary losses of routers and their gradients are the same under every plan. A loss over the micro-batch of
// all replicas is compared with the program that has the same number of micro-batches per step.
func TestLawBalance(t *testing.T) {
	t.Parallel() // one test generates or runs code while another compiles
	var cases []lawCase
	models := routedModels()
	for i, m := range models {
		c := lawCase{group: m.name, model: m, optimizer: "sgd", elem: ir.F64, plan: ir.SerialPlan(m.Layers, lawBatch,
			ir.FullPrecision(ir.F64)), id: fmt.Sprintf("a%dref", i)}
		cases = append(cases, c)
		for j, text := range routedPlans {
			if !harness.Long() && j%len(models) != i {
				continue
			}
			c.plan, c.id = expertPlan(text, m.Layers), fmt.Sprintf("a%dp%d", i, j)
			if m.Over != spec.OverSequence {
				c.plan.MicroBatch, c.plan.MicroBatches = lawBatch/c.plan.DP, 1
			}
			cases = append(cases, c)
		}
	}
	runLawCases(t, "balance", cases)
}
