package laws_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// routedModels are models whose routers are trained to be even, and whose experts take no more than they have room for.
func routedModels() []lawModel {
	ms := expertModels()
	ms[0].Routing = spec.Routing{Balance: 0.5, RouterZ: 0.1, Over: spec.OverSequence}
	ms[1].Routing = spec.Routing{Balance: 0.7, Over: spec.OverMicroBatch}
	ms[2].Routing = spec.Routing{Balance: 0.4, RouterZ: 0.2, Over: spec.OverSequence, Capacity: 0.9}
	ms[3].Routing = spec.Routing{RouterZ: 0.3, Over: spec.OverSequence, Capacity: 1.5}
	ms[4].Routing = spec.Routing{Balance: 0.6, Over: spec.OverSequence} // shares of sigmoids
	for i := range ms {
		ms[i].name += "-routed"
	}
	return ms
}

// routedPlans are rows of plans, as [expertPlans] has them, each for one of the models in the short run.
var routedPlans = []string{
	"dp 2", "dp 4 tp 2 ep 4 first", "tp 2 sp slack 1",
	"dp 2 tp 2 sp ep 4 slack 1.25", "dp 2 tp 2 etp 2 ep 2 slack 1", "dp 2 pp 3 ep 2 zb-h1",
	"tp 4 etp 2 ep 2", "dp 2 pp 2 ep 2 full", "dp 2 cp 2 gather ep 4 slack 1",
	"dp 2 ep 2 full slack 1", "cp 2 heads tp 2 etp 2 ep 2 sp", "dp 4 ep 2 zero 3",
	"dp 2 tp 2 sp ep 4 selective", "dp 4 ep 2 zero 2 slack 1", "cp 2 gather ep 2",
}

// TestLawBalance: what routers are trained with beside the loss, and its gradients, are the same on every plan. What is
// taken over a micro-batch of all replicas is compared where a step has as many of these.
func TestLawBalance(t *testing.T) {
	t.Parallel() // a core makes code, or runs it, while another compiles
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
