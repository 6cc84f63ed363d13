package laws_test

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/ir"
)

// lawStochastic rounds only parameters, and stochastically. f32 sums hardly change the rounding, so the f32 bound
// applies, without yardsticks.
var lawStochastic = ir.Precision{Compute: ir.F32, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.BF16,
	Moments: ir.F32}

// stochasticCases returns models with stochastic rounding: embeddings on both ends of a pipeline, sharded state and
// parameters, experts, and router biases.
func stochasticCases(t *testing.T, spoil func([]byte) []byte) (cases []lawCase) {
	t.Helper()
	for _, m := range []struct {
		model string
		plans []func(*ir.Plan)
	}{
		{"llama-tied", []func(*ir.Plan){
			func(p *ir.Plan) {
				p.TP, p.DP, p.MicroBatch, p.Zero, p.ZeroGroup = 2, 2, lawBatch/2, 1, 2
			}, staged(2, "1f1b"), staged(2, "zb-v"), zeroed(3)}},
		{"deepseek_v3", []func(*ir.Plan){func(p *ir.Plan) { *p = expertPlan("dp 2 tp 2 etp 2 ep 2 slack 1", 4) }}},
	} {
		c := lawCase{group: m.model, model: modelNamed(t, m.model), optimizer: "adamw", elem: ir.F32}
		c.model.Layers = 4
		c.id, c.plan = fmt.Sprintf("ref%d", len(cases)), ir.SerialPlan(4, lawBatch, lawStochastic)
		cases = append(cases, c)
		serial := c.plan
		for _, change := range m.plans {
			c.id, c.plan, c.spoil = fmt.Sprintf("plan%d", len(cases)), serial, nil
			change(&c.plan)
			c.plan.Precision = lawStochastic
			cases = append(cases, c)
		}
		if spoil != nil {
			c.id, c.spoil = fmt.Sprintf("plan%d", len(cases)), spoil
			cases = append(cases, c)
		}
	}
	return cases
}

// Stochastically rounded parameters equal those of one rank under every plan. Rounding to nearest gives different
// ones.
func TestLawStochasticRounding(t *testing.T) {
	cases := stochasticCases(t, replaced(t, `StochasticRounding:\s+true`, "StochasticRounding: false"))
	judgeStochastic(t, cases, lawVerdicts(t, "chance", cases))
}

// judgeStochastic compares the verdicts with the f32 bound, which cases with a fault must exceed.
func judgeStochastic(t *testing.T, cases []lawCase, verdicts []lawVerdict) {
	t.Helper()
	largest := 0.0
	for i, v := range verdicts {
		exact := cases[i]
		exact.plan.Precision = ir.FullPrecision(ir.F32)
		off, bound := max(v.Losses, v.Norms, v.Valid, v.Grad), exact.lossBound()
		if spoilt := cases[i].spoil != nil; v.Err != "" || v.Steps != 3 || v.Copies != 0 || (off <= bound) == spoilt {
			t.Errorf("%s %v (%s): %.3g off, of %.3g, copies %.3g apart, after %d steps, %s; a fault is in it: %v",
				exact.group, exact.plan, exact.id, off, bound, v.Copies, v.Steps, v.Err, spoilt)
		} else if !spoilt {
			largest = max(largest, off/bound)
		}
	}
	t.Logf("%d programs: at most %.2g of the bound", len(cases), largest)
}

// The same holds on GPUs.
func TestLawStochasticRoundingOnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var cases []lawCase
	for _, c := range stochasticCases(t, nil) {
		if c.group != "llama-tied" {
			break // their choices would have to be replayed
		}
		if c.plan.Ranks() > 1 {
			c.on = codegen.GPU
		}
		cases = append(cases, c)
	}
	judgeStochastic(t, cases, gpuModule(t, cases, machine, "late"))
}
