package problems

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// GPT2 returns the configuration of a GPT-2 whose MLP is four times as wide as its hidden size.
func GPT2(layers, hidden, heads, vocab, seq int) spec.Config {
	return spec.Config{Family: spec.GPT2, Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: heads,
		HeadDim: hidden / heads,
		FFN:     4 * hidden, MaxPositions: seq, Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.02, Tied: true,
		AttentionBias: true, MLPBias: true}
}

// Sizes are the sizes of a Llama.
type Sizes struct{ Layers, Hidden, Heads, KVHeads, FFN, Vocab, Seq int }

// Llama returns the configuration of a Llama.
func Llama(s Sizes) spec.Config {
	return spec.Config{Family: spec.Llama, Vocab: s.Vocab, Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads,
		KVHeads: s.KVHeads, HeadDim: s.Hidden / s.Heads, FFN: s.FFN, MaxPositions: s.Seq, Activation: "silu",
		NormEps: 1e-5, InitStd: 0.02, RopeTheta: 10000}
}

// Family changes a GPT-2 or, if it is modern, a Llama into a model of another family with all of its options.
type Family struct {
	Name   string
	Modern bool
	Change func(c *spec.Config)
}

// Families are the model families.
var Families = []Family{
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
	{spec.DeepseekV2, true, DeepSeek},
	{spec.DeepseekV3, true, func(c *spec.Config) {
		DeepSeek(c)
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

// DeepSeek sets what DeepSeek's families have in common. The first blocks have no experts.
func DeepSeek(c *spec.Config) {
	c.KVHeads, c.KVLatent, c.PlainDim, c.RotaryDim, c.VDim, c.RotaryNext, c.AttentionBias = c.Heads, 12, 4, 2,
		5, true, false
	c.HeadDim = c.PlainDim + c.RotaryDim
	c.Dense, c.Experts, c.Choices, c.ExpertFFN, c.SharedFFN = c.Layers/2, 8, 3, c.FFN/2, c.FFN/2
}

// Params returns a model's number of parameters.
func Params(m *ir.Model) (n int) {
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			if w.Param.Tied == "" {
				n += s.Count * w.Type.Elems()
			}
		}
	}
	return n
}
