package laws_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/ir"
)

// Law 1 in FP8 on emulated GPUs, as in TestLawFP8: plans of two models, preceded by the one-rank program on a CPU.
func TestLawFP8OnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	var cases []lawCase
	for i, m := range []lawModel{lawModels()[1], lawModels()[0]} {
		m.Layers = 2
		c := lawCase{id: fmt.Sprintf("e%dref", i), group: m.name + "-f8", model: m,
			optimizer: []string{"sgd", "adamw"}[i%2], elem: ir.BF16, plan: ir.SerialPlan(m.Layers, lawBatch, lawFP8)}
		cases = append(append(cases, c), yardsticks(c)...)
		for j, text := range []string{"dp 2 tp 2 sp zero 1", "dp 2 zero 3"} {
			c.id, c.plan, c.on = fmt.Sprintf("e%dgpu%d", i, j), expertPlan(text, m.Layers), codegen.GPU
			c.plan.Precision = lawFP8
			cases = append(cases, c)
		}
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	judgeGPUs(t, cases, gpuModule(t, cases, machine, "late"))
}
