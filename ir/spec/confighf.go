package spec

import (
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// hfGPT2 is config.json of model_type gpt2; what null or absent means is filled in before it is decoded.
type hfGPT2 struct {
	ModelType  string  `yaml:"model_type" doc:"gpt2"`
	Vocab      int     `yaml:"vocab_size" min:"1" doc:"50257 if absent"`
	Positions  int     `yaml:"n_positions" min:"1" doc:"rows of the position table; 1024 if absent"`
	Hidden     int     `yaml:"n_embd" min:"1" doc:"768 if absent"`
	Layers     int     `yaml:"n_layer" min:"1" doc:"12 if absent"`
	Heads      int     `yaml:"n_head" min:"1" doc:"12 if absent"`
	Inner      int     `yaml:"n_inner" min:"1" doc:"4·n_embd if absent"`
	Activation string  `yaml:"activation_function" enum:"gelu_new,gelu_pytorch_tanh,gelu,silu,swish,relu" doc:"gelu_new if absent"`
	Resid      float64 `yaml:"resid_pdrop" min:"0" under:"1" doc:"0.1 if absent"`
	Embd       float64 `yaml:"embd_pdrop" min:"0" under:"1" doc:"0.1 if absent"`
	Attn       float64 `yaml:"attn_pdrop" min:"0" under:"1" doc:"0.1 if absent"`
	NormEps    float64 `yaml:"layer_norm_epsilon" over:"0" doc:"1e-5 if absent"`
	InitStd    float64 `yaml:"initializer_range" min:"0" doc:"0.02 if absent"`
	Tied       bool    `yaml:"tie_word_embeddings" doc:"true if absent"`
	Scale      bool    `yaml:"scale_attn_weights" now:"true" doc:"true"`
	ByLayer    bool    `yaml:"scale_attn_by_inverse_layer_idx" now:"false" doc:"false"`
	Upcast     bool    `yaml:"reorder_and_upcast_attn" now:"false" doc:"false"`
	Cross      bool    `yaml:"add_cross_attention" now:"false" doc:"false"`
}

// hfLlama is config.json of model_type llama, in the hub's spelling and that of transformers 5.
type hfLlama struct {
	ModelType     string  `yaml:"model_type" doc:"llama"`
	Vocab         int     `yaml:"vocab_size" min:"1" doc:"32000 if absent"`
	Hidden        int     `yaml:"hidden_size" min:"1" doc:"4096 if absent"`
	FFN           int     `yaml:"intermediate_size" min:"1" doc:"11008 if absent"`
	Layers        int     `yaml:"num_hidden_layers" min:"1" doc:"32 if absent"`
	Heads         int     `yaml:"num_attention_heads" min:"1" doc:"32 if absent"`
	KVHeads       int     `yaml:"num_key_value_heads" min:"1" doc:"num_attention_heads if absent"`
	HeadDim       int     `yaml:"head_dim" min:"1" doc:"hidden_size / num_attention_heads if absent"`
	Activation    string  `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu,relu" doc:"silu if absent"`
	Positions     int     `yaml:"max_position_embeddings" min:"1" doc:"2048 if absent"`
	InitStd       float64 `yaml:"initializer_range" min:"0" doc:"0.02 if absent"`
	NormEps       float64 `yaml:"rms_norm_eps" over:"0" doc:"1e-6 if absent"`
	Tied          bool    `yaml:"tie_word_embeddings" doc:"false if absent"`
	AttentionBias bool    `yaml:"attention_bias" doc:"false if absent"`
	MLPBias       bool    `yaml:"mlp_bias" doc:"false if absent"`
	Dropout       float64 `yaml:"attention_dropout" min:"0" under:"1" doc:"0 if absent"`
	Theta         float64 `yaml:"rope_theta" over:"0" doc:"10000 if absent"`
	Scaling       hfRope  `yaml:"rope_scaling" doc:"the hub's spelling"`
	Parameters    hfRope  `yaml:"rope_parameters" doc:"the spelling of transformers 5"`
}

// hfRope is rope_scaling or rope_parameters.
type hfRope struct {
	Theta    float64 `yaml:"rope_theta" over:"0" doc:"in rope_parameters"`
	Kind     string  `yaml:"rope_type" enum:"default,linear,llama3,dynamic,yarn,longrope,proportional" now:"default,linear,llama3" doc:"how positions are stretched"`
	OldKind  string  `yaml:"type" enum:"default,linear,llama3,dynamic,yarn,longrope,proportional" now:"default,linear,llama3" doc:"rope_type's older name"`
	Factor   float64 `yaml:"factor" min:"1" doc:"of stretching"`
	LowFreq  float64 `yaml:"low_freq_factor" over:"0" doc:"llama3"`
	HighFreq float64 `yaml:"high_freq_factor" over:"0" doc:"llama3"`
	Original int     `yaml:"original_max_position_embeddings" min:"1" doc:"llama3"`
}

var activations = map[string]string{
	"gelu_new": "gelu_new", "gelu_pytorch_tanh": "gelu_new", "gelu": "gelu", "silu": "silu", "swish": "silu", "relu": "relu",
}

func gpt2Config(d *strict.Doc, diags *ir.Diags) *Config {
	hf := hfGPT2{Vocab: 50257, Positions: 1024, Hidden: 768, Layers: 12, Heads: 12, Activation: "gelu_new", Resid: 0.1, Embd: 0.1,
		Attn: 0.1, NormEps: 1e-5, InitStd: 0.02, Tied: true, Scale: true}
	*diags = append(*diags, d.Decode(&hf)...)
	if hf.Inner == 0 && !d.Has("n_inner") {
		hf.Inner = 4 * hf.Hidden
	}
	return &Config{Family: GPT2, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads, KVHeads: hf.Heads, FFN: hf.Inner,
		MaxPositions: hf.Positions, Activation: activations[hf.Activation], NormEps: hf.NormEps, InitStd: hf.InitStd, Tied: hf.Tied,
		DropEmbd: hf.Embd, DropResid: hf.Resid, DropAttn: hf.Attn, AttentionBias: true, MLPBias: true}
}

var gpt2Keys = keys{vocab: "vocab_size", hidden: "n_embd", layers: "n_layer", heads: "n_head", ffn: "n_inner", positions: "n_positions"}

func llamaConfig(d *strict.Doc, diags *ir.Diags) *Config {
	hf := hfLlama{Vocab: 32000, Hidden: 4096, FFN: 11008, Layers: 32, Heads: 32, Activation: "silu", Positions: 2048, InitStd: 0.02, NormEps: 1e-6}
	*diags = append(*diags, d.Decode(&hf)...)
	if !d.Has("num_key_value_heads") {
		hf.KVHeads = hf.Heads
	}
	c := &Config{Family: Llama, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads, KVHeads: hf.KVHeads,
		HeadDim: hf.HeadDim, FFN: hf.FFN, MaxPositions: hf.Positions, Activation: activations[hf.Activation], NormEps: hf.NormEps,
		InitStd: hf.InitStd, Tied: hf.Tied, DropAttn: hf.Dropout, AttentionBias: hf.AttentionBias, MLPBias: hf.MLPBias}
	rope(c, &hf, d, diags)
	return c
}

var llamaKeys = keys{vocab: "vocab_size", hidden: "hidden_size", layers: "num_hidden_layers", heads: "num_attention_heads",
	kvHeads: "num_key_value_heads", headDim: "head_dim", ffn: "intermediate_size", positions: "max_position_embeddings"}

// rope reads whichever spelling is there.
func rope(c *Config, hf *hfLlama, d *strict.Doc, diags *ir.Diags) {
	r, at := hf.Scaling, "rope_scaling"
	c.RopeTheta = hf.Theta
	if d.Has("rope_parameters") {
		if d.Has("rope_scaling") {
			diags.Addf(d.Pos("rope_scaling"), Conflict, "rope_scaling and rope_parameters are both given; they are two spellings of one thing")
		}
		if hf.Theta != 0 && hf.Parameters.Theta != 0 && hf.Theta != hf.Parameters.Theta {
			diags.Addf(d.Pos("rope_theta"), Conflict, "rope_theta is %v, and rope_parameters.rope_theta is %v", hf.Theta, hf.Parameters.Theta)
		}
		r, at = hf.Parameters, "rope_parameters"
	}
	if r.Theta != 0 {
		c.RopeTheta = r.Theta
	}
	if c.RopeTheta == 0 {
		c.RopeTheta = 10000
	}
	kind := strings.TrimSpace(r.Kind + " " + r.OldKind)
	if r.Kind == r.OldKind {
		kind = r.Kind
	}
	switch kind {
	case "", "default":
		if r.Factor > 1 {
			diags.Addf(d.Pos(at), Missing, "%s has a factor and no rope_type", at)
		}
		return
	case "linear":
		c.RopeScaling = RopeScaling{Kind: "linear", Factor: r.Factor}
	case "llama3":
		c.RopeScaling = RopeScaling{"llama3", r.Factor, r.LowFreq, r.HighFreq, r.Original}
		if r.LowFreq == 0 || r.Original == 0 || r.HighFreq <= r.LowFreq {
			diags.Addf(d.Pos(at), BadModel, "%s llama3 wants low_freq_factor, a larger high_freq_factor, and original_max_position_embeddings", at)
		}
	}
	if r.Factor == 0 {
		diags.Addf(d.Pos(at), Missing, "%s has no factor", at)
	}
}
