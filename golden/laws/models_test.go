package laws_test

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// lawModel is small, with a vocabulary that no tp divides. Broad models go through every plan with each optimizer.
// The others differ from them in parts of the block, and each plan uses some of them.
type lawModel struct {
	name  string
	broad bool
	spec.Config
	documents bool // attention does not cross the borders of documents
	pairs     bool // samples are of two documents, whose first tokens are no labels
	alone     bool // each of these documents is a sample
}

// lawModels cover every option of every family at least once: what its row of the zoo and its config.json allow.
func lawModels() []lawModel {
	gpt := spec.Config{Vocab: 61, Hidden: 16, Layers: 2, Heads: 8, KVHeads: 8, HeadDim: 2, FFN: 32, MaxPositions: 10,
		Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.2, AttentionBias: true, QKVBias: true, MLPBias: true}
	llama := spec.Config{Vocab: 59, Hidden: 16, Layers: 3, Heads: 8, KVHeads: 2, HeadDim: 4, FFN: 24, MaxPositions: 32,
		Activation: "silu", NormEps: 1e-5, InitStd: 0.2, RopeTheta: 10000}
	gemma := func(c *spec.Config) {
		c.Activation, c.Tied, c.UnitNorm, c.SandwichNorm, c.EmbedScale, c.QueryScale, c.Window = "gelu_new", true,
			true, true, 4, 0.7, 3
	}
	var out []lawModel
	add := func(name, family string, base spec.Config, change func(*spec.Config)) {
		base.Family = family
		if change != nil {
			change(&base)
		}
		out = append(out, lawModel{name: name, broad: len(out) < 3, Config: base})
	}
	add("gpt2", spec.GPT2, gpt, func(c *spec.Config) { c.Tied = true })
	add("llama", spec.Llama, llama, nil)
	add("llama-tied", spec.Llama, llama, func(c *spec.Config) { c.Tied = true })
	add("opt", spec.OPT, gpt, func(c *spec.Config) { c.Activation, c.Tied, c.PositionOffset = "relu", true, 2 })
	add("opt-narrow", spec.OPT, gpt, func(c *spec.Config) {
		c.Activation, c.Tied, c.PositionOffset, c.EmbedDim, c.PostNorm = "relu", true, 2, 8, true
	})
	add("bloom", spec.Bloom, gpt, func(c *spec.Config) { c.Tied, c.EmbedNorm = true, true })
	add("gpt_neox", spec.GPTNeoX, gpt, func(c *spec.Config) {
		c.Activation, c.HeadDim, c.RotaryDim, c.RopeTheta, c.ParallelResidual = "gelu", 4, 2, 10000, true
	})
	add("mistral", spec.Mistral, llama, func(c *spec.Config) { c.Window = 3 })
	add("qwen2", spec.Qwen2, llama, func(c *spec.Config) {
		c.QKVBias, c.Window, c.Local, c.PaddingRow = true, 3, "2f1l", 20
	})
	add("qwen3", spec.Qwen3, llama, func(c *spec.Config) { c.QKNorm, c.Tied = true, true })
	add("phi3", spec.Phi3, llama, func(c *spec.Config) { c.KVHeads, c.RotaryDim, c.Window = 8, 2, 5 })
	add("gemma2", spec.Gemma2, llama, func(c *spec.Config) {
		gemma(c)
		c.AttentionSoftcap, c.LogitSoftcap, c.Local, c.PaddingRow = 2, 3, "1l1f", 8
	})
	add("gemma3", spec.Gemma3, llama, func(c *spec.Config) {
		gemma(c)
		c.KVHeads, c.QKNorm, c.Local, c.LocalTheta = 1, true, "1l1f", 100
	})
	add("bert", spec.BERT, gpt, func(c *spec.Config) {
		c.Activation, c.Tied, c.PostNorm, c.EmbedNorm, c.Bidirectional, c.TokenTypes, c.HeadBias, c.HeadTransform =
			"gelu", true, true, true, true, 2, true, true
	})
	add("vit", spec.ViT, gpt, func(c *spec.Config) {
		c.Activation, c.Vocab, c.Bidirectional, c.HeadBias, c.PatchSize, c.Channels = "gelu", 23, true, true, 2, 3
	})
	add("gpt2-bias-free", spec.GPT2, gpt, func(c *spec.Config) {
		c.Tied, c.AttentionBias, c.QKVBias, c.MLPBias, c.BiasFreeNorm = true, false, false, false, true
	})
	return out
}

// lawVariants returns the models with and without dropout, with each optimizer. A model that is not broad has two
// variants: one optimizer with dropout, then the other without. The short run takes [lawBroad] of the broad models,
// and the first variant of each other model.
func lawVariants(elem ir.Elem) (broad, others []lawCase) {
	for i, m := range lawModels() {
		variant := func(opt string, drop float64) lawCase {
			v := m
			v.DropEmbd, v.DropResid, v.DropAttn = drop, drop, drop
			return lawCase{group: fmt.Sprintf("%s-%s-drop%v-%v", m.name, opt, drop, elem), model: v,
				optimizer: opt, elem: elem}
		}
		if !m.broad {
			opts := []string{"sgd", "adamw"}
			others = append(others, variant(opts[i%2], 0.2), variant(opts[1-i%2], 0))
			continue
		}
		for _, drop := range []float64{0, 0.2} {
			broad = append(broad, variant("sgd", drop), variant("adamw", drop))
		}
	}
	return broad, others
}

// lawShare is the number of families that share the plans of the short run: each has every lawShare-th.
const lawShare = 30

// lawBroad are the variants of the broad models in the short run, as indexes of lawVariants: each model, optimizer and
// dropout occurs. Each variant also needs its one-rank program.
var lawBroad = map[ir.Elem][]int{ir.F64: {0, 5, 10, 7, 3}, ir.F32: {1, 6, 8}}

// lawTakes reports whether the short run has a plan with variant v: each plan with one of the broad models in turn,
// and with some families, in f64.
func lawTakes(v, plan, broad int, elem ir.Elem) bool {
	if v < broad {
		turns := lawBroad[elem]
		return slices.Contains(turns, v) && (plan < 0 || v == turns[plan%len(turns)])
	}
	v -= broad
	return v%2 == 0 && elem == ir.F64 && (plan < 0 || plan%lawShare == v/2%lawShare)
}

// lawCases returns all plans times all variants in the long run, and those that [lawTakes] accepts in the short one.
// The first of a variant, with plan -1, is the reference: one rank. Every fourth plan also runs in f32.
func lawCases(long bool) []lawCase {
	var out []lawCase
	for _, elem := range []ir.Elem{ir.F64, ir.F32} {
		broad, others := lawVariants(elem)
		for v, c := range append(broad, others...) {
			for i, plan := range lawPlans(c.model.Layers) {
				if (long || lawTakes(v, i-1, len(broad), elem)) && (elem == ir.F64 || (i-1)%4 == 0 || i == 0) {
					c.plan, c.id = plan, fmt.Sprintf("p%04d", len(out))
					c.plan.Precision = ir.FullPrecision(elem)
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// lawSource returns the source of a model's samples, as Go code for the module's main.
func lawSource(m *lawModel) string {
	return fmt.Sprintf("{vocab: %d, samples: 20, holes: %v, picture: %v, pairs: %v, alone: %v}", m.Vocab,
		m.TokenTypes > 0, m.Channels > 0, m.pairs, m.alone)
}
