package spec

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// hfRope is rope_scaling or rope_parameters.
type hfRope struct {
	Theta     float64   `yaml:"rope_theta" over:"0" doc:"base, in rope_parameters"`
	Part      float64   `yaml:"partial_rotary_factor" over:"0" max:"1" doc:"phi3, gpt_neox: part of a head that is turned, in rope_parameters"`
	Kind      string    `yaml:"rope_type" enum:"default,linear,llama3,dynamic,yarn,longrope,su,proportional" now:"default,linear,llama3,dynamic,yarn,longrope,su" doc:"how positions are stretched"`
	OldKind   string    `yaml:"type" enum:"default,linear,llama3,dynamic,yarn,longrope,su,proportional" now:"default,linear,llama3,dynamic,yarn,longrope,su" doc:"rope_type's older name"`
	Factor    float64   `yaml:"factor" min:"1" doc:"of stretching"`
	LowFreq   float64   `yaml:"low_freq_factor" over:"0" doc:"llama3"`
	HighFreq  float64   `yaml:"high_freq_factor" over:"0" doc:"llama3"`
	Original  int       `yaml:"original_max_position_embeddings" min:"1" max:"134217728" doc:"llama3, yarn, longrope: positions of the first training"`
	BetaFast  float64   `yaml:"beta_fast" over:"0" doc:"yarn; 32 if absent"`
	BetaSlow  float64   `yaml:"beta_slow" over:"0" doc:"yarn; 1 if absent"`
	Attention float64   `yaml:"attention_factor" over:"0" doc:"yarn, longrope: factor of cos and sin; follows from factor if absent"`
	MScale    float64   `yaml:"mscale" over:"0" doc:"yarn"`
	MScaleAll float64   `yaml:"mscale_all_dim" over:"0" doc:"yarn"`
	Truncate  *bool     `yaml:"truncate" doc:"yarn: the ramp begins and ends at whole pairs; true if absent"`
	Short     []float64 `yaml:"short_factor" over:"0" doc:"longrope: of each pair, for sequences of the first training's length"`
	Long      []float64 `yaml:"long_factor" over:"0" doc:"longrope: of each pair, for longer sequences"`
}

// ropeKeys are what a family's config.json says of rotary positions.
type ropeKeys struct {
	theta      string  // key of the base,
	base       float64 // what it says, 0 if nothing,
	absentBase float64 // and what that means; 0 is 10000
	part       float64 // of a head that is turned, 0 if config.json does not say
	absentPart float64 // 0 is 1
	parts      bool    // transformers turns a part of a head
	long       bool    // phi3: all kinds but default are longrope, whatever their name
	original   int     // where it stands outside of rope_scaling
	scaling    hfRope
	parameters hfRope
	inner      string // where parameters are in rope_parameters
}

// rope reads whichever spelling is there.
func (s *source) rope(c *Config, k ropeKeys) {
	r, at := k.scaling, "rope_scaling"
	if s.Has("rope_parameters") {
		if s.Has("rope_scaling") {
			s.diags.Addf(s.Pos("rope_scaling"), Conflict,
				"rope_scaling and rope_parameters are both given; they are two spellings of one thing")
		}
		if k.base != 0 && k.parameters.Theta != 0 && k.base != k.parameters.Theta {
			s.diags.Addf(s.Pos(k.theta), Conflict, "%s is %v, and rope_parameters%s.rope_theta is %v", k.theta, k.base,
				k.inner, k.parameters.Theta)
		}
		r, at = k.parameters, "rope_parameters"+k.inner
	}
	c.RopeTheta = first(r.Theta, k.base, k.absentBase, 10000)
	if !k.parts && r.Part != 0 && r.Part != 1 {
		s.diags.Addf(s.Pos(at+".partial_rotary_factor"), BadModel,
			"%s.partial_rotary_factor is %v; %s turns whole heads: transformers does not turn a part of one there",
			at, r.Part, c.Family)
		r.Part = 1
	}
	c.rotary = first(r.Part, k.part, k.absentPart, 1)
	if k.original != 0 {
		r.Original = k.original
	}
	c.RopeScaling = s.scaling(c, r, at, k.long)
}

func first(xs ...float64) float64 {
	i := slices.IndexFunc(xs, func(x float64) bool { return x != 0 })
	return xs[i]
}

// scaling is what rope_scaling or rope_parameters, whichever at says, asks for.
func (s *source) scaling(c *Config, r hfRope, at string, long bool) RopeScaling {
	kind := r.Kind
	if kind == "" {
		kind = r.OldKind
	}
	if r.OldKind != "" && r.OldKind != kind {
		s.diags.Addf(s.Pos(at+".type"), Conflict, "%s.type is %s, and rope_type is %s", at, r.OldKind, kind)
	}
	if kind == "" || kind == "default" {
		if r.Factor > 1 {
			s.diags.Addf(s.Pos(at), Missing, "%s has a factor and no rope_type", at)
		}
		return RopeScaling{}
	}
	if long {
		kind = s.longKind(c, kind, at)
	}
	read, ok := ropeKinds[kind]
	if !ok { // it was refused
		return RopeScaling{}
	}
	return read(s, c, r, at)
}

// longKind is longrope, which phi3's files call su or yarn too. There is no other kind in that family.
func (s *source) longKind(c *Config, kind, at string) string {
	if slices.Contains([]string{"longrope", "su", "yarn"}, kind) {
		return "longrope"
	}
	s.diags.Addf(s.Pos(at), BadModel, "%s is %s; %s has only the types default and longrope (also spelled su "+
		"and yarn)", at, kind, c.Family)
	return ""
}

// ropeKinds are the kinds of scaling by config.json's names.
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
			s.diags.Addf(s.Pos(at), BadModel, "%s llama3 wants low_freq_factor and a larger high_freq_factor", at)
		}
		return RopeScaling{RopeScaling: ir.RopeScaling{Kind: "llama3", Factor: s.factor(r, at), LowFreq: r.LowFreq,
			HighFreq: r.HighFreq, Original: r.original(c)}}
	},
	"yarn":     yarn,
	"longrope": longRope,
	"su": func(s *source, _ *Config, _ hfRope, at string) RopeScaling {
		s.diags.Addf(s.Pos(at), BadModel, "%s is su, an old name of longrope that only phi3 accepts: write longrope",
			at)
		return RopeScaling{}
	},
}

// factor is wanted.
func (s *source) factor(r hfRope, at string) float64 {
	if r.Factor == 0 {
		s.diags.Addf(s.Pos(at), Missing, "%s has no factor", at)
	}
	return r.Factor
}

// original is the first training's positions, which config.json may leave to max_position_embeddings.
func (r hfRope) original(c *Config) int {
	if r.Original == 0 {
		return max(c.MaxPositions, 1)
	}
	return r.Original
}

func yarn(s *source, c *Config, r hfRope, at string) RopeScaling {
	fast, slow := first(r.BetaFast, 32), first(r.BetaSlow, 1)
	if fast < slow {
		s.diags.Addf(s.Pos(at), BadModel, "%s yarn has beta_fast %v, which is below beta_slow %v", at, fast, slow)
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
			"%s longrope wants short_factor and long_factor, a number for each pair of a head", at)
	}
	original := r.original(c)
	factor := first(r.Factor, float64(c.MaxPositions)/float64(original), 1)
	return RopeScaling{Long: r.Long, RopeScaling: ir.RopeScaling{Kind: "longrope", Original: original, Factors: r.Short,
		Attention: first(r.Attention, ir.LongRopeAttention(factor, original))}}
}
