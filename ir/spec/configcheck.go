package spec

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// keys are the names that a family's config.json gives the sizes; "" where it has none, "a|b" where it has two.
type keys struct{ vocab, hidden, layers, heads, kvHeads, headDim, ffn, positions string }

// written is the one of the names "a|b" that config.json has, else the first.
func (c *Config) written(names string) string {
	all := strings.Split(names, "|")
	for _, name := range all {
		if _, ok := c.at[name]; ok {
			return name
		}
	}
	return all[0]
}

// check wants sizes that fit together, and works out those that follow from others.
func (c *Config) check(diags *ir.Diags, k keys) {
	hidden, heads, kvHeads := c.written(k.hidden), c.written(k.heads), c.written(k.kvHeads)
	if c.HeadDim == 0 {
		c.HeadDim = c.Hidden / c.Heads
		if c.Hidden%c.Heads != 0 {
			diags.Addf(c.blame(heads, hidden), BadModel, "%s %d does not divide %s %d", heads, c.Heads,
				hidden, c.Hidden)
			return
		}
	}
	if c.Heads%c.KVHeads != 0 {
		diags.Addf(c.blame(kvHeads, heads), BadModel, "%s %d does not divide %s %d", kvHeads, c.KVHeads, heads, c.Heads)
	}
	if c.QueryScale == 0 {
		c.QueryScale = 1 / math.Sqrt(float64(c.HeadDim))
	}
	if c.rotary > 0 {
		c.checkRotary(diags, k)
	}
	if c.PatchSize > 0 {
		c.checkImage(diags)
	}
	if c.Experts > 0 && c.Choices > c.Experts {
		at := c.blame("num_experts_per_tok", "num_local_experts", "num_experts", "n_routed_experts")
		there := fmt.Sprintf("there are %d experts", c.Experts)
		if c.Experts == 1 {
			there = "there is 1 expert"
		}
		diags.Addf(at, BadModel, "num_experts_per_tok is %d; %s", c.Choices, there)
	}
	if p := c.approxParams(); p > mostParams {
		diags.Addf(c.Pos(""), BadModel, "the model would have %.3g parameters; at most %.0e are planned", p, mostParams)
	}
}

// checkRotary wants pairs to turn, and a factor for each where there is a list of them.
func (c *Config) checkRotary(diags *ir.Diags, k keys) {
	c.RotaryDim = int(float64(c.HeadDim) * c.rotary)
	if c.KVLatent > 0 {
		c.RotaryDim = c.HeadDim - c.PlainDim
	}
	switch {
	case c.RotaryDim%2 == 0 && c.RotaryDim > 0:
	case c.KVLatent > 0:
		diags.Addf(c.Pos("qk_rope_head_dim"), BadModel, "qk_rope_head_dim is %d; rotary positions want an even one",
			c.RotaryDim)
	case c.rotary == 1:
		diags.Addf(c.blame(c.written(k.headDim), c.written(k.hidden), c.written(k.heads)), BadModel,
			"the size of a head, head_dim or %s / %s, is %d; rotary positions want an even one", c.written(k.hidden),
			c.written(k.heads), c.HeadDim)
	default:
		diags.Addf(c.blame(c.written("rotary_pct|partial_rotary_factor"), c.written(k.headDim), c.written(k.hidden),
			c.written(k.heads)), BadModel,
			"rotary positions turn %d of a head's %d elements; an even number of at least 2 is wanted",
			c.RotaryDim, c.HeadDim)
	}
	if c.RopeScaling.Kind != "longrope" {
		return
	}
	at := c.written("rope_scaling|rope_parameters")
	for _, list := range []struct {
		name    string
		factors []float64
	}{{"short_factor", c.RopeScaling.Factors}, {"long_factor", c.RopeScaling.Long}} {
		if n := len(list.factors); n != c.RotaryDim/2 {
			diags.Addf(c.Pos(at), BadModel, "%s.%s has %d numbers; one for each of %d pairs of a head is wanted", at,
				list.name, n, c.RotaryDim/2)
		}
	}
}

// checkImage wants whole patches, and works out the positions: one for each, and the class token's.
func (c *Config) checkImage(diags *ir.Diags) {
	if c.ImageSize%c.PatchSize != 0 {
		diags.Addf(c.blame("patch_size", "image_size"), BadModel, "patch_size %d does not divide image_size %d",
			c.PatchSize, c.ImageSize)
	}
	side := c.ImageSize / c.PatchSize
	c.MaxPositions = side*side + 1
}

// mostParams is how many parameters a model may have. Bytes of all state, up to 24 a parameter, are then far below
// 2^63.
const mostParams = 1e16

// approxParams is about how many parameters the model has. It cannot overflow.
func (c *Config) approxParams() float64 {
	h, l := float64(c.Hidden), float64(c.Layers)
	attention := 4 * h * float64(c.Heads) * float64(c.HeadDim)
	if c.KVLatent > 0 {
		attention = h*float64(c.QLatent+c.KVLatent+c.HeadDim) + float64(c.Heads)*float64(c.HeadDim+c.VDim)*
			(h+float64(c.QLatent+c.KVLatent))
	}
	return h*(2*float64(c.Vocab)+float64(c.MaxPositions)) +
		l*(attention+3*h*(float64(c.FFN)+float64(c.Experts)*float64(c.ExpertFFN)+float64(c.SharedFFN)))
}

// widest is the most elements that a token has in one value: logits, the hidden layer of an MLP, or the choices of
// experts.
func (c *Config) widest() float64 {
	experts := float64(max(1, c.Choices)) * float64(max(c.ExpertFFN, c.Hidden))
	return max(float64(c.Vocab), float64(c.FFN), float64(c.SharedFFN), experts,
		float64(c.Heads)*float64(max(c.HeadDim, c.VDim)))
}
