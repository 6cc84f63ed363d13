package laws_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
)

// recomputeCases are groups of plans that differ only in what they recompute; the first of a group recomputes
// nothing.
func recomputeCases() []lawCase {
	plans := map[string]func(*ir.Plan){
		"gpt2":  func(p *ir.Plan) { p.TP = 2 },
		"llama": func(p *ir.Plan) { p.DP, p.TP, p.SP, p.Zero, p.ZeroGroup = 2, 2, true, 1, 2 },
		"gpt_neox": func(p *ir.Plan) {
			p.TP, p.PP, p.Schedule, p.StageLayers, p.AxisOrder = 2, 2, "1f1b", "2,2", "tp,dp,pp"
		},
		"gemma2": func(p *ir.Plan) {
			p.TP, p.Precision = 8, ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32,
				Master: ir.F32, Moments: ir.F32}
		},
	}
	var out []lawCase
	for _, m := range lawModels() {
		change := plans[m.name]
		if change == nil {
			continue
		}
		m.Layers, m.DropEmbd, m.DropResid, m.DropAttn = 4, 0.2, 0.2, 0.2
		base := ir.SerialPlan(m.Layers, 2, ir.FullPrecision(ir.F32))
		change(&base)
		base.MicroBatches = lawBatch / base.DP / base.MicroBatch
		for _, p := range recomputed(base) {
			out = append(out, lawCase{id: fmt.Sprintf("r%02d", len(out)), group: m.name, model: m, plan: p,
				optimizer: "adamw", elem: ir.F32})
		}
	}
	return out
}

// recomputed returns a plan's variants.
func recomputed(base ir.Plan) []ir.Plan {
	out := []ir.Plan{base}
	largest := base.LargestChunk()
	for _, x := range []struct {
		kind          string
		layers, every int
		split         bool
	}{{"selective", largest, 1, false}, {"full", largest, 1, false}, {"full", 1, 1, false}, {"full", largest, 2, false},
		{"full", largest, 1, true}, {"selective", 1, 1, true}} {
		p := base
		p.Recompute, p.RecomputeLayers, p.RecomputeEvery, p.RecomputeSplit = x.kind, x.layers, x.every, x.split
		if !slices.ContainsFunc(ir.RecomputeRules, func(r ir.PlanRule) bool { return !r.OK(&p) }) {
			out = append(out, p)
		}
	}
	return out
}

// Recomputed values are the same to the bit: losses, gradients and parameters equal those of the plan that saves
// everything, with dropout, split over ranks and stages, in f32 and in bf16.
func TestRecomputedBits(t *testing.T) {
	harness.OnlyLong(t)
	cases := recomputeCases()
	files := lawFiles()
	for i := range cases {
		src, _ := cases[i].source(t)
		files[cases[i].id+"/train.go"] = src
	}
	files["programs.go"] = lawTable("recomputed", cases)
	for i, v := range parseVerdicts(t, runModule(t, "recomputed", files))[:len(cases)] {
		if v.Err != "" || v.Losses != 0 || v.Norms != 0 || v.Valid != 0 || v.Grad != 0 || v.Param != 0 || v.Steps != 3 {
			t.Errorf("%s %s: %+v", cases[i].group, cases[i].plan.Text(), v)
		}
	}
	if want := 4 * 5; len(cases) < want {
		t.Errorf("%d programs, want at least %d", len(cases), want)
	}
}

// Recomputed programs need no more memory than the plan that saves everything. There is one exception: with sp, a
// recomputed block keeps an input that it has gathered for a GEMM, where a block that saves its part gathers it once
// more. If weights lie side by side, such a block can need that much more than it saves; several blocks save more.
func TestRecomputedMemory(t *testing.T) {
	for _, isApart := range []bool{true, false} {
		none := map[string]int{}
		for _, c := range recomputeCases() {
			c.apart = isApart
			_, arena := c.source(t)
			p := &c.plan
			if p.Recompute == "none" {
				none[c.group] = arena
				continue
			}
			limit := none[c.group]
			if p.SP && p.RecomputeLayers == 1 && !isApart {
				limit += p.MicroBatch * lawSeq * c.model.Hidden * ir.F32.Size()
			}
			if arena > limit {
				t.Errorf("%s %s: %d bytes, at most %d", c.group, p.Text(), arena, limit)
			}
		}
	}
}
