package spec

// hfGPT2 is config.json of model_type gpt2.
type hfGPT2 struct {
	ModelType  string  `yaml:"model_type" doc:"the family"`
	Vocab      int     `yaml:"vocab_size" min:"1" max:"134217728" doc:"number of tokens, or of rows that the token table has"`
	Positions  int     `yaml:"n_positions" min:"1" max:"134217728" doc:"rows of the position table"`
	Hidden     int     `yaml:"n_embd" min:"1" max:"1048576" doc:"width of the residual stream"`
	Layers     int     `yaml:"n_layer" min:"1" max:"1024" doc:"number of blocks"`
	Heads      int     `yaml:"n_head" min:"1" max:"65536" doc:"number of heads"`
	Inner      int     `yaml:"n_inner" min:"1" max:"4194304" doc:"4·n_embd if absent"`
	Activation string  `yaml:"activation_function" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the MLP"`
	Resid      float64 `yaml:"resid_pdrop" min:"0" under:"1" doc:"dropout of each block's output before the residual sum"`
	Embd       float64 `yaml:"embd_pdrop" min:"0" under:"1" doc:"dropout of the embeddings"`
	Attn       float64 `yaml:"attn_pdrop" min:"0" under:"1" doc:"dropout of attention weights"`
	NormEps    float64 `yaml:"layer_norm_epsilon" over:"0" doc:"added to a norm's variance"`
	InitStd    float64 `yaml:"initializer_range" min:"0" doc:"standard deviation of initial weights"`
	Tied       bool    `yaml:"tie_word_embeddings" doc:"the output layer shares the weights of the embedding"`
	Bias       bool    `yaml:"bias" doc:"linear layers and norms have biases; nanoGPT's key, which transformers does not have"`
	Scale      bool    `yaml:"scale_attn_weights" now:"true" doc:"true"`
	ByLayer    bool    `yaml:"scale_attn_by_inverse_layer_idx" now:"false" doc:"false"`
	Upcast     bool    `yaml:"reorder_and_upcast_attn" now:"false" doc:"false"`
	Cross      bool    `yaml:"add_cross_attention" now:"false" doc:"false"`
}

var gpt2Defaults = hfGPT2{ModelType: GPT2, Vocab: 50257, Positions: 1024, Hidden: 768, Layers: 12, Heads: 12,
	Activation: "gelu_new",
	Resid:      0.1, Embd: 0.1, Attn: 0.1, NormEps: 1e-5, InitStd: 0.02, Tied: true, Bias: true, Scale: true}

var gpt2Sizes = keys{vocab: "vocab_size", hidden: "n_embd", layers: "n_layer", heads: "n_head", ffn: "n_inner",
	positions: "n_positions"}

func gpt2Config(s *source, hf *hfGPT2) *Config {
	if hf.Inner == 0 && !s.Has("n_inner") {
		hf.Inner = 4 * hf.Hidden
	}
	return &Config{Family: GPT2, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads,
		KVHeads: hf.Heads, FFN: hf.Inner,
		MaxPositions: hf.Positions, Activation: activations[hf.Activation], NormEps: hf.NormEps, InitStd: hf.InitStd,
		Tied:     hf.Tied,
		DropEmbd: hf.Embd, DropResid: hf.Resid, DropAttn: hf.Attn, AttentionBias: hf.Bias, QKVBias: hf.Bias,
		MLPBias: hf.Bias, BiasFreeNorm: !hf.Bias, EmbedScale: 1}
}

// hfOPT is config.json of model_type opt.
type hfOPT struct {
	ModelType   string  `yaml:"model_type" doc:"the family"`
	Vocab       int     `yaml:"vocab_size" min:"1" max:"134217728" doc:"number of tokens, or of rows that the token table has"`
	Hidden      int     `yaml:"hidden_size" min:"1" max:"1048576" doc:"width of the residual stream"`
	EmbedDim    int     `yaml:"word_embed_proj_dim" min:"1" max:"1048576" doc:"width of the token table; hidden_size if absent"`
	Layers      int     `yaml:"num_hidden_layers" min:"1" max:"1024" doc:"number of blocks"`
	Heads       int     `yaml:"num_attention_heads" min:"1" max:"65536" doc:"number of heads"`
	FFN         int     `yaml:"ffn_dim" min:"1" max:"4194304" doc:"width of the MLP's hidden layer"`
	Positions   int     `yaml:"max_position_embeddings" min:"1" max:"134217728" doc:"number of positions; the table has two rows more"`
	NormBefore  bool    `yaml:"do_layer_norm_before" doc:"norms precede attention and MLP, instead of following them"`
	NoFinalNorm bool    `yaml:"_remove_final_layer_norm" now:"false" doc:"false"`
	Activation  string  `yaml:"activation_function" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the MLP"`
	Dropout     float64 `yaml:"dropout" min:"0" under:"1" doc:"dropout of each block's output before the residual sum"`
	Attn        float64 `yaml:"attention_dropout" min:"0" under:"1" doc:"dropout of attention weights"`
	LayerDrop   float64 `yaml:"layerdrop" now:"0" doc:"0"`
	InitStd     float64 `yaml:"init_std" min:"0" doc:"standard deviation of initial weights"`
	Tied        bool    `yaml:"tie_word_embeddings" doc:"the output layer shares the weights of the embedding"`
	Bias        bool    `yaml:"enable_bias" now:"true" doc:"true"`
	Affine      bool    `yaml:"layer_norm_elementwise_affine" now:"true" doc:"true"`
}

