package laws_test

import (
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/ir"
)

// Dropout on emulated GPUs, of embeddings, of the residual stream and of attention weights: a captured step drops the
// same elements as the CPU, and different ones in each step.
func TestLawDropoutOnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	c := lawCase{id: "dref", group: "dropout", model: modelNamed(t, "gpt2"), optimizer: "sgd", elem: ir.F64}
	c.model.DropEmbd, c.model.DropResid, c.model.DropAttn = 0.2, 0.2, 0.2
	c.model.Layers = 4
	c.plan = ir.SerialPlan(c.model.Layers, lawBatch, ir.FullPrecision(ir.F64))
	cases := []lawCase{c}
	c.id, c.on = "dgpu", codegen.GPU
	staged(2, "1f1b")(&c.plan)
	cases = append(cases, c)
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	judgeGPUs(t, cases, gpuModule(t, cases, machine, "late"))
}
