package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// RopeScaling changes the frequencies of rotary positions, so that sequences can be longer than in the original
// training. Kinds and formulas are those of Hugging Face's rope_type. Fields that a kind does not have are zero.
type RopeScaling struct {
	Kind   string
	Factor float64 // divisor of the (low) frequencies
	// llama3: waves per Original below which Factor applies fully, and above which it does not apply
	LowFreq, HighFreq float64
	// yarn: rotations within Original above which Factor does not apply, and below which it applies fully
	BetaFast, BetaSlow float64
	// sequence length of the original training; of dynamic, the length from which on the base grows
	Original  int
	Attention float64   // yarn, longrope: factor of cos and sin
	Exact     bool      // yarn: the range of the ramp is not rounded (config.json: "truncate": false)
	Factors   []float64 // longrope: divisor of each pair's frequency
}

// ropeKinds are the kinds, with the numbers that follow each in the text form, in order.
var ropeKinds = []struct {
	name   string
	fields []string
}{
	{"linear", []string{"factor"}},
	{"dynamic", []string{"factor", "original"}},
	{"llama3", []string{"factor", "low_freq", "high_freq", "original"}},
	{"yarn", []string{"factor", "beta_fast", "beta_slow", "original", "attention"}}, // optionally followed by "exact"
	{"longrope", []string{"attention", "factors"}},
}

// ropeFields prints and sets the fields by the names above.
var ropeFields = map[string]struct {
	get func(*RopeScaling) string
	set func(*RopeScaling, string) error
}{
	"factor":    ropeFloat(func(r *RopeScaling) *float64 { return &r.Factor }),
	"low_freq":  ropeFloat(func(r *RopeScaling) *float64 { return &r.LowFreq }),
	"high_freq": ropeFloat(func(r *RopeScaling) *float64 { return &r.HighFreq }),
	"beta_fast": ropeFloat(func(r *RopeScaling) *float64 { return &r.BetaFast }),
	"beta_slow": ropeFloat(func(r *RopeScaling) *float64 { return &r.BetaSlow }),
	"attention": ropeFloat(func(r *RopeScaling) *float64 { return &r.Attention }),
	"original": {
		func(r *RopeScaling) string { return strconv.Itoa(r.Original) },
		func(r *RopeScaling, s string) (err error) { r.Original, err = strconv.Atoi(s); return err },
	},
	"factors": {
		func(r *RopeScaling) string {
			var parts []string
			for _, f := range r.Factors {
				parts = append(parts, float(f))
			}
			return strings.Join(parts, ";")
		},
		func(r *RopeScaling, s string) error {
			for _, part := range strings.Split(s, ";") {
				f, err := strconv.ParseFloat(part, 64)
				if err != nil {
					return err
				}
				r.Factors = append(r.Factors, f)
			}
			return nil
		},
	},
}

func ropeFloat(field func(*RopeScaling) *float64) struct {
	get func(*RopeScaling) string
	set func(*RopeScaling, string) error
} {
	return struct {
		get func(*RopeScaling) string
		set func(*RopeScaling, string) error
	}{
		func(r *RopeScaling) string { return float(*field(r)) },
		func(r *RopeScaling, s string) (err error) { *field(r), err = strconv.ParseFloat(s, 64); return err },
	}
}

func ropeFieldsOf(kind string) ([]string, bool) {
	for _, k := range ropeKinds {
		if k.name == kind {
			return k.fields, true
		}
	}
	return nil, false
}

// String returns the text of Attr.Rope, "" for no scaling.
func (r RopeScaling) String() string {
	if r.Kind == "" {
		return ""
	}
	fields, ok := ropeFieldsOf(r.Kind)
	if !ok {
		panic(fmt.Sprintf("ir: unknown rotary scaling %q", r.Kind))
	}
	parts := []string{r.Kind}
	for _, f := range fields {
		parts = append(parts, ropeFields[f].get(&r))
	}
	if r.Exact {
		parts = append(parts, "exact")
	}
	return strings.Join(parts, ",")
}

// ParseRope reads the text of Attr.Rope, which must have the form that String returns.
func ParseRope(s string) (RopeScaling, error) {
	var r RopeScaling
	if s == "" {
		return r, nil
	}
	parts := strings.Split(s, ",")
	fields, ok := ropeFieldsOf(parts[0])
	if !ok {
		return r, fmt.Errorf("rotary scaling %q: unknown kind %q; use one of %s", s, parts[0],
			strings.Join(RopeKinds(), ", "))
	}
	r.Kind, parts = parts[0], parts[1:]
	if n := len(fields); r.Kind == "yarn" && len(parts) == n+1 && parts[n] == "exact" {
		r.Exact, parts = true, parts[:n]
	}
	if len(parts) != len(fields) {
		return r, fmt.Errorf("rotary scaling %q: %s must be followed by %s", s, r.Kind, strings.Join(fields, ","))
	}
	for i, f := range fields {
		if err := ropeFields[f].set(&r, parts[i]); err != nil {
			return r, fmt.Errorf("rotary scaling %q: %s: %w", s, f, err)
		}
	}
	if r.String() != s {
		return r, fmt.Errorf("rotary scaling %q must be written %q", s, r)
	}
	return r, nil
}

// RopeKinds returns the kinds of scaling.
func RopeKinds() []string {
	var names []string
	for _, k := range ropeKinds {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}

// YarnAttention returns yarn's factor of cos and sin if config.json does not give attention_factor. mscale and
// mscaleAll are 0 unless it has both.
func YarnAttention(factor, mscale, mscaleAll float64) float64 {
	if mscale != 0 && mscaleAll != 0 {
		return YarnScores(factor, mscale) / YarnScores(factor, mscaleAll)
	}
	return YarnScores(factor, 1)
}

// YarnScores returns yarn's correction of attention for positions that reach factor times further (Peng et al. 2023),
// with strength m.
func YarnScores(factor, m float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*m*math.Log(factor) + 1
}

// LongRopeAttention returns longrope's factor of cos and sin if config.json does not give attention_factor. factor is
// the model's length divided by original.
func LongRopeAttention(factor float64, original int) float64 {
	if factor <= 1 {
		return 1
	}
	return math.Sqrt(1 + math.Log(factor)/math.Log(float64(original)))
}
