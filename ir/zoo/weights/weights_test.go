package weights

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
)

// configs are the models of the reference, which have all families, and models with more biases and heads of their own.
func configs(t *testing.T) map[string]*spec.Config {
	t.Helper()
	files, err := filepath.Glob("../../../golden/reference/testdata/*.config.json")
	if err != nil || len(files) < len(namings) {
		t.Fatalf("%d models of the reference, %v", len(files), err)
	}
	out := map[string]*spec.Config{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".config.json")
		out[name] = load(t, text)
		if k, ok := otherwise[name]; ok {
			out[name+" otherwise"] = load(t, []byte(k.Replace(string(text))))
		}
	}
	return out
}

func load(t *testing.T, text []byte) *spec.Config {
	t.Helper()
	c, err := spec.LoadModel("config.json", func(string) ([]byte, error) { return text, nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

// otherwise are changes to models of the reference.
var otherwise = map[string]*strings.Replacer{
	"llama-llama3": strings.NewReplacer(`"attention_bias": false`, `"attention_bias": true`, `"mlp_bias": false`,
		`"mlp_bias": true`),
	"gpt2-tiny":  strings.NewReplacer(`"activation_function"`, `"bias": false, "activation_function"`),
	"opt-post":   strings.NewReplacer(`"tie_word_embeddings": true`, `"tie_word_embeddings": false`),
	"neox-tiny":  strings.NewReplacer(`"tie_word_embeddings": false`, `"tie_word_embeddings": true`),
	"qwen3-tiny": strings.NewReplacer(`"attention_bias": false`, `"attention_bias": true`),
}

// Every element of every parameter has one place, and every place one element.
func TestPlacesAreABijection(t *testing.T) {
	for name, c := range configs(t) {
		m := zoo.Build(name, *c, zoo.Options{SeqLen: 4, Batch: 2, Elem: ir.F32})
		params := untied(m)
		for _, pub := range Locate(m, c).Tensors {
			size := int64(1)
			for _, n := range pub.Shape {
				size *= n
			}
			held := make([]int, size)
			for _, p := range pub.Shares {
				param := strings.Replace(p.Param, ".{layer}", "", 1)
				dims := params[param]
				if p.Rows == [2]int{0, dims[0].Size} {
					delete(params, param)
				} else if p.Rows[1] == dims[0].Size {
					delete(params, param) // its last row
				}
				visit(p, dims, func(at int) { held[at]++ })
			}
			for at, n := range held {
				if n != 1 {
					t.Fatalf("%s: element %d of %s %v holds %d elements of %+v", name, at, pub.Name, pub.Shape,
						n, pub.Shares)
				}
			}
		}
		for p := range params {
			t.Errorf("%s: parameter %s has no place", name, p)
		}
	}
}

// visit calls f with the place of each element of a part.
func visit(p ir.Share, dims []ir.Extent, f func(at int)) {
	var walk func(k, at int)
	walk = func(k, at int) {
		if k == len(dims) {
			f(at)
			return
		}
		n := dims[k].Size
		if k == 0 {
			n = p.Rows[1] - p.Rows[0]
		}
		for i := range n {
			walk(k+1, at+i*p.Strides[k])
		}
	}
	walk(0, p.Offset)
}

// Fused tensors, and those that lie transposed.
func TestPlaces(t *testing.T) {
	all := configs(t)
	for _, p := range []struct{ model, tensor, want string }{
		// [hidden 16, 3 · head 4 · head_dim 4]: v begins after q and k.
		{"gpt2-tiny", "transformer.h.{layer}.attn.c_attn.weight", "[16 48] {block.{layer}.attn.v [0 16] 32 [48 4 1]}"},
		// [head 2 · group 2 · head_dim 4, hidden 16]; planc's is [hidden, head, group, head_dim].
		{"llama-tiny", "model.layers.{layer}.self_attn.q_proj.weight",
			"[16 16] {block.{layer}.attn.q [0 16] 0 [1 128 64 16]}"},
		// [head 6 · (q, k, v) · head_dim 2, hidden 12].
		{"bloom-tiny", "transformer.h.{layer}.self_attention.query_key_value.weight",
			"[36 12] {block.{layer}.attn.v [0 12] 48 [1 72 12]}"},
		// [4 heads of q, 2 of k, 2 of v, each of 8; hidden 32].
		{"phi3-tiny", "model.layers.{layer}.self_attn.qkv_proj.weight",
			"[64 32] {block.{layer}.attn.v [0 32] 1536 [1 256 32]}"},
		{"vit-tiny", patchWeight, "[16 3 4 4] {embed.patch [0 48] 0 [1 48]}"},
		{"vit-tiny", "vit.embeddings.cls_token", "[1 1 16] {embed.wct [0 1] 0 [0 1]}"},
		{"vit-tiny", "vit.embeddings.patch_embeddings.projection.bias", "[16] {embed.wct [1 2] 0 [0 1]}"},
	} {
		c := all[p.model]
		got := "nothing"
		for _, pub := range Locate(zoo.Build("x", *c, zoo.Options{SeqLen: 4, Batch: 2, Elem: ir.F32}), c).Tensors {
			if pub.Name == p.tensor {
				got = fmt.Sprint(pub.Shape, " ", pub.Shares[len(pub.Shares)-1])
			}
		}
		if got != p.want {
			t.Errorf("%s lies at %s, want %s", p.tensor, got, p.want)
		}
	}
}

// What files may hold in addition to where the head is the embedding, and must equal it; and the bias of a BERT whose
// head is not.
func TestTiedHeads(t *testing.T) {
	all := configs(t)
	for model, want := range map[string]string{
		"gpt2-tiny":           "[[lm_head.weight transformer.wte.weight]]",
		"gpt2-wide":           "[]",
		"opt-post":            "[[lm_head.weight model.decoder.embed_tokens.weight]]",
		"neox-tiny otherwise": "[[embed_out.weight gpt_neox.embed_in.weight]]",
		"gemma2-tiny":         "[[lm_head.weight model.embed_tokens.weight]]",
		"bert-tiny": "[[cls.predictions.decoder.weight bert.embeddings.word_embeddings.weight] " +
			"[cls.predictions.decoder.bias cls.predictions.bias]]",
		"bert-untied": "[]",
	} {
		if got := fmt.Sprint(Locate(zoo.Build("x", *all[model], zoo.Options{SeqLen: 4, Batch: 2, Elem: ir.F32}),
			all[model]).Tied); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
	for model, want := range map[string]string{"bert-tiny": bertBias, "bert-untied": bertDecoderBias} {
		w := Locate(zoo.Build("x", *all[model], zoo.Options{SeqLen: 4, Batch: 2, Elem: ir.F32}), all[model])
		var biases []string
		for _, pub := range w.Tensors {
			if strings.HasPrefix(pub.Shares[0].Param, "head.lm_head_bias") {
				biases = append(biases, pub.Name)
			}
		}
		read := slices.Contains(w.Spellings, [2]string{bertDecoderBias, bertBias}) // of transformers 4
		if !slices.Equal(biases, []string{want}) || read != (model == "bert-untied") {
			t.Errorf("%s: biases of logits are %v, also read under the other name: %v", model, biases, read)
		}
	}
}