var optDefaults = hfOPT{ModelType: OPT, Vocab: 50272, Hidden: 768, Layers: 12, Heads: 12, FFN: 3072, Positions: 2048,
	NormBefore: true,
	Activation: "relu", Dropout: 0.1, InitStd: 0.02, Tied: true, Bias: true, Affine: true}

var optSizes = keys{vocab: "vocab_size", hidden: "hidden_size", layers: "num_hidden_layers",
	heads: "num_attention_heads",
	ffn:   "ffn_dim", positions: "max_position_embeddings"}

func optConfig(_ *source, hf *hfOPT) *Config {
	c := &Config{Family: OPT, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads,
		KVHeads: hf.Heads, FFN: hf.FFN,
		MaxPositions: hf.Positions, PositionOffset: 2, Activation: activations[hf.Activation], NormEps: 1e-5,
		InitStd: hf.InitStd,
		Tied:    hf.Tied, DropResid: hf.Dropout, DropAttn: hf.Attn, AttentionBias: true, QKVBias: true, MLPBias: true,
		PostNorm: !hf.NormBefore, EmbedScale: 1}
	if hf.EmbedDim != hf.Hidden {
		c.EmbedDim = hf.EmbedDim
	}
	return c
}

// hfBloom is config.json of model_type bloom, in which three sizes have two names each.
type hfBloom struct {
	ModelType string  `yaml:"model_type" doc:"the family"`
	Vocab     int     `yaml:"vocab_size" min:"1" max:"134217728" doc:"number of tokens, or of rows that the token table has"`
	Hidden    int     `yaml:"hidden_size" min:"1" max:"1048576" doc:"width of the residual stream"`
	NEmbed    int     `yaml:"n_embed" min:"1" max:"1048576" doc:"old name of hidden_size"`
	Layers    int     `yaml:"n_layer" min:"1" max:"1024" doc:"number of blocks"`
	NumLayers int     `yaml:"num_hidden_layers" min:"1" max:"1024" doc:"other name of n_layer"`
	Heads     int     `yaml:"n_head" min:"1" max:"65536" doc:"number of heads"`
	NumHeads  int     `yaml:"num_attention_heads" min:"1" max:"65536" doc:"other name of n_head"`
	NormEps   float64 `yaml:"layer_norm_epsilon" over:"0" doc:"added to a norm's variance"`
	InitStd   float64 `yaml:"initializer_range" min:"0" doc:"standard deviation of initial weights"`
	AfterNorm bool    `yaml:"apply_residual_connection_post_layernorm" now:"false" doc:"false"`
	Dropout   float64 `yaml:"hidden_dropout" min:"0" under:"1" doc:"dropout of each block's output before the residual sum"`
	Attn      float64 `yaml:"attention_dropout" min:"0" under:"1" doc:"dropout of attention weights"`
	Tied      bool    `yaml:"tie_word_embeddings" doc:"the output layer shares the weights of the embedding"`
	Seq       int     `yaml:"seq_length" min:"1" max:"134217728" doc:"sequence length that the model was trained for"`
}

var bloomDefaults = hfBloom{ModelType: Bloom, Vocab: 250880, Hidden: 64, Layers: 2, Heads: 8, NormEps: 1e-5,
	InitStd: 0.02, Tied: true}

var bloomSizes = keys{vocab: "vocab_size", hidden: "hidden_size|n_embed", layers: "n_layer|num_hidden_layers",
	heads: "n_head|num_attention_heads", positions: "seq_length"}

