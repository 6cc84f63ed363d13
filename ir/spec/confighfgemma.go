package spec

import (
	"math"

	"github.com/planc-dev/planc/ir"
)

// hfGemma are the keys that gemma2 and gemma3_text share.
type hfGemma struct {
	hfDecoder
	hfWindows
	Activation    string  `yaml:"hidden_activation" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the gate projection"`
	OldActivation string  `yaml:"hidden_act" now:"gelu_pytorch_tanh" doc:"old name of hidden_activation"`
	Bias          bool    `yaml:"attention_bias" doc:"attention projections have biases"`
	QueryScalar   float64 `yaml:"query_pre_attn_scalar" over:"0" doc:"scores are divided by its square root"`
	LogitCap      float64 `yaml:"final_logit_softcapping" over:"0" null:"none" doc:"soft cap of the logits"`
	ScoreCap      float64 `yaml:"attn_logit_softcapping" over:"0" null:"none" doc:"soft cap of the attention scores; gemma3_text has none"`
	BothWays      bool    `yaml:"use_bidirectional_attention" now:"false" doc:"false"`
}

// hfGemma2 is config.json of model_type gemma2.
type hfGemma2 struct {
	hfGemma
	Parameters hfRope `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
}

// hfGemma3 is config.json of model_type gemma3_text.
type hfGemma3 struct {
	hfGemma
	LocalTheta float64 `yaml:"rope_local_base_freq" over:"0" doc:"base of the rotary frequencies in local layers; 10000 if absent"`
	Pattern    int     `yaml:"sliding_window_pattern" min:"1" max:"1024" doc:"one layer in this many is full, unless layer_types is given"`
	Parameters hfRopes `yaml:"rope_parameters" doc:"RoPE parameters (key name since transformers 5)"`
}

// hfRopes is rope_parameters of a model whose local layers have their own.
type hfRopes struct {
	Full  hfRope `yaml:"full_attention" doc:"full layers"`
	Local hfRope `yaml:"sliding_attention" doc:"local layers"`
}

func newGemmaDefaults(family string, vocab, positions int) hfGemma {
	return hfGemma{hfDecoder: hfDecoder{ModelType: family, Vocab: vocab, Hidden: 2304, FFN: 9216, Layers: 26, Heads: 8,
		KVHeads: 4, HeadDim: 256,
		Positions: positions, InitStd: 0.02, NormEps: 1e-6, Tied: true}, hfWindows: hfWindows{Window: 4096},
		Activation: "gelu_pytorch_tanh", QueryScalar: 256}
}

var gemma2Defaults = func() hfGemma2 {
	hf := hfGemma2{hfGemma: newGemmaDefaults(Gemma2, 256000, 8192)}
	hf.LogitCap, hf.ScoreCap = 30, 50
	return hf
}()

var gemma3Defaults = hfGemma3{hfGemma: newGemmaDefaults(Gemma3, 262208, 131072), Pattern: 6}

// gemma reads the keys that both families share. full reports which layers are full if layer_types is absent.
func (s *source) gemma(family string, hf *hfGemma, full func(layer int) bool) *Config {
	c := s.decoder(family, &hf.hfDecoder, hf.Activation)
	c.AttentionBias, c.QKVBias, c.UnitNorm, c.SandwichNorm = hf.Bias, hf.Bias, true, true
	c.EmbedScale, c.QueryScale = math.Sqrt(float64(hf.Hidden)), 1/math.Sqrt(hf.QueryScalar)
	c.LogitSoftcap, c.AttentionSoftcap = hf.LogitCap, hf.ScoreCap
	s.windows(c, hf.hfWindows, func(layer int) bool { return !full(layer) })
	return c
}

func gemma2Config(s *source, hf *hfGemma2) *Config {
	c := s.gemma(Gemma2, &hf.hfGemma, func(layer int) bool { return layer%2 == 1 })
	return s.withRope(c, &hf.hfDecoder, hf.Parameters)
}

func gemma3Config(s *source, hf *hfGemma3) *Config {
	c := s.gemma(Gemma3, &hf.hfGemma, func(layer int) bool { return hf.Pattern > 0 && (layer+1)%hf.Pattern == 0 })
	c.QKNorm = true
	if hf.ScoreCap != 0 {
		s.diags.Addf(s.Pos("attn_logit_softcapping"), BadModel,
			"attn_logit_softcapping is %v, but gemma3_text does not cap attention scores: transformers reads "+
				"the key and ignores it; remove the key", hf.ScoreCap)
	}
	if hf.Scaling.OldKind != "" && hf.Scaling.Kind == "" {
		s.diags.Addf(s.Pos("rope_scaling.type"), BadModel,
			"rope_scaling.type is %s, but transformers reads only rope_scaling.rope_type for gemma3_text: rename "+
				"the key", hf.Scaling.OldKind)
	}
	s.rope(c, ropeKeys{theta: "rope_theta", base: hf.Theta, defaultBase: 1e6, scaling: hf.Scaling,
		parameters: hf.Parameters.Full, inner: ".full_attention"})
	local := Config{Family: Gemma3}
	s.rope(&local, ropeKeys{theta: "rope_local_base_freq", base: hf.LocalTheta, parameters: hf.Parameters.Local,
		inner: ".sliding_attention"})
	if local.RopeScaling.Kind != "" {
		s.diags.Addf(s.Pos("rope_parameters.sliding_attention"), BadModel,
			"rope_parameters.sliding_attention is %s; positions of local layers cannot be scaled: use "+
				"rope_type default",
			local.RopeScaling.Kind)
	}
	if c.Window > 0 {
		c.LocalTheta = local.RopeTheta
	}
	return c
}

// windows sets which layers are local: those of layer_types if it is given, otherwise those that usual reports.
func (s *source) windows(c *Config, hf hfWindows, usual func(layer int) bool) {
	if hf.miscounted(s, c.Layers) {
		return
	}
	local, some, all := make([]bool, max(0, min(c.Layers, 1<<14))), false, true
	for i := range local {
		local[i] = usual(i)
		if len(hf.Types) > 0 {
			local[i] = hf.Types[i] == "sliding_attention"
		}
		some, all = some || local[i], all && local[i]
	}
	if some && hf.Window == 0 {
		s.noWindow(hf)
	}
	if some {
		c.Window = hf.Window
	}
	if some && !all {
		c.Local = ir.LayersOf(local)
	}
}

// noWindow reports local layers of a model that has no window size.
func (s *source) noWindow(hf hfWindows) {
	which := "the family gives some layers a window"
	if len(hf.Types) > 0 {
		which = "layer_types has sliding_attention"
	}
	const full = "or set layer_types to full_attention for every layer"
	switch {
	case hf.unused != "":
		s.diags.Addf(s.Pos("layer_types"), Conflict, "%s, but %s: set use_sliding_window to true, %s", hf.unused,
			which, full)
	case s.Has("sliding_window"):
		s.diags.Addf(s.Pos("sliding_window"), BadModel, "sliding_window is 0, but %s: set it to 1 or more, %s",
			which, full)
	default:
		s.diags.Addf(s.Pos("sliding_window"), BadModel, "sliding_window is null, but %s: set it to 1 or more, %s",
			which, full)
	}
}

// miscounted reports a layer_types whose length is not the number of layers.
func (hf hfWindows) miscounted(s *source, layers int) bool {
	if n := len(hf.Types); hf.Types != nil && n != layers {
		s.diags.Addf(s.Pos("layer_types"), BadModel, "layer_types lists %d layers; the model has %d", n, layers)
		return true
	}
	return false
}
