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

// published are models as their papers and Hugging Face's files have them, with their numbers of parameters.
var published = []struct {
	name   string
	config spec.Config
	params int64
}{
	{"gpt2", spec.Config{Family: "gpt2", Vocab: 50257, Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072, MaxPositions: 1024,
		Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.02, Tied: true, AttentionBias: true, MLPBias: true,
		DropEmbd: 0.1, DropResid: 0.1, DropAttn: 0.1}, 124_439_808},
	{"llama-2-7b", spec.Config{Family: "llama", Vocab: 32000, Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 32, HeadDim: 128, FFN: 11008,
		MaxPositions: 4096, Activation: "silu", NormEps: 1e-5, InitStd: 0.02, RopeTheta: 10000}, 6_738_415_616},
	{"llama-3-8b", spec.Config{Family: "llama", Vocab: 128256, Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336,
		MaxPositions: 8192, Activation: "silu", NormEps: 1e-5, InitStd: 0.02, RopeTheta: 500000}, 8_030_261_248},
	{"llama-3.2-1b", spec.Config{Family: "llama", Vocab: 128256, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
		MaxPositions: 131072, Activation: "silu", NormEps: 1e-5, InitStd: 0.02, RopeTheta: 500000, Tied: true}, 1_235_814_400},
}

// The models have the parameters that their papers say, pass the checker and read back from their text.
func TestPublished(t *testing.T) {
	for _, p := range published {
		m := Build(p.name, p.config, Options{SeqLen: 128, Batch: 2, Elem: ir.F32})
		if n := m.Params(); n != p.params {
			t.Errorf("%s has %d parameters, want %d", p.name, n, p.params)
		}
		if err := m.Check(); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		again, err := ir.ParseModel(m.String())
		if err != nil || again.String() != m.String() {
			t.Errorf("%s reads back as %v, %v", p.name, again, err)
		}
	}
}

// Each family builds with every option on and off, and what an option adds is there.
func TestOptions(t *testing.T) {
	if got := slices.Sorted(maps.Keys(families)); !slices.Equal(got, []string{"gpt2", "llama"}) {
		t.Errorf("families %v: give the new one a published model above", got)
	}
	for _, p := range published {
		for bits := range 16 {
			c := p.config
			c.Tied, c.AttentionBias, c.MLPBias, c.DropResid = bits&1 > 0, bits&2 > 0, bits&4 > 0, float64(bits&8)/80
			if c.Family == "gpt2" {
				c.AttentionBias, c.MLPBias = true, true
			}
			c.DropAttn, c.DropEmbd = c.DropResid, c.DropResid
			m := Build(p.name, c, Options{SeqLen: 16, Batch: 2, Elem: ir.F64})
			if err := m.Check(); err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
			text := m.String()
			for word, want := range map[string]bool{"tied=embed.wte": c.Tied, "drop=0.1": c.DropResid > 0, "attn.q_bias": c.AttentionBias, "mlp.up_bias": c.MLPBias} {
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

// Segments hand on the stream alone: each returns what the next one takes.
func TestSegmentsFit(t *testing.T) {
	for _, p := range published {
		m := Build(p.name, p.config, Options{SeqLen: 16, Batch: 2, Elem: ir.F32})
		for i, s := range m.Segments[1:] {
			out, in := m.Segments[i].Forward.Outputs, s.Forward.Value("x")
			if len(out) != 1 || in == nil || !out[0].Type.Equal(in.Type) {
				t.Errorf("%s: %s returns %v, %s takes %v", p.name, m.Segments[i].Name, out, s.Name, in)
			}
		}
		if l := m.Segments[2].Logits; len(l.Outputs) != 1 || l.Outputs[0].Type.String() != fmt.Sprintf("f32[batch=2,vocab=%d]", p.config.Vocab) {
			t.Errorf("%s: the logits are %v", p.name, l.Outputs)
		}
	}
}
