package spec

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// keys are the names of the sizes in a family's config.json; "" if it has no such size, "a|b" if it has two names.
type keys struct{ vocab, hidden, layers, heads, kvHeads, headDim, ffn, positions string }

// written returns the name of "a|b" that config.json uses, the first if it uses neither.
func (c *Config) written(names string) string {
	all := strings.Split(names, "|")
	for _, name := range all {
		if _, ok := c.at[name]; ok {
			return name
		}
	}
	return all[0]
}

// check reports sizes that do not fit each other, and computes those that follow from others.
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
		count := fmt.Sprintf("there are %d experts", c.Experts)
		if c.Experts == 1 {
			count = "there is 1 expert"
		}
		diags.Addf(at, BadModel, "num_experts_per_tok is %d; %s", c.Choices, count)
	}
	if p := c.approxParams(); p > maxParams {
		diags.Addf(c.Pos(""), BadModel, "the model would have %.3g parameters; planc supports at most %.0e",
			p, maxParams)
	}
}

// checkRotary checks that the rotated elements form pairs, and that a list of factors has one per pair.
func (c *Config) checkRotary(diags *ir.Diags, k keys) {
	c.RotaryDim = int(float64(c.HeadDim) * c.rotary)
	if c.KVLatent > 0 {
		c.RotaryDim = c.HeadDim - c.PlainDim
	}
	switch {
	case c.RotaryDim%2 == 0 && c.RotaryDim > 0:
	case c.KVLatent > 0:
		diags.Addf(c.Pos("qk_rope_head_dim"), BadModel,
			"qk_rope_head_dim is %d; rotary positions need an even number",
			c.RotaryDim)
	case c.rotary == 1:
		diags.Addf(c.blame(c.written(k.headDim), c.written(k.hidden), c.written(k.heads)), BadModel,
			"the head size, head_dim or %s / %s, is %d; rotary positions need an even number", c.written(k.hidden),
			c.written(k.heads), c.HeadDim)
	default:
		diags.Addf(c.blame(c.written("rotary_pct|partial_rotary_factor"), c.written(k.headDim), c.written(k.hidden),
			c.written(k.heads)), BadModel,
			"rotary positions rotate %d of a head's %d elements; it must be an even number of at least 2",
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
			diags.Addf(c.Pos(at), BadModel, "%s.%s has %d numbers; it must have one for each of a head's %d "+
				"rotated pairs", at,
				list.name, n, c.RotaryDim/2)
		}
	}
}

// checkImage checks that the image consists of whole patches. It sets the number of positions: one per patch, and one
// for the class token.
func (c *Config) checkImage(diags *ir.Diags) {
	if c.ImageSize%c.PatchSize != 0 {
		diags.Addf(c.blame("patch_size", "image_size"), BadModel, "patch_size %d does not divide image_size %d",
			c.PatchSize, c.ImageSize)
	}
	side := c.ImageSize / c.PatchSize
	c.MaxPositions = side*side + 1
}

// maxParams is the largest supported number of parameters. With up to 24 bytes of state per parameter, all sizes in
// bytes then stay far below 2^63.
const maxParams = 1e16

// approxParams estimates the number of parameters in floating point, which cannot overflow.
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

// widest returns the largest number of elements per token in one value: logits, an MLP's hidden layer, or the inputs of
// the chosen experts.
func (c *Config) widest() float64 {
	experts := float64(max(1, c.Choices)) * float64(max(c.ExpertFFN, c.Hidden))
	return max(float64(c.Vocab), float64(c.FFN), float64(c.SharedFFN), experts,
		float64(c.Heads)*float64(max(c.HeadDim, c.VDim)))
}
