package zoo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// old and new are what the families that follow GPT-2 and those that follow Llama have in common.
func old(family string, vocab, hidden, layers, heads, positions int, c spec.Config) spec.Config {
	c.Family, c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.MaxPositions = family, vocab,
		hidden, layers, heads, heads, hidden/heads, 4*hidden, positions
	c.NormEps, c.InitStd, c.AttentionBias, c.QKVBias, c.MLPBias = 1e-5, 0.02, true, true, true
	return c
}

func modern(family string, vocab, hidden, layers, heads, kv, headDim, ffn int, c spec.Config) spec.Config {
	c.Family, c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.MaxPositions = family, vocab,
		hidden, layers, heads, kv, headDim, ffn, 4096
	c.NormEps, c.InitStd, c.RopeTheta, c.RotaryDim = 1e-6, 0.02, 10000, headDim
	if c.Activation == "" {
		c.Activation = "silu"
	}
	return c
}

// withoutBiases returns a GPT-2 as nanoGPT's bias=False builds it.
func withoutBiases(c spec.Config) spec.Config {
	c.AttentionBias, c.QKVBias, c.MLPBias, c.BiasFreeNorm = false, false, false, true
	return c
}

// latent is what DeepSeek's families have in common.
func latent(family string, vocab, hidden, layers, heads, ffn int, c spec.Config) spec.Config {
	c = modern(family, vocab, hidden, layers, heads, heads, 192, ffn, c)
	c.KVLatent, c.PlainDim, c.VDim, c.RotaryDim, c.RotaryNext = 512, 128, 128, 64, true
	return c
}

// published are models as their papers and Hugging Face's files have them, with their numbers of parameters.
var published = []struct {
	name   string
	config spec.Config
	params int64
}{
	{"gpt2", old(spec.GPT2, 50257, 768, 12, 12, 1024, spec.Config{Activation: "gelu_new", Tied: true, DropEmbd: 0.1,
		DropResid: 0.1, DropAttn: 0.1}), 124_439_808},
	// nanoGPT prints 10.65M for it, without the position table's 98,304
	{"nanogpt-shakespeare", withoutBiases(old(spec.GPT2, 65, 384, 6, 6, 256, spec.Config{Activation: "gelu_new",
		Tied: true})), 10_745_088},
	{"opt-125m", old(spec.OPT, 50272, 768, 12, 12, 2048, spec.Config{Activation: "relu", Tied: true,
		PositionOffset: 2}), 125_239_296},
	{"opt-350m", old(spec.OPT, 50272, 1024, 24, 16, 2048, spec.Config{Activation: "relu", Tied: true,
		PositionOffset: 2, EmbedDim: 512, PostNorm: true}), 331_196_416},
	{"bloom-560m", old(spec.Bloom, 250880, 1024, 24, 16, 2048, spec.Config{Activation: "gelu_new", Tied: true,
		EmbedNorm: true}), 559_214_592},
	{"pythia-160m", old(spec.GPTNeoX, 50304, 768, 12, 12, 2048, spec.Config{Activation: "gelu", RopeTheta: 10000,
		RotaryDim: 16, ParallelResidual: true}), 162_322_944},
	{"bert-base-uncased", old(spec.BERT, 30522, 768, 12, 12, 512, spec.Config{Activation: "gelu", Tied: true,
		PostNorm: true, EmbedNorm: true,
		Bidirectional: true, TokenTypes: 2, HeadBias: true, HeadTransform: true, DropEmbd: 0.1, DropResid: 0.1,
		DropAttn: 0.1}), 109_514_298},
	{"vit-base-patch16-224", old(spec.ViT, 1000, 768, 12, 12, 197, spec.Config{Activation: "gelu", Bidirectional: true,
		HeadBias:  true,
		ImageSize: 224, PatchSize: 16, Channels: 3}), 86_567_656},
	{"llama-2-7b", modern(spec.Llama, 32000, 4096, 32, 32, 32, 128, 11008, spec.Config{}), 6_738_415_616},
	{"llama-3-8b", modern(spec.Llama, 128256, 4096, 32, 32, 8, 128, 14336, spec.Config{}), 8_030_261_248},
	{"llama-3.2-1b", modern(spec.Llama, 128256, 2048, 16, 32, 8, 64, 8192, spec.Config{Tied: true}), 1_235_814_400},
	{"mistral-7b", modern(spec.Mistral, 32000, 4096, 32, 32, 8, 128, 14336, spec.Config{Window: 4096}), 7_241_732_096},
	{"qwen2.5-0.5b", modern(spec.Qwen2, 151936, 896, 24, 14, 2, 64, 4864, spec.Config{Tied: true, QKVBias: true}),
		494_032_768},
	{"qwen3-0.6b", modern(spec.Qwen3, 151936, 1024, 28, 16, 8, 128, 3072, spec.Config{Tied: true, QKNorm: true}),
		596_049_920},
	{"phi-3-mini", modern(spec.Phi3, 32064, 3072, 32, 32, 32, 96, 8192, spec.Config{Window: 2047}), 3_821_079_552},
	{"gemma-2-2b", modern(spec.Gemma2, 256000, 2304, 26, 8, 4, 256, 9216, spec.Config{Activation: "gelu_new",
		Tied: true, UnitNorm: true, SandwichNorm: true,
		EmbedScale: 48, QueryScale: 0.0625, AttentionSoftcap: 50, LogitSoftcap: 30, Window: 4096, Local: "1l1f"}),
		2_614_341_888},
	{"gemma-3-1b", modern(spec.Gemma3, 262144, 1152, 26, 4, 1, 256, 6912, spec.Config{Activation: "gelu_new",
		Tied: true, UnitNorm: true, SandwichNorm: true,
		QKNorm: true, EmbedScale: 33.941, QueryScale: 0.0625, Window: 512, Local: "5l1f", LocalTheta: 10000}),
		999_885_952},
	{"mixtral-8x7b", modern(spec.Mixtral, 32000, 4096, 32, 32, 8, 128, 14336, spec.Config{Experts: 8, Choices: 2,
		ExpertFFN: 14336, RouteShare: true}), 46_702_792_704},
	{"qwen1.5-moe-a2.7b", modern(spec.Qwen2MoE, 151936, 2048, 24, 16, 16, 128, 5632, spec.Config{QKVBias: true,
		Experts: 60, Choices: 4, ExpertFFN: 1408,
		SharedFFN: 5632, SharedGate: true}), 14_315_784_192},
	{"qwen3-30b-a3b", modern(spec.Qwen3MoE, 151936, 2048, 48, 32, 4, 128, 6144, spec.Config{QKNorm: true, Experts: 128,
		Choices: 8, ExpertFFN: 768, RouteShare: true}), 30_532_122_624},
	{"deepseek-v2-lite", latent(spec.DeepseekV2, 102400, 2048, 27, 16, 10944, spec.Config{Dense: 1, Experts: 64,
		Choices: 6, ExpertFFN: 1408, SharedFFN: 2816}), 15_706_484_224},
	{"deepseek-v3", latent(spec.DeepseekV3, 129280, 7168, 61, 128, 18432, spec.Config{QLatent: 1536, Dense: 3,
		Experts: 256, Choices: 8, ExpertFFN: 2048, SharedFFN: 2048,
		RouteGate: "sigmoid", RouteShare: true, RouteScale: 2.5, Groups: 8, BestGroups: 4, RouteBias: true}),
		671_026_419_200},
}

