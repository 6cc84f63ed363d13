package laws_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
)

// Law 1 with attention that does not cross the borders of documents: for learned, rotary and relative positions, with a
// window, for an encoder with padding, and for MLA with experts; for each kind of context parallelism, pipelines,
// recomputation, and a checkpoint that another plan resumes.
func TestLawDocuments(t *testing.T) {
	t.Parallel()
	var models []lawModel
	for _, name := range []string{"gpt2", "opt", "bloom", "qwen2", "bert"} {
		if harness.Long() || name == "gpt2" || name == "bert" {
			models = append(models, modelNamed(t, name))
		}
	}
	if harness.Long() {
		models = append(models, expertModels()[4])
	}
	var cases []lawCase
	for i, m := range models {
		m.documents = true
		if i%2 == 1 && m.Bidirectional {
			m.DropAttn = 0.2
		}
		c := lawCase{group: m.name + "-documents", model: m, optimizer: []string{"sgd", "adamw"}[i%2], elem: ir.F64}
		c.plan, c.id = ir.SerialPlan(m.Layers, lawBatch, ir.FullPrecision(ir.F64)), fmt.Sprintf("ref%d", i)
		cases = append(cases, c)
		for j, plan := range documentsPlans(m.Layers) {
			c.plan, c.id = plan, fmt.Sprintf("documents%d_%d", i, j)
			if c.legal() && (j%2 == i%2 || m.name == "gpt2" && harness.Long()) {
				cases = append(cases, c)
			}
		}
		c.plan, c.id = contextPlan(m.Layers, 2, 2, 1, "ring", nil), fmt.Sprintf("resumed%d", i)
		c.before = fmt.Sprintf("ref%d", i)
		if m.name == "gpt2" { // continues the checkpoint of one rank
			cases = append(cases, c)
		}
	}
	cases = append(cases, documentsAlone(t)...)
	if harness.Long() && len(cases) < 40 || len(cases) < 12 {
		t.Errorf("only %d cases", len(cases))
	}
	runLawCases(t, "documents", cases)
}

// documentsAlone returns, for each model, training on samples of one document, and training with a mask on samples of
// two of these documents, whose lengths are random: both have the same losses, gradients and parameters. Samples of one
// document have no mask, but encoders, whose tokens would attend to the padding, have it.
func documentsAlone(t *testing.T) (cases []lawCase) {
	names := []string{"gpt2", "bert", "qwen2", "opt", "bloom", "gpt_neox"}
	if !harness.Long() {
		names = names[:2]
	}
	for i, name := range names {
		m := modelNamed(t, name)
		alone := lawCase{group: name + "-alone", id: fmt.Sprintf("alone%d", i), model: m, optimizer: "adamw",
			elem: ir.F64}
		alone.model.pairs, alone.model.alone, alone.model.documents = true, true, m.Bidirectional
		alone.plan = ir.SerialPlan(m.Layers, 2*lawBatch, ir.FullPrecision(ir.F64))
		packed := alone
		packed.id = fmt.Sprintf("packed%d", i)
		packed.model.documents, packed.model.alone = true, false
		packed.plan = contextPlan(m.Layers, 1, 2, 1, "ring", nil)
		cases = append(cases, alone, packed)
	}
	return cases
}

// documentsPlans returns plans that split each dim of attention.
func documentsPlans(layers int) []ir.Plan {
	var out []ir.Plan
	for _, kind := range ir.ContextKinds[1:] {
		out = append(out, contextPlan(layers, 1, 2, 1, kind, nil),
			contextPlan(layers, 2, 2, 2, kind, func(p *ir.Plan) { p.Zero, p.ZeroGroup = 1, 4 }))
	}
	serial := ir.SerialPlan(layers, 2, ir.FullPrecision(ir.F64))
	pipeline := serial
	pipeline.PP, pipeline.Schedule, pipeline.StageLayers = 2, "1f1b", fmt.Sprintf("1,%d", layers-1)
	pipeline.MicroBatches, pipeline.MicroBatch = lawBatch/2, 2
	remade := serial
	remade.DP, remade.MicroBatch, remade.MicroBatches, remade.SP, remade.TP = 2, 1, lawBatch/2, true, 2
	remade.Recompute, remade.RecomputeLayers = "full", layers
	return append(out, pipeline, remade)
}
