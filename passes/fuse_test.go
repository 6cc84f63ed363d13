package passes

import (
	"maps"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"pgregory.net/rapid"
)

// Groups, and ops that backward recomputes, leave what a block computes as it is: its results and gradients are of the
// same operations in the same order, and each is there when it is taken; whatever the block is, however it is split or
// recomputed.
func TestFusedBlocks(t *testing.T) {
	groups, saved := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		m := drawBlock(r)
		layouts := rapid.SampledFrom([]string{"region mlp\nregion norm", "mesh tp=2\nregion mlp ffn@tp\nregion norm",
			"mesh tp=2\nregion mlp\nregion norm seq@tp"}).Draw(r, "layouts") +
			rapid.SampledFrom([]string{"", "", "\nrecompute full", "\nrecompute selective"}).Draw(r, "recompute")
		split := rapid.Bool().Draw(r, "split")
		plain, fused := holds(r, func(until string) *ir.Program {
			p := laidOut(t, m, layouts)
			if split {
				p.Plan.Schedule = "zb-h1"
			}
			return runTo(r, p, until)
		})
		for _, f := range fused.Model.Segments[0].Funcs() {
			for _, n := range f.Nodes {
				if n.Op == ir.OpFused {
					groups++
				}
			}
		}
		saved += len(savedNames(plain.Model.Segments[0])) - len(savedNames(fused.Model.Segments[0]))
	})
	if groups == 0 || saved <= 0 {
		t.Errorf("%d groups, and %d values less were saved: nothing was put to the test", groups, saved)
	}
}

// So it is with every model and plan. What backward recomputes is not saved, and takes no memory elsewhere: no layer
// saves more for it, and no arena is larger.
func TestFusedModels(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c, plan := anyModel(r)
		m := buildIn(c, plan.Precision.Compute)
		compile := func(until string) *ir.Program {
			p, err := Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, Options{Check: true, Until: until})
			if err != nil {
				r.Skip(err) // a dim that an axis does not divide
			}
			return p
		}
		holds(r, compile)
		p := compile("")
		var plain *ir.Program
		without(func() { plain = compile("") }, "rematerialize")
		if p.ArenaBytes() > plain.ArenaBytes() {
			r.Errorf("%s: an arena of %d bytes, without rematerialize of %d", plan.Text(), p.ArenaBytes(),
				plain.ArenaBytes())
		}
		for i, s := range p.Saved {
			if s.Bytes > plain.Saved[i].Bytes {
				r.Errorf("%s: %s saves %d bytes, without rematerialize %d", plan.Text(), s.Segment, s.Bytes,
					plain.Saved[i].Bytes)
			}
		}
	})
}

// So it is with experts, their rounds and dispatch, with rings, and with GEMMs of FP8.
func TestFusedFamilies(t *testing.T) {
	base := llama
	base.Experts, base.Choices, base.ExpertFFN, base.RouteScale = 4, 2, 8, 1
	mixtral, qwen, deepseek, gemma := base, base, base, llama
	mixtral.Family, mixtral.RouteShare = spec.Mixtral, true
	qwen.Family, qwen.QKVBias, qwen.SharedFFN, qwen.SharedGate, qwen.Choices = spec.Qwen2MoE, true, 16, true, 3
	deepseek.Family, deepseek.KVHeads, deepseek.HeadDim, deepseek.KVLatent, deepseek.PlainDim, deepseek.RotaryDim,
		deepseek.VDim =
		spec.DeepseekV3, 8, 6, 10, 2, 4, 3
	deepseek.QLatent, deepseek.Dense, deepseek.Experts, deepseek.SharedFFN, deepseek.Groups, deepseek.BestGroups = 12,
		1, 8, 8, 2, 1
	deepseek.RotaryNext, deepseek.RouteGate, deepseek.RouteShare, deepseek.RouteBias, deepseek.QueryScale = true,
		"sigmoid", true, true, 0.5
	gemma.Family, gemma.Activation, gemma.UnitNorm, gemma.SandwichNorm, gemma.EmbedScale, gemma.QueryScale =
		spec.Gemma2, "gelu_new", true, true, 4, 0.7
	gemma.AttentionSoftcap, gemma.LogitSoftcap, gemma.Window, gemma.Local = 2, 3, 3, "1l1f"
	compiled := 0
	rapid.Check(t, func(r *rapid.T) {
		c := rapid.SampledFrom([]spec.Config{mixtral, qwen, deepseek, gemma, llama}).Draw(r, "model")
		pick := func(name string, xs ...int) int { return rapid.SampledFrom(xs).Draw(r, name) }
		plan := planOf(c, pick("dp", 1, 2), pick("tp", 1, 2), rapid.Bool().Draw(r, "sp"))
		plan.SP = plan.SP && plan.TP > 1
		plan.CP = pick("cp", 1, 2)
		if plan.CP > 1 {
			plan.CPKind, plan.AxisOrder = rapid.SampledFrom([]string{"ring", "gather", "heads"}).Draw(r,
				"kind"), "tp,cp,dp"
		}
		if c.Experts > 0 {
			plan.EP, plan.ETP, plan.MoESlack = pick("ep", 1, 2, 4), pick("etp", 1, 2), float64(pick("slack", 1, 2))
		}
		plan.Zero = pick("zero", 0, 1, 2, 3)
		if plan.Zero > 0 {
			plan.ZeroGroup = plan.DP * plan.CP
		}
		plan.Recompute = rapid.SampledFrom(slices.Sorted(maps.Keys(policies))).Draw(r, "recompute")
		if plan.Recompute != "none" {
			plan.RecomputeLayers = 1
		}
		drawPipeline(r, &plan, c.Layers)
		plan.Precision = rapid.SampledFrom(precisions).Draw(r, "precision")
		if plan.Precision.Compute == ir.BF16 {
			plan.Precision.FP8 = rapid.Bool().Draw(r, "fp8")
		}
		m := buildIn(c, plan.Precision.Compute)
		if _, err := Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, Options{Until: "pipeline"}); err != nil {
			r.Skip(err) // a dim that an axis does not divide
		}
		compiled++
		holds(r, func(until string) *ir.Program {
			p, err := Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, Options{Check: true, Until: until})
			if err != nil {
				r.Fatal(err)
			}
			return p
		})
	})
	if compiled < 50 {
		t.Errorf("%d plans were compiled", compiled)
	}
}
