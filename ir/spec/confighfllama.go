package spec

// hfLlama is config.json of model_type llama.
type hfLlama struct {
	hfDecoder
	Activation    string `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the gate projection"`
	AttentionBias bool   `yaml:"attention_bias" doc:"attention projections have biases"`
	MLPBias       bool   `yaml:"mlp_bias" doc:"MLP projections have biases"`
	Parameters    hfRope `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
}

var llamaDefaults = hfLlama{hfDecoder: hfDecoder{ModelType: Llama, Vocab: 32000, Hidden: 4096, FFN: 11008,
	Layers: 32, Heads: 32,
	Positions: 2048, InitStd: 0.02, NormEps: 1e-6}, Activation: "silu"}

var decoderSizes = keys{vocab: "vocab_size", hidden: "hidden_size", layers: "num_hidden_layers",
	heads:   "num_attention_heads",
	kvHeads: "num_key_value_heads", headDim: "head_dim", ffn: "intermediate_size", positions: "max_position_embeddings"}

// decoder reads the keys that Llama's descendants share.
func (s *source) decoder(family string, hf *hfDecoder, activation string) *Config {
	kv := hf.KVHeads
	if kv == 0 && !s.Has("num_key_value_heads") {
		kv = hf.Heads
	}
	return &Config{Family: family, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads, KVHeads: kv,
		HeadDim: hf.HeadDim,
		FFN:     hf.FFN, MaxPositions: hf.Positions, Activation: activations[activation], NormEps: hf.NormEps,
		InitStd: hf.InitStd,
		Tied:    hf.Tied, DropAttn: hf.Dropout, EmbedScale: 1}
}

// withRope reads the RoPE parameters of a decoder whose layers are all alike.
func (s *source) withRope(c *Config, hf *hfDecoder, parameters hfRope) *Config {
	s.rope(c, ropeKeys{theta: "rope_theta", base: hf.Theta, scaling: hf.Scaling, parameters: parameters})
	return c
}

func llamaConfig(s *source, hf *hfLlama) *Config {
	c := s.decoder(Llama, &hf.hfDecoder, hf.Activation)
	c.AttentionBias, c.QKVBias, c.MLPBias = hf.AttentionBias, hf.AttentionBias, hf.MLPBias
	return s.withRope(c, &hf.hfDecoder, hf.Parameters)
}

// hfMistral is config.json of model_type mistral.
type hfMistral struct {
	hfDecoder
	Activation string `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the gate projection"`
	Window     int    `yaml:"sliding_window" min:"1" max:"134217728" null:"none" doc:"number of keys that a query sees"`
	Parameters hfRope `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
}

var mistralDefaults = hfMistral{hfDecoder: hfDecoder{ModelType: Mistral, Vocab: 32000, Hidden: 4096, FFN: 14336,
	Layers: 32, Heads: 32, KVHeads: 8,
	Positions: 4096 * 32, InitStd: 0.02, NormEps: 1e-6}, Activation: "silu", Window: 4096}

func mistralConfig(s *source, hf *hfMistral) *Config {
	c := s.decoder(Mistral, &hf.hfDecoder, hf.Activation)
	c.Window = hf.Window
	return s.withRope(c, &hf.hfDecoder, hf.Parameters)
}

// hfQwen are the keys that Qwen's families share. The families differ in which layers use_sliding_window gives a
// window.
type hfQwen struct {
	hfDecoder
	hfWindows
	Activation string `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the gate projection"`
	UseWindow  bool   `yaml:"use_sliding_window" doc:"sliding_window is used"`
	Parameters hfRope `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
}

// hfQwenDense are the keys that qwen2 and qwen3 share.
type hfQwenDense struct {
	hfQwen
	FullLayers int `yaml:"max_window_layers" min:"0" max:"1024" doc:"leading layers without a window, unless layer_types is given"`
}

type hfQwen2 struct{ hfQwenDense }

// hfQwen3 is config.json of model_type qwen3.
type hfQwen3 struct {
	hfQwenDense
	AttentionBias bool `yaml:"attention_bias" doc:"attention projections have biases"`
}

func newQwenDefaults(family string, headDim int) hfQwen {
	return hfQwen{hfDecoder: hfDecoder{ModelType: family, Vocab: 151936, Hidden: 4096, FFN: 22016, Layers: 32,
		Heads: 32, KVHeads: 32, HeadDim: headDim,
		Positions: 32768, InitStd: 0.02, NormEps: 1e-6}, hfWindows: hfWindows{Window: 4096}, Activation: "silu"}
}

// windowLayers is the default of max_window_layers in all of Qwen's families.
const windowLayers = 28

var (
	qwen2Defaults = hfQwen2{hfQwenDense{newQwenDefaults(Qwen2, 0), windowLayers}}
	qwen3Defaults = hfQwen3{hfQwenDense: hfQwenDense{newQwenDefaults(Qwen3, 128), windowLayers}}
)

// qwen reads the keys that Qwen's families share. local reports which layers have a window if layer_types is absent.
func (s *source) qwen(family string, hf *hfQwen, local func(layer int) bool) *Config {
	c := s.decoder(family, &hf.hfDecoder, hf.Activation)
	w := hf.hfWindows
	if !hf.UseWindow {
		w.Window, w.unused = 0, "use_sliding_window is false"
	}
	s.windows(c, w, func(layer int) bool { return hf.UseWindow && local(layer) })
	return s.withRope(c, &hf.hfDecoder, hf.Parameters)
}

// qwenDense reads qwen2 and qwen3. In these families a null sliding_window means no window, and 0 means a window that
// sees nothing.
func (s *source) qwenDense(family string, hf *hfQwenDense) *Config {
	window := hf.Window > 0 || s.Has("sliding_window")
	return s.qwen(family, &hf.hfQwen, func(layer int) bool { return window && layer >= hf.FullLayers })
}

func qwen2Config(s *source, hf *hfQwen2) *Config {
	c := s.qwenDense(Qwen2, &hf.hfQwenDense)
	c.QKVBias = true
	return c
}

func qwen3Config(s *source, hf *hfQwen3) *Config {
	c := s.qwenDense(Qwen3, &hf.hfQwenDense)
	c.AttentionBias, c.QKVBias, c.QKNorm = hf.AttentionBias, hf.AttentionBias, true
	return c
}

// hfPhi3 is config.json of model_type phi3.
type hfPhi3 struct {
	hfDecoder
	Activation     string  `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the gate projection"`
	Resid          float64 `yaml:"resid_pdrop" min:"0" under:"1" doc:"dropout of each block's output before the residual sum"`
	Embd           float64 `yaml:"embd_pdrop" min:"0" under:"1" doc:"dropout of the embeddings; transformers reads the key but does not apply it"`
	Original       int     `yaml:"original_max_position_embeddings" min:"1" max:"134217728" doc:"sequence length of the original training"`
	Window         int     `yaml:"sliding_window" min:"1" max:"134217728" null:"none" doc:"number of keys that a query sees"`
	RotaryFraction float64 `yaml:"partial_rotary_factor" over:"0" max:"1" doc:"rotated fraction of a head; 1 if absent"`
	Bias           bool    `yaml:"attention_bias" now:"false" doc:"false"`
	Parameters     hfRope  `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
}

var phi3Defaults = hfPhi3{hfDecoder: hfDecoder{ModelType: Phi3, Vocab: 32064, Hidden: 3072, FFN: 8192,
	Layers: 32, Heads: 32,
	Positions: 4096, InitStd: 0.02, NormEps: 1e-5}, Activation: "silu", Original: 4096}

func phi3Config(s *source, hf *hfPhi3) *Config {
	c := s.decoder(Phi3, &hf.hfDecoder, hf.Activation)
	c.DropResid, c.Window = hf.Resid, hf.Window
	s.rope(c, ropeKeys{theta: "rope_theta", base: hf.Theta, fraction: hf.RotaryFraction, defaultFraction: 1,
		canRotatePart: true, long: true, original: hf.Original, scaling: hf.Scaling, parameters: hf.Parameters})
	return c
}
