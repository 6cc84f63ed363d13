package spec

import (
	"slices"

	"github.com/planc-dev/planc/ir/spec/strict"
)

// hfMixtral is config.json of model_type mixtral.
type hfMixtral struct {
	hfDecoder
	Activation string  `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the gate projection"`
	Window     int     `yaml:"sliding_window" min:"1" max:"134217728" null:"none" doc:"number of keys that a query sees"`
	Parameters hfRope  `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
	Experts    int     `yaml:"num_local_experts" min:"1" max:"16384" doc:"number of experts per block"`
	Choices    int     `yaml:"num_experts_per_tok" min:"1" max:"16384" doc:"experts per token"`
	Jitter     float64 `yaml:"router_jitter_noise" now:"0" doc:"0"`
	Balanced   bool    `yaml:"output_router_logits" doc:"adds one balance loss over all layers; supported for models of one layer only: train.experts.balance adds a loss for each layer"`
	Balance    float64 `yaml:"router_aux_loss_coef" min:"0" doc:"coefficient of the balance loss, if output_router_logits adds it"`
}

var mixtralDefaults = hfMixtral{hfDecoder: hfDecoder{ModelType: Mixtral, Vocab: 32000, Hidden: 4096, FFN: 14336,
	Layers: 32, Heads: 32, KVHeads: 8,
	Positions: 4096 * 32, InitStd: 0.02, NormEps: 1e-5}, Activation: "silu", Experts: 8, Choices: 2, Balance: 0.001}

func mixtralConfig(s *source, hf *hfMixtral) *Config {
	c := s.decoder(Mixtral, &hf.hfDecoder, hf.Activation)
	c.Window = hf.Window
	c.Experts, c.Choices, c.ExpertFFN, c.RouteShare, c.RouteScale = hf.Experts, hf.Choices, hf.FFN, true, 1
	s.balanced(c, hf.Balanced, hf.Balance)
	s.rope(c, ropeKeys{theta: "rope_theta", base: hf.Theta, defaultBase: 1e6, scaling: hf.Scaling,
		parameters: hf.Parameters})
	return c
}

// hfExperts are the keys of the experts in Qwen's families.
type hfExperts struct {
	Experts   int     `yaml:"num_experts" min:"1" max:"16384" doc:"number of experts per block"`
	Local     int     `yaml:"num_local_experts" min:"1" max:"16384" doc:"num_experts in the spelling of transformers 5 for qwen3_moe; qwen2_moe does not read it, so there it must equal num_experts"`
	Choices   int     `yaml:"num_experts_per_tok" min:"1" max:"16384" doc:"experts per token"`
	ExpertFFN int     `yaml:"moe_intermediate_size" min:"1" max:"4194304" doc:"width of an expert's hidden layer"`
	Share     bool    `yaml:"norm_topk_prob" doc:"a token's expert weights add up to 1"`
	Step      int     `yaml:"decoder_sparse_step" now:"1" doc:"1: every block has experts"`
	Dense     []int   `yaml:"mlp_only_layers" max:"1024" doc:"blocks without experts; only an empty list is supported"`
	Balanced  bool    `yaml:"output_router_logits" doc:"adds one balance loss over all layers; supported for models of one layer only: train.experts.balance adds a loss for each layer"`
	Balance   float64 `yaml:"router_aux_loss_coef" min:"0" doc:"coefficient of the balance loss, if output_router_logits adds it"`
}

type hfQwen2MoE struct {
	hfQwen
	hfExperts
	SharedFFN   int  `yaml:"shared_expert_intermediate_size" min:"1" max:"4194304" doc:"width of the shared expert's hidden layer, which all tokens pass"`
	QKVBias     bool `yaml:"qkv_bias" doc:"queries, keys and values have biases"`
	LocalLayers int  `yaml:"max_window_layers" min:"0" max:"1024" doc:"among this many leading layers, every second one, starting with the first, has a window, unless layer_types is given"`
}

type hfQwen3MoE struct {
	hfQwen
	hfExperts
	AttentionBias bool `yaml:"attention_bias" doc:"attention projections have biases"`
	LocalLayers   int  `yaml:"max_window_layers" min:"0" max:"1024" doc:"ignored: use_sliding_window gives every layer the window, as in transformers"`
}

var (
	qwen2MoEDefaults = hfQwen2MoE{hfQwen: qwenMoE(Qwen2MoE, 5632, 16, 16), SharedFFN: 5632, QKVBias: true,
		LocalLayers: windowLayers,
		hfExperts:   hfExperts{Experts: 60, Choices: 4, ExpertFFN: 1408, Step: 1, Balance: 0.001}}
	qwen3MoEDefaults = hfQwen3MoE{hfQwen: qwenMoE(Qwen3MoE, 6144, 32, 4),
		hfExperts: hfExperts{Experts: 128, Choices: 8, ExpertFFN: 768, Step: 1, Balance: 0.001}}
)

func qwenMoE(family string, ffn, heads, kvHeads int) hfQwen {
	q := newQwenDefaults(family, 0)
	q.Hidden, q.FFN, q.Layers, q.Heads, q.KVHeads = 2048, ffn, 24, heads, kvHeads
	return q
}

func (s *source) experts(c *Config, hf *hfExperts) {
	switch {
	case !s.Has("num_local_experts"):
	case c.Family == Qwen2MoE && hf.Local != hf.Experts:
		s.diags.Addf(s.Pos("num_local_experts"), Conflict,
			"num_local_experts is %d, but num_experts is %d, and transformers reads only num_experts for "+
				"qwen2_moe: remove num_local_experts", hf.Local, hf.Experts)
	default:
		hf.Experts, hf.Local = hf.Local, 0
	}
	if len(hf.Dense) > 0 {
		s.diags.Addf(s.Root.Get("mlp_only_layers").Pos, strict.NotYet,
			"mlp_only_layers is not supported yet: blocks without experts among blocks with experts; use []")
	}
	c.Experts, c.Choices, c.ExpertFFN, c.RouteShare, c.RouteScale = hf.Experts, hf.Choices, hf.ExpertFFN, hf.Share, 1
	s.balanced(c, hf.Balanced, hf.Balance)
}

// qwen2MoEConfig reads qwen2_moe. Its max_window_layers counts the leading layers that may have a window, whereas that
// of qwen2 counts the leading layers without one.
func qwen2MoEConfig(s *source, hf *hfQwen2MoE) *Config {
	c := s.qwen(Qwen2MoE, &hf.hfQwen, func(layer int) bool { return layer%2 == 0 && layer < hf.LocalLayers })
	c.QKVBias, c.SharedFFN, c.SharedGate = hf.QKVBias, hf.SharedFFN, true
	s.experts(c, &hf.hfExperts)
	return c
}

// qwen3MoEConfig reads qwen3_moe, in which either all layers have the window or none has.
func qwen3MoEConfig(s *source, hf *hfQwen3MoE) *Config {
	s.alike(hf.hfDecoder, hf.Types, hf.UseWindow && (hf.Window > 0 || s.Has("sliding_window")))
	hf.Types = nil
	c := s.qwen(Qwen3MoE, &hf.hfQwen, func(int) bool { return hf.Window > 0 || s.Has("sliding_window") })
	c.AttentionBias, c.QKVBias, c.QKNorm = hf.AttentionBias, hf.AttentionBias, true
	s.experts(c, &hf.hfExperts)
	return c
}

// alike checks that layer_types agrees with what transformers does in every layer, because transformers ignores the key
// in this family.
func (s *source) alike(c hfDecoder, types []string, window bool) {
	if (hfWindows{Types: types}).miscounted(s, c.Layers) {
		return
	}
	want := "full_attention"
	if window {
		want = "sliding_attention"
	}
	if i := slices.IndexFunc(types, func(t string) bool { return t != want }); i >= 0 {
		s.diags.Addf(s.Pos("layer_types"), Conflict,
			"layer_types[%d] is %s, but qwen3_moe has no layer_types: use_sliding_window and sliding_window make "+
				"every layer %s; remove layer_types", i, types[i], want)
	}
}
