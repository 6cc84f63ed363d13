package spec

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// hfRope is rope_scaling or rope_parameters.
type hfRope struct {
	Theta          float64   `yaml:"rope_theta" over:"0" doc:"base of the rotary frequencies, in rope_parameters"`
	RotaryFraction float64   `yaml:"partial_rotary_factor" over:"0" max:"1" doc:"phi3, gpt_neox: rotated fraction of a head, in rope_parameters"`
	Kind           string    `yaml:"rope_type" enum:"default,linear,llama3,dynamic,yarn,longrope,su,proportional" now:"default,linear,llama3,dynamic,yarn,longrope,su" doc:"kind of scaling"`
	OldKind        string    `yaml:"type" enum:"default,linear,llama3,dynamic,yarn,longrope,su,proportional" now:"default,linear,llama3,dynamic,yarn,longrope,su" doc:"old name of rope_type"`
	Factor         float64   `yaml:"factor" min:"1" doc:"scaling factor"`
	LowFreq        float64   `yaml:"low_freq_factor" over:"0" doc:"llama3"`
	HighFreq       float64   `yaml:"high_freq_factor" over:"0" doc:"llama3"`
	Original       int       `yaml:"original_max_position_embeddings" min:"1" max:"134217728" doc:"llama3, yarn, longrope: sequence length of the original training"`
	BetaFast       float64   `yaml:"beta_fast" over:"0" doc:"yarn; 32 if absent"`
	BetaSlow       float64   `yaml:"beta_slow" over:"0" doc:"yarn; 1 if absent"`
	Attention      float64   `yaml:"attention_factor" over:"0" doc:"yarn, longrope: factor of cos and sin; if absent, it follows from factor"`
	MScale         float64   `yaml:"mscale" over:"0" doc:"yarn"`
	MScaleAll      float64   `yaml:"mscale_all_dim" over:"0" doc:"yarn"`
	Truncate       *bool     `yaml:"truncate" doc:"yarn: the ramp starts and ends at whole pairs; true if absent"`
	Short          []float64 `yaml:"short_factor" over:"0" doc:"longrope: factor of each pair, for sequences up to the original length"`
	Long           []float64 `yaml:"long_factor" over:"0" doc:"longrope: factor of each pair, for longer sequences"`
}

// ropeKeys are the keys of a family's config.json that describe rotary positions.
type ropeKeys struct {
	theta           string  // key of the base
	base            float64 // value of that key, 0 if absent
	defaultBase     float64 // default of the base; 0 means 10000
	fraction        float64 // rotated fraction of a head, 0 if absent
	defaultFraction float64 // default of the fraction; 0 means 1
	canRotatePart   bool    // transformers supports rotating a fraction of a head in this family
	long            bool    // phi3: all kinds except default are longrope, whatever their name
	original        int     // original length, if its key is outside of rope_scaling
	scaling         hfRope
	parameters      hfRope
	inner           string // path of the parameters in rope_parameters
}

// rope reads the spelling that config.json uses.
func (s *source) rope(c *Config, k ropeKeys) {
	r, at := k.scaling, "rope_scaling"
	if s.Has("rope_parameters") {
		if s.Has("rope_scaling") {
			s.diags.Addf(s.Pos("rope_scaling"), Conflict,
				"rope_scaling and rope_parameters are both given, which are two spellings of the same "+
					"settings: remove one")
		}
		if k.base != 0 && k.parameters.Theta != 0 && k.base != k.parameters.Theta {
			s.diags.Addf(s.Pos(k.theta), Conflict,
				"%s is %v, but rope_parameters%s.rope_theta is %v: remove one", k.theta, k.base,
				k.inner, k.parameters.Theta)
		}
		r, at = k.parameters, "rope_parameters"+k.inner
	}
	c.RopeTheta = first(r.Theta, k.base, k.defaultBase, 10000)
	if !k.canRotatePart && r.RotaryFraction != 0 && r.RotaryFraction != 1 {
		s.diags.Addf(s.Pos(at+".partial_rotary_factor"), BadModel,
			"%s.partial_rotary_factor is %v, but transformers always rotates whole heads in %s: remove it",
			at, r.RotaryFraction, c.Family)
		r.RotaryFraction = 1
	}
	c.rotary = first(r.RotaryFraction, k.fraction, k.defaultFraction, 1)
	if k.original != 0 {
		r.Original = k.original
	}
	c.RopeScaling = s.scaling(c, r, at, k.long)
}

func first(xs ...float64) float64 {
	i := slices.IndexFunc(xs, func(x float64) bool { return x != 0 })
	return xs[i]
}

