package spec

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// config is that of an inline model in a job whose sequences have seqLen tokens.
func config(t *testing.T, model string, seqLen int) *Config {
	t.Helper()
	return load(t, fmt.Sprintf("model: %s\ntrain: {seq_len: %d, global_batch: 8}\ncluster: 1xcpu\n", model,
		seqLen)).Config
}

// The hub's spelling and that of transformers 5 are one model; so are names that a family has two of.
func TestFamilySpellings(t *testing.T) {
	for _, pair := range [][2]string{
		{"{model_type: bloom, n_embed: 64, num_hidden_layers: 3, num_attention_heads: 4}",
			"{model_type: bloom, hidden_size: 64, n_layer: 3, n_head: 4}"},
		{"{model_type: gpt_neox, rotary_pct: 0.5, rotary_emb_base: 20000}",
			"{model_type: gpt_neox, rope_parameters: {partial_rotary_factor: 0.5, rope_theta: 20000, rope_type: " +
				"default}}"},
		{"{model_type: mistral, rope_theta: 1e6, sliding_window: null}",
			"{model_type: mistral, rope_parameters: {rope_theta: 1e6}, sliding_window: null}"},
		{"{model_type: phi3, partial_rotary_factor: 0.75, rope_theta: 500}",
			"{model_type: phi3, rope_parameters: {partial_rotary_factor: 0.75, rope_theta: 500}}"},
		{"{model_type: gemma3_text, rope_theta: 5e5, rope_local_base_freq: 7, rope_scaling: {rope_type: linear, " +
			"factor: 8}}",
			"{model_type: gemma3_text, rope_parameters: {full_attention: {rope_theta: 5e5, rope_type: linear, " +
				"factor: 8}, sliding_attention: {rope_theta: 7}}}"},
		{"{model_type: gemma3_text, num_hidden_layers: 3, sliding_window_pattern: 2}",
			"{model_type: gemma3_text, num_hidden_layers: 3, layer_types: [sliding_attention, full_attention, " +
				"sliding_attention]}"},
		{"{model_type: gemma2, num_hidden_layers: 2}",
			"{model_type: gemma2, num_hidden_layers: 2, layer_types: [sliding_attention, full_attention]}"},
		{"{model_type: qwen2, use_sliding_window: true, max_window_layers: 1, num_hidden_layers: 2}",
			"{model_type: qwen2, use_sliding_window: true, num_hidden_layers: 2, layer_types: [full_attention, " +
				"sliding_attention]}"},
		{"{model_type: vit, id2label: {0: cat, 1: dog, 2: cow}}", "{model_type: vit, num_labels: 3}"},
		{"{base: bloom-560m, num_hidden_layers: 2, hidden_size: 64}", "{base: bloom-560m, n_layer: 2, n_embed: 64}"},
		{"{model_type: gemma3, vision_config: {}, text_config: {hidden_size: 64}}",
			"{model_type: gemma3_text, hidden_size: 64}"},
	} {
		length := 16
		if pair[1] == "{model_type: vit, num_labels: 3}" {
			length = 197
		}
		a, b := *config(t, pair[0], length), *config(t, pair[1], length)
		a.at, a.hf, a.special, b.at, b.hf, b.special = nil, nil, nil, nil, nil, nil
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s\nis %+v\n%s\nis %+v", pair[0], a, pair[1], b)
		}
	}
}