// The models have the parameters that their papers say, pass the checker and read back from their text.
func TestPublished(t *testing.T) {
	for _, p := range published {
		m := Build(p.name, p.config, Options{SeqLen: 128, Batch: 2, Elem: ir.F32})
		if n, counted := m.Params(), p.config.Params(); n != p.params || counted != n {
			t.Errorf("%s has %d parameters, spec counts %d, want %d", p.name, n, counted, p.params)
		}
		if err := m.Check(); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		second, err := ir.ParseModel(m.String())
		if err != nil || second.String() != m.String() {
			t.Errorf("%s reads back as %v, %v", p.name, second, err)
		}
	}
}

// Each family builds with every option on and off, and what an option adds is there.
func TestOptions(t *testing.T) {
	left := maps.Clone(families)
	for _, p := range published {
		delete(left, p.config.Family)
	}
	if len(left) > 0 {
		t.Errorf("families %v have no published model above", slices.Sorted(maps.Keys(left)))
	}
	for _, p := range published {
		for bits := range 16 {
			c := p.config
			c.Tied, c.AttentionBias, c.MLPBias, c.DropResid = bits&1 > 0, bits&2 > 0, bits&4 > 0, float64(bits&8)/80
			c.DropAttn, c.DropEmbd = c.DropResid, c.DropResid
			m := Build(p.name, c, Options{SeqLen: 16, Batch: 2, Elem: ir.F64})
			if err := m.Check(); err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
			text := m.String()
			for word, want := range map[string]bool{"tied=embed.wte": c.Tied, "drop=0.1": c.DropResid > 0,
				"attn.q_bias": c.KVLatent == 0 && (c.AttentionBias || c.QKVBias),
				"attn.o_bias": c.KVLatent == 0 && c.AttentionBias,
				"mlp.up_bias": c.MLPBias && (c.Experts == 0 || c.SharedFFN > 0)} {
				if strings.Contains(text, word) != want {
					t.Errorf("%s: %q in the text: %v, want %v", p.name, word, !want, want)
				}
			}
			if err := keysOnce(m); err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
		}
	}
}

// keysOnce: dropouts of a function draw by keys of their own.
func keysOnce(m *ir.Model) error {
	for _, s := range m.Segments {
		seen := map[int]bool{}
		for _, n := range s.Forward.Nodes {
			if n.Attr.Drop > 0 && (n.Attr.Key == 0 || seen[n.Attr.Key]) {
				return fmt.Errorf("%v shares its key", n)
			}
			seen[n.Attr.Key] = true
		}
	}
	return nil
}

// Segments forward the stream alone: each returns the inputs of the next one.
func TestSegmentsFit(t *testing.T) {
	for _, p := range published {
		m := Build(p.name, p.config, Options{SeqLen: 16, Batch: 2, Elem: ir.F32})
		for i, s := range m.Segments[1:] {
			out, in := m.Segments[i].Forward.Outputs, s.Forward.Value("x")
			if len(out) != 1 || in == nil || !out[0].Type.Equal(in.Type) {
				t.Errorf("%s: %s returns %v, %s takes %v", p.name, m.Segments[i].Name, out, s.Name, in)
			}
		}
		l := m.Segments[len(m.Segments)-1].Logits
		if (l != nil) != Decodes(p.config.Family) {
			t.Errorf("%s has logits %v", p.name, l)
		}
		if l != nil && len(l.Outputs) != 1 ||
			l != nil && l.Outputs[0].Type.String() != fmt.Sprintf("f32[batch=2,vocab=%d]", p.config.Vocab) {
			t.Errorf("%s: the logits are %v", p.name, l.Outputs)
		}
	}
}
