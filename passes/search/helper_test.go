package search

import (
	"os"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
)

// draws returns how often a test draws: n times if PLANC_BRUTE is set, as in .ci/run, and otherwise a third of it.
func draws(n int) int {
	if os.Getenv("PLANC_BRUTE") != "" {
		return n
	}
	return n / 3
}

// cluster returns a cluster of the catalogue, as a job names it.
func cluster(t testing.TB, name string, nodes, devices int) *costmodel.Cluster {
	t.Helper()
	c, err := costmodel.Resolve(costmodel.Ref{Node: name, Nodes: nodes, Devices: devices}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func gpt2Config(layers, hidden, heads, vocab, seq int) spec.Config {
	return spec.Config{Family: spec.GPT2, Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: heads,
		HeadDim: hidden / heads,
		FFN:     4 * hidden, MaxPositions: seq, Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.02, Tied: true,
		AttentionBias: true, MLPBias: true}
}

func llamaConfig(layers, hidden, heads, kv, ffn, vocab, seq int) spec.Config {
	return spec.Config{Family: spec.Llama, Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: kv,
		HeadDim: hidden / heads,
		FFN:     ffn, MaxPositions: seq, Activation: "silu", NormEps: 1e-5, InitStd: 0.02, RopeTheta: 10000}
}

// families change a GPT-2 or, if modern, a Llama into a model of another family with all of its options.
var families = []struct {
	name   string
	modern bool
	change func(c *spec.Config)
}{
	{spec.OPT, false, func(c *spec.Config) {
		c.Activation, c.PositionOffset, c.EmbedDim, c.PostNorm = "relu", 2, c.Hidden/2, true
	}},
	{spec.Bloom, false, func(c *spec.Config) { c.EmbedNorm = true }},
	{spec.GPTNeoX, false, func(c *spec.Config) {
		c.Tied, c.ParallelResidual, c.RotaryDim, c.RopeTheta = false, true, 2, 10000
	}},
	{spec.Mistral, true, func(c *spec.Config) { c.Window = 5 }},
	{spec.Qwen2, true, func(c *spec.Config) { c.QKVBias, c.Window, c.Local = true, 5, "1f2l" }},
	{spec.Qwen3, true, func(c *spec.Config) { c.QKNorm, c.Tied = true, true }},
	{spec.Phi3, true, func(c *spec.Config) { c.RotaryDim, c.DropEmbd = 2, 0.1 }},
	{spec.Gemma2, true, func(c *spec.Config) {
		c.Tied, c.UnitNorm, c.SandwichNorm, c.EmbedScale, c.AttentionSoftcap, c.LogitSoftcap, c.Window, c.Local = true,
			true, true, 4, 50, 30, 5, "1l1f"
	}},
	{spec.Gemma3, true, func(c *spec.Config) {
		c.Tied, c.KVHeads, c.UnitNorm, c.SandwichNorm, c.QKNorm, c.EmbedScale, c.Window, c.Local, c.LocalTheta = true,
			1, true, true, true, 4, 5, "2l1f", 100
	}},
	{spec.Mixtral, true, func(c *spec.Config) { c.Experts, c.Choices, c.ExpertFFN, c.RouteShare = 4, 2, c.FFN, true }},
	{spec.Qwen2MoE, true, func(c *spec.Config) {
		c.Experts, c.Choices, c.ExpertFFN, c.SharedFFN, c.SharedGate = 8, 3, c.FFN/2, c.FFN, true
	}},
	{spec.DeepseekV2, true, latent},
	{spec.DeepseekV3, true, func(c *spec.Config) {
		latent(c)
		c.QLatent, c.RouteGate, c.RouteShare, c.RouteBias, c.Groups, c.BestGroups = 24, "sigmoid", true, true, 4, 2
	}},
	{spec.BERT, false, func(c *spec.Config) {
		c.PostNorm, c.EmbedNorm, c.Bidirectional, c.TokenTypes, c.HeadBias, c.HeadTransform = true, true, true,
			2, true, true
	}},
	{spec.ViT, false, func(c *spec.Config) {
		c.Tied, c.Bidirectional, c.HeadBias, c.PatchSize, c.Channels = false, true, true, 2, 3
	}},
}

// latent is what DeepSeek's families have in common. The first blocks have no experts.
func latent(c *spec.Config) {
	c.KVHeads, c.KVLatent, c.PlainDim, c.RotaryDim, c.VDim, c.RotaryNext, c.AttentionBias = c.Heads, 12, 4, 2,
		5, true, false
	c.HeadDim = c.PlainDim + c.RotaryDim
	c.Dense, c.Experts, c.Choices, c.ExpertFFN, c.SharedFFN = c.Layers/2, 8, 3, c.FFN/2, c.FFN/2
}

var mixed = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
	Moments: ir.F32}

func problem(c *costmodel.Cluster, cfg spec.Config, seq, batch int, p ir.Precision) *Problem {
	return &Problem{Model: zoo.Build("m", cfg, zoo.Options{SeqLen: seq, Batch: 1, Elem: p.Compute}), Cluster: c,
		GlobalBatch: batch,
		Precision:   p, Recipe: ir.Recipe{Optimizer: "adamw"}, Headroom: 0.1}
}

// gpt3 is GPT-3 175B on nodes of 8 H100.
func gpt3(t testing.TB, nodes int) *Problem {
	return problem(cluster(t, "dgx-h100", nodes, 0), gpt2Config(96, 12288, 96, 50257, 2048), 2048, 1536, mixed)
}

func must(t testing.TB, p *Problem) *Result {
	t.Helper()
	r, err := Search(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