// What absent keys mean is what transformers 5.23 says.
func TestFamilyDefaults(t *testing.T) {
	for model, want := range map[string]func(c *Config) bool{
		"opt": func(c *Config) bool {
			return c.FFN == 3072 && c.PositionOffset == 2 && c.EmbedDim == 0 && !c.PostNorm
		},
		"bloom": func(c *Config) bool {
			return c.Hidden == 64 && c.FFN == 256 && c.EmbedNorm && c.RopeTheta == 0
		},
		"gpt_neox": func(c *Config) bool {
			return c.RotaryDim == 24 && c.ParallelResidual && c.QKVBias && c.Vocab == 50432
		},
		"llama":   func(c *Config) bool { return c.KVHeads == 32 && c.RotaryDim == 128 && c.RopeTheta == 10000 },
		"mistral": func(c *Config) bool { return c.KVHeads == 8 && c.Window == 4096 && c.Local == "" },
		"qwen2": func(c *Config) bool {
			return c.KVHeads == 32 && c.QKVBias && !c.AttentionBias && c.Window == 0
		},
		"qwen3": func(c *Config) bool { return c.HeadDim == 128 && c.QKNorm && !c.QKVBias },
		"phi3":  func(c *Config) bool { return c.Vocab == 32064 && c.Window == 0 && c.NormEps == 1e-5 },
		"gemma2": func(c *Config) bool {
			return c.AttentionSoftcap == 50 && c.LogitSoftcap == 30 && c.Local == "1l1f"
		},
		"gemma3_text": func(c *Config) bool {
			return c.LocalTheta == 10000 && c.RopeTheta == 1e6 && c.QueryScale == 0.0625
		},
		"bert": func(c *Config) bool {
			return c.TokenTypes == 2 && c.Bidirectional && c.NormEps == 1e-12 && c.Tied
		},
	} {
		if c := config(t, "{model_type: "+model+"}", 16); !want(c) {
			t.Errorf("%s: %+v", model, *c)
		}
	}
}

// Layers that are local, in planc's words.
func TestLocalLayers(t *testing.T) {
	for model, want := range map[string]struct {
		window int
		local  ir.Layers
	}{
		"gemma3-270m": {512, "5l1f"},
		"gemma3-1b":   {512, "5l1f"}, // the last two of 26 begin the pattern again
		"gemma2-2b":   {4096, "1l1f"},
		"phi3-mini":   {2047, ""},
		"mistral-7b":  {4096, ""},
		"qwen3-8b":    {0, ""},
		"{base: qwen2.5-7b, use_sliding_window: true, max_window_layers: 21}": {131072, "21f7l"},
		"{base: qwen2.5-7b, use_sliding_window: true, max_window_layers: 0}":  {131072, ""},
		"{base: qwen2.5-7b, use_sliding_window: true}":                        {0, ""},
		"{base: qwen2.5-7b, use_sliding_window: true, sliding_window: null}":  {0, ""},
	} {
		if c := config(t, model, 16); c.Window != want.window || c.Local != want.local {
			t.Errorf("%s: window %d, local %q; want %d, %q", model, c.Window, c.Local, want.window, want.local)
		}
	}
}

// The kinds of scaling, as ir writes them. The figures are of transformers 5.23's modeling_rope_utils.
func TestRopeScalings(t *testing.T) {
	phi :=
		`{model_type: phi3, hidden_size: 8, num_attention_heads: 2, max_position_embeddings: 64, original_max_position_embeddings: 16,
  rope_scaling: {type: su, short_factor: [1, 1.5], long_factor: [2, 3]}}`
	for _, tt := range []struct {
		model  string
		seqLen int
		want   string
	}{
		{"llama3-8b", 16, ""},
		{"llama3.1-8b", 16, "llama3,8,1,4,8192"},
		{"llama3.2-1b", 16, "llama3,32,1,4,8192"},
		{"{base: llama3-8b, rope_scaling: {type: linear, factor: 2}}", 16, "linear,2"},
		{"{base: llama3-8b, rope_scaling: {rope_type: dynamic, factor: 4}}", 16, "dynamic,4,8192"},
		{"{base: qwen2.5-7b, rope_scaling: {rope_type: yarn, factor: 4, original_max_position_embeddings: 32768}}", 16,
			"yarn,4,32,1,32768,1.138629436111989"},
		{"{base: qwen2.5-7b, rope_scaling: {rope_type: yarn, factor: 4, original_max_position_embeddings: 32768, " +
			"attention_factor: 1.5, truncate: false}}", 16, "yarn,4,32,1,32768,1.5,exact"},
		{phi, 16, "longrope,1.224744871391589,1;1.5"},
		{phi, 17, "longrope,1.224744871391589,2;3"},
		{"gemma3-4b", 16, "linear,8"},
	} {
		if got := config(t, tt.model, tt.seqLen).RopeScaling.Text(); got != tt.want {
			t.Errorf("%s, sequences of %d: %s, want %s", tt.model, tt.seqLen, got, tt.want)
		}
	}
}
