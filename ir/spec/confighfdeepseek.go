package spec

import (
	"math"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// hfDeepseek are the keys that deepseek_v2 and deepseek_v3 share.
type hfDeepseek struct {
	hfDecoder
	Activation    string  `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the gate projection"`
	Parameters    hfRope  `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
	AttentionBias bool    `yaml:"attention_bias" now:"false" doc:"false"`
	QLatent       int     `yaml:"q_lora_rank" min:"1" max:"65536" null:"none" doc:"width of the latent vector of queries; null: queries are projected from the residual stream"`
	KVLatent      int     `yaml:"kv_lora_rank" min:"1" max:"65536" doc:"width of the latent vector of keys and values"`
	PlainDim      int     `yaml:"qk_nope_head_dim" min:"1" max:"65536" doc:"elements of a head's queries and keys without positions"`
	RotaryDim     int     `yaml:"qk_rope_head_dim" min:"1" max:"65536" doc:"elements of a head's queries and keys that are rotated; all heads share the rotated keys"`
	VDim          int     `yaml:"v_head_dim" min:"1" max:"65536" doc:"elements of a head's values"`
	Experts       int     `yaml:"n_routed_experts" min:"1" max:"16384" doc:"number of routed experts per block"`
	Choices       int     `yaml:"num_experts_per_tok" min:"1" max:"16384" doc:"experts per token"`
	Shared        int     `yaml:"n_shared_experts" min:"1" max:"16384" doc:"number of shared experts, which all tokens pass"`
	ExpertFFN     int     `yaml:"moe_intermediate_size" min:"1" max:"4194304" doc:"width of an expert's hidden layer"`
	Dense         int     `yaml:"first_k_dense_replace" min:"0" max:"1024" doc:"leading blocks with an MLP instead of experts"`
	Every         int     `yaml:"moe_layer_freq" now:"1" doc:"1: every block after first_k_dense_replace has experts"`
	RouteScale    float64 `yaml:"routed_scaling_factor" over:"0" doc:"factor of the expert weights"`
	Groups        int     `yaml:"n_group" min:"1" max:"16384" null:"none" doc:"number of equal groups that the experts form"`
	BestGroups    int     `yaml:"topk_group" min:"1" max:"16384" null:"none" doc:"groups from which a token's experts are chosen"`
	Balanced      bool    `yaml:"output_router_logits" now:"false" doc:"false: config.json adds no balance loss"`
	SeqBalance    bool    `yaml:"seq_aux" doc:"how the balance loss was taken in the original training; transformers has none"`
	Balance       float64 `yaml:"aux_loss_alpha" min:"0" doc:"coefficient of that loss"`
}

// hfDeepseekV2 is config.json of model_type deepseek_v2.
type hfDeepseekV2 struct {
	hfDeepseek
	MLPBias bool   `yaml:"mlp_bias" now:"false" doc:"false"`
	Share   bool   `yaml:"norm_topk_prob" now:"false" doc:"false: a token's expert weights are not normalized, as in transformers"`
	Scores  string `yaml:"scoring_func" enum:"softmax,sigmoid" now:"softmax" doc:"how router outputs become scores"`
	Method  string `yaml:"topk_method" enum:"greedy,group_limited_greedy,noaux_tc" now:"greedy,group_limited_greedy" doc:"whether a token's experts come from a few groups"`
}

// hfDeepseekV3 is config.json of model_type deepseek_v3.
type hfDeepseekV3 struct {
	hfDeepseek
	Next   bool   `yaml:"rope_interleave" doc:"rotated pairs are adjacent elements"`
	Share  bool   `yaml:"norm_topk_prob" doc:"a token's expert weights add up to routed_scaling_factor"`
	Scores string `yaml:"scoring_func" enum:"softmax,sigmoid" now:"sigmoid" doc:"how router outputs become scores"`
	Method string `yaml:"topk_method" enum:"greedy,group_limited_greedy,noaux_tc" now:"noaux_tc" doc:"how a token's experts are chosen"`
	Ahead  int    `yaml:"num_nextn_predict_layers" min:"0" max:"1024" doc:"blocks for multi-token prediction; planc leaves their weights out, as transformers does"`
	MTP    *int   `yaml:"num_mtp_layers" min:"0" max:"1024" doc:"num_nextn_predict_layers in the spelling of transformers 5"`
}

var (
	deepseekV2Defaults = hfDeepseekV2{hfDeepseek: deepseek(hfDecoder{ModelType: DeepseekV2, Vocab: 102400,
		Hidden: 4096, FFN: 11008, Layers: 32, Heads: 32, Positions: 2048}),
		Scores: "softmax", Method: "greedy"}
	deepseekV3Defaults = func() hfDeepseekV3 {
		d := deepseek(hfDecoder{ModelType: DeepseekV3, Vocab: 129280, Hidden: 7168, FFN: 18432, Layers: 61,
			Heads: 128, Positions: 4096})
		d.KVHeads = 128
		d.Experts, d.Shared, d.ExpertFFN, d.Choices, d.Dense, d.RouteScale, d.Groups, d.BestGroups = 256, 1, 2048, 8,
			3, 2.5, 8, 4
		return hfDeepseekV3{hfDeepseek: d, Next: true, Share: true, Scores: "sigmoid", Method: "noaux_tc"}
	}()
)

// deepseek returns the defaults that both families share, for a family's own sizes.
func deepseek(sizes hfDecoder) hfDeepseek {
	sizes.InitStd, sizes.NormEps = 0.02, 1e-6
	return hfDeepseek{hfDecoder: sizes, Activation: "silu", QLatent: 1536, KVLatent: 512, PlainDim: 128, RotaryDim: 64,
		VDim: 128, Experts: 64, Shared: 2, ExpertFFN: 1407, Every: 1, RouteScale: 1}
}

// deepseekSizes has no headDim: transformers writes head_dim as a copy of qk_rope_head_dim.
var deepseekSizes = keys{vocab: "vocab_size", hidden: "hidden_size", layers: "num_hidden_layers",
	heads:   "num_attention_heads",
	kvHeads: "num_key_value_heads", ffn: "intermediate_size", positions: "max_position_embeddings"}

// deepseek reads the keys that both families share. Each head has keys of its own, so num_key_value_heads has no
// effect.
func (s *source) deepseek(family string, hf *hfDeepseek) *Config {
	c := s.decoder(family, &hf.hfDecoder, hf.Activation)
	if hf.KVHeads != 0 && hf.KVHeads != hf.Heads {
		s.diags.Addf(s.Pos("num_key_value_heads"), strict.NotYet,
			"num_key_value_heads is %d; multi-head latent attention (MLA) has keys for each of the %d heads",
			hf.KVHeads, hf.Heads)
	}
	c.KVLatent, c.QLatent, c.PlainDim, c.VDim, c.HeadDim = hf.KVLatent, hf.QLatent, hf.PlainDim, hf.VDim,
		hf.PlainDim+hf.RotaryDim
	c.Experts, c.Choices, c.ExpertFFN, c.SharedFFN, c.RouteScale, c.Dense = hf.Experts, hf.Choices, hf.ExpertFFN,
		hf.Shared*hf.ExpertFFN, hf.RouteScale, hf.Dense
	if hf.Choices == 0 {
		s.diags.Addf(s.Pos("num_experts_per_tok"), Missing,
			"num_experts_per_tok is required: %s has no default for it", family)
	}
	if hf.Dense >= hf.Layers {
		s.diags.Addf(s.Pos("first_k_dense_replace"), BadModel,
			"first_k_dense_replace is %d of %d blocks; at least one block must have experts", hf.Dense, hf.Layers)
	}
	s.withRope(c, &hf.hfDecoder, hf.Parameters)
	c.rotary = float64(hf.RotaryDim) / float64(c.HeadDim)
	c.QueryScale = mlaScale(c, s, hf)
	return c
}

// mlaScale returns the factor of the attention scores. yarn's mscale_all_dim multiplies it by the square of yarn's
// own factor.
func mlaScale(c *Config, s *source, hf *hfDeepseek) float64 {
	scale := 1 / math.Sqrt(float64(c.HeadDim))
	r := hf.Scaling
	if s.Has("rope_parameters") {
		r = hf.Parameters
	}
	if r.MScaleAll > 0 && c.RopeScaling.Kind != "" {
		m := ir.YarnScores(r.Factor, r.MScaleAll)
		scale *= m * m
	}
	return scale
}

// groups reads and checks the expert groups.
func (s *source) groups(c *Config, hf *hfDeepseek) {
	if hf.Groups == 0 || hf.BestGroups == 0 {
		s.diags.Addf(s.Pos("topk_method"), Missing, "topk_method needs n_group and topk_group")
		return
	}
	switch {
	case hf.Experts%hf.Groups != 0:
		s.diags.Addf(s.Pos("n_group"), BadModel, "n_group %d does not divide n_routed_experts %d",
			hf.Groups, hf.Experts)
	case hf.BestGroups > hf.Groups:
		s.diags.Addf(s.Pos("topk_group"), BadModel, "topk_group is %d; there are %d groups", hf.BestGroups, hf.Groups)
	case hf.Choices > hf.BestGroups*(hf.Experts/hf.Groups):
		s.diags.Addf(s.Pos("num_experts_per_tok"), BadModel, "num_experts_per_tok is %d; %d groups have %d experts",
			hf.Choices, hf.BestGroups, hf.BestGroups*(hf.Experts/hf.Groups))
	}
	c.Groups, c.BestGroups = hf.Groups, hf.BestGroups
}

func deepseekV2Config(s *source, hf *hfDeepseekV2) *Config {
	c := s.deepseek(DeepseekV2, &hf.hfDeepseek)
	c.RotaryNext = true
	if hf.Method == "group_limited_greedy" {
		s.groups(c, &hf.hfDeepseek)
	}
	return c
}

// routeEps is the number that transformers' modeling_deepseek_v3.py adds to the sum of a token's scores.
const routeEps = 1e-20

func deepseekV3Config(s *source, hf *hfDeepseekV3) *Config {
	c := s.deepseek(DeepseekV3, &hf.hfDeepseek)
	if hf.MTP != nil {
		hf.Ahead, hf.MTP = s.either("num_nextn_predict_layers", hf.Ahead, "num_mtp_layers", *hf.MTP), nil
	}
	c.Ahead = hf.Ahead
	c.RotaryNext, c.RouteShare, c.RouteGate, c.RouteBias = hf.Next, hf.Share, "sigmoid", true
	if hf.Share {
		c.RouteEps = routeEps
	}
	if s.Has("head_dim") && hf.HeadDim != hf.RotaryDim {
		s.diags.Addf(s.Pos("head_dim"), Conflict,
			"head_dim is %d; it must be qk_rope_head_dim, which is %d: remove head_dim", hf.HeadDim, hf.RotaryDim)
	}
	s.groups(c, &hf.hfDeepseek)
	if hf.Groups > 1 && hf.Experts/hf.Groups < 2 {
		s.diags.Addf(s.Pos("n_group"), BadModel,
			"n_group %d makes groups of one expert, but groups are ranked by the sum of their best two: use a "+
				"smaller n_group", hf.Groups)
	}
	return c
}