func bloomConfig(s *source, hf *hfBloom) *Config {
	hf.Hidden, hf.NEmbed = s.either("hidden_size", hf.Hidden, "n_embed", hf.NEmbed), 0
	hf.Layers, hf.NumLayers = s.either("n_layer", hf.Layers, "num_hidden_layers", hf.NumLayers), 0
	hf.Heads, hf.NumHeads = s.either("n_head", hf.Heads, "num_attention_heads", hf.NumHeads), 0
	return &Config{Family: Bloom, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads,
		KVHeads: hf.Heads, FFN: 4 * hf.Hidden,
		MaxPositions: hf.Seq, Activation: "gelu_new", NormEps: hf.NormEps, InitStd: hf.InitStd, Tied: hf.Tied,
		DropResid: hf.Dropout, DropAttn: hf.Attn,
		AttentionBias: true, QKVBias: true, MLPBias: true, EmbedNorm: true, EmbedScale: 1}
}

// either returns a size that has two names, and reports two different values.
func (s *source) either(key string, n int, other string, m int) int {
	if s.Has(key) && s.Has(other) && n != m {
		s.diags.Addf(s.Pos(other), Conflict, "%s is %d, but %s, another name of the same size, is %d: remove "+
			"one of them", key, n, other, m)
	}
	if s.Has(other) {
		return m
	}
	return n
}

// hfNeoX is config.json of model_type gpt_neox.
type hfNeoX struct {
	ModelType      string  `yaml:"model_type" doc:"the family"`
	Vocab          int     `yaml:"vocab_size" min:"1" max:"134217728" doc:"number of tokens, or of rows that the token table has"`
	Hidden         int     `yaml:"hidden_size" min:"1" max:"1048576" doc:"width of the residual stream"`
	Layers         int     `yaml:"num_hidden_layers" min:"1" max:"1024" doc:"number of blocks"`
	Heads          int     `yaml:"num_attention_heads" min:"1" max:"65536" doc:"number of heads"`
	FFN            int     `yaml:"intermediate_size" min:"1" max:"4194304" doc:"width of the MLP's hidden layer"`
	Activation     string  `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the MLP"`
	Attn           float64 `yaml:"attention_dropout" min:"0" under:"1" doc:"dropout of attention weights"`
	Dropout        float64 `yaml:"hidden_dropout" min:"0" under:"1" doc:"dropout of the embeddings and of each block's output before the residual sum"`
	Positions      int     `yaml:"max_position_embeddings" min:"1" max:"134217728" doc:"sequence length that the model was trained for"`
	InitStd        float64 `yaml:"initializer_range" min:"0" doc:"standard deviation of initial weights"`
	NormEps        float64 `yaml:"layer_norm_eps" over:"0" doc:"added to a norm's variance"`
	Tied           bool    `yaml:"tie_word_embeddings" doc:"the output layer shares the weights of the embedding"`
	Parallel       bool    `yaml:"use_parallel_residual" doc:"attention and MLP read the same residual, and both results are added to it"`
	Bias           bool    `yaml:"attention_bias" doc:"attention projections have biases"`
	RotaryFraction float64 `yaml:"rotary_pct" over:"0" max:"1" doc:"rotated fraction of a head; 0.25 if absent"`
	Theta          float64 `yaml:"rotary_emb_base" over:"0" doc:"base of the rotary frequencies; 10000 if absent"`
	Scaling        hfRope  `yaml:"rope_scaling" doc:"scaling of rotary positions, in the spelling of transformers 4"`
	Parameters     hfRope  `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
}

var neoxDefaults = hfNeoX{ModelType: GPTNeoX, Vocab: 50432, Hidden: 6144, Layers: 44, Heads: 64, FFN: 24576,
	Activation: "gelu",
	Positions:  2048, InitStd: 0.02, NormEps: 1e-5, Parallel: true, Bias: true}

// oldSizes are the keys of gpt_neox and bert.
var oldSizes = keys{vocab: "vocab_size", hidden: "hidden_size", layers: "num_hidden_layers",
	heads: "num_attention_heads",
	ffn:   "intermediate_size", positions: "max_position_embeddings"}

func neoxConfig(s *source, hf *hfNeoX) *Config {
	c := &Config{Family: GPTNeoX, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads,
		KVHeads: hf.Heads, FFN: hf.FFN,
		MaxPositions: hf.Positions, Activation: activations[hf.Activation], NormEps: hf.NormEps, InitStd: hf.InitStd,
		Tied:     hf.Tied,
		DropEmbd: hf.Dropout, DropResid: hf.Dropout, DropAttn: hf.Attn, AttentionBias: hf.Bias, QKVBias: hf.Bias,
		MLPBias:          true,
		ParallelResidual: hf.Parallel, EmbedScale: 1}
	s.rope(c, ropeKeys{theta: "rotary_emb_base", base: hf.Theta, fraction: hf.RotaryFraction,
		defaultFraction: 0.25, canRotatePart: true, scaling: hf.Scaling, parameters: hf.Parameters})
	return c
}