// scaling returns the scaling in rope_scaling or rope_parameters; at is the key that was read.
func (s *source) scaling(c *Config, r hfRope, at string, long bool) RopeScaling {
	kind := r.Kind
	if kind == "" {
		kind = r.OldKind
	}
	if r.OldKind != "" && r.OldKind != kind {
		s.diags.Addf(s.Pos(at+".type"), Conflict, "%s.type is %s, but rope_type is %s: remove one", at, r.OldKind, kind)
	}
	if kind == "" || kind == "default" {
		if r.Factor > 1 {
			s.diags.Addf(s.Pos(at), Missing, "%s has a factor but no rope_type", at)
		}
		return RopeScaling{}
	}
	if long {
		kind = s.longKind(c, kind, at)
	}
	read, ok := ropeKinds[kind]
	if !ok { // the kind was reported already
		return RopeScaling{}
	}
	return read(s, c, r, at)
}

// longKind returns longrope, which files of phi3 also call su or yarn. The family has no other kind.
func (s *source) longKind(c *Config, kind, at string) string {
	if slices.Contains([]string{"longrope", "su", "yarn"}, kind) {
		return "longrope"
	}
	s.diags.Addf(s.Pos(at), BadModel, "%s is %s; %s supports only the types default and longrope (also spelled "+
		"su and yarn)", at, kind, c.Family)
	return ""
}

// ropeKinds maps the kinds of scaling in config.json to their readers.
var ropeKinds = map[string]func(s *source, c *Config, r hfRope, at string) RopeScaling{
	"linear": func(s *source, c *Config, r hfRope, at string) RopeScaling {
		return RopeScaling{RopeScaling: ir.RopeScaling{Kind: "linear", Factor: s.factor(r, at)}}
	},
	"dynamic": func(s *source, c *Config, r hfRope, at string) RopeScaling {
		return RopeScaling{RopeScaling: ir.RopeScaling{Kind: "dynamic", Factor: s.factor(r, at),
			Original: c.MaxPositions}}
	},
	"llama3": func(s *source, c *Config, r hfRope, at string) RopeScaling {
		if r.LowFreq == 0 || r.HighFreq <= r.LowFreq {
			s.diags.Addf(s.Pos(at), BadModel, "%s llama3 needs low_freq_factor and a larger high_freq_factor", at)
		}
		return RopeScaling{RopeScaling: ir.RopeScaling{Kind: "llama3", Factor: s.factor(r, at), LowFreq: r.LowFreq,
			HighFreq: r.HighFreq, Original: r.original(c)}}
	},
	"yarn":     yarn,
	"longrope": longRope,
	"su": func(s *source, _ *Config, _ hfRope, at string) RopeScaling {
		s.diags.Addf(s.Pos(at), BadModel, "%s is su, an old name of longrope that only phi3 accepts: use "+
			"longrope",
			at)
		return RopeScaling{}
	},
}

// factor returns the factor, which is required.
func (s *source) factor(r hfRope, at string) float64 {
	if r.Factor == 0 {
		s.diags.Addf(s.Pos(at), Missing, "%s has no factor", at)
	}
	return r.Factor
}

// original returns the sequence length of the original training. Its default is max_position_embeddings.
func (r hfRope) original(c *Config) int {
	if r.Original == 0 {
		return max(c.MaxPositions, 1)
	}
	return r.Original
}

func yarn(s *source, c *Config, r hfRope, at string) RopeScaling {
	fast, slow := first(r.BetaFast, 32), first(r.BetaSlow, 1)
	if fast < slow {
		s.diags.Addf(s.Pos(at), BadModel, "%s yarn has beta_fast %v, which must not be below beta_slow %v",
			at, fast, slow)
	}
	factor := s.factor(r, at)
	return RopeScaling{RopeScaling: ir.RopeScaling{Kind: "yarn", Factor: factor, BetaFast: fast, BetaSlow: slow,
		Original:  r.original(c),
		Attention: first(r.Attention, ir.YarnAttention(factor, r.MScale, r.MScaleAll)),
		Exact:     r.Truncate != nil && !*r.Truncate}}
}

func longRope(s *source, c *Config, r hfRope, at string) RopeScaling {
	if len(r.Short) == 0 || len(r.Long) == 0 {
		s.diags.Addf(s.Pos(at), Missing,
			"%s longrope needs short_factor and long_factor, each with one number for each rotated pair of a "+
				"head", at)
	}
	original := r.original(c)
	factor := first(r.Factor, float64(c.MaxPositions)/float64(original), 1)
	return RopeScaling{Long: r.Long, RopeScaling: ir.RopeScaling{Kind: "longrope", Original: original, Factors: r.Short,
		Attention: first(r.Attention, ir.LongRopeAttention(factor, original))}}
}
