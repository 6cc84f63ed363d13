package spec

// Params returns the number of parameters. A head that is tied to the embedding counts once.
func (c *Config) Params() int64 {
	n := c.embedParams() + c.headParams() + int64(c.Layers-c.Dense)*c.blockParams(true) +
		int64(c.Dense)*c.blockParams(false)
	if !c.Tied {
		n += int64(c.Vocab) * c.tableWidth()
	}
	return n
}

// tableWidth returns the width of the token table.
func (c *Config) tableWidth() int64 {
	if c.EmbedDim > 0 {
		return int64(c.EmbedDim)
	}
	return int64(c.Hidden)
}

// normParams returns the parameters of a norm over n elements: a gain and, except for RMSNorm and if norms have no
// bias, a bias.
func (c *Config) normParams(n int64) int64 {
	if familyOf(c.Family).rms || c.BiasFreeNorm {
		return n
	}
	return 2 * n
}

func (c *Config) embedParams() int64 {
	h := int64(c.Hidden)
	n := int64(c.Vocab) * c.tableWidth()
	if c.PatchSize > 0 { // the projection of a patch's pixels, its bias, and the class token
		n = (int64(c.Channels*c.PatchSize*c.PatchSize) + 2) * h
		if c.Tied { // images have no token table that the classes could share
			n += int64(c.Vocab) * h
		}
	}
	if c.EmbedDim > 0 {
		n += int64(c.EmbedDim) * h
	}
	if familyOf(c.Family).position == Learned {
		n += int64(c.MaxPositions+c.PositionOffset) * h
	}
	n += int64(c.TokenTypes) * h
	if c.EmbedNorm {
		n += c.normParams(h)
	}
	return n
}

// mlaParams returns the parameters of MLA: down-projections, norms of the latent vectors, and up-projections for
// each head.
func (c *Config) mlaParams() int64 {
	h, q, kv, heads, rotary := int64(c.Hidden), int64(c.QLatent), int64(c.KVLatent), int64(c.Heads), int64(c.RotaryDim)
	n := h*(kv+rotary) + kv + kv*heads*int64(c.PlainDim+c.VDim) + heads*int64(c.VDim)*h
	if q > 0 {
		return n + h*q + q + q*heads*int64(c.HeadDim)
	}
	return n + h*heads*int64(c.HeadDim)
}

// blockParams returns the parameters of a block. With experts true, a model with experts has them in this block.
func (c *Config) blockParams(experts bool) int64 {
	h, f, d := int64(c.Hidden), int64(c.FFN), int64(c.HeadDim)
	q, kv := int64(c.Heads)*d, int64(c.KVHeads)*d
	n := h*(q+2*kv) + q*h
	if c.KVLatent > 0 {
		n = c.mlaParams()
	}
	if c.QKVBias || c.AttentionBias {
		n += q + 2*kv
	}
	if c.AttentionBias {
		n += h
	}
	if c.QKNorm {
		n += 2 * c.normParams(d)
	}
	in := f
	if familyOf(c.Family).gated {
		in = 2 * f
	}
	if c.Experts > 0 && experts {
		n += c.expertParams(c.Experts)
	} else {
		n += h*in + f*h
		if c.MLPBias {
			n += in + h
		}
	}
	norms := int64(2)
	if c.SandwichNorm {
		norms = 4
	}
	return n + norms*c.normParams(h)
}

// expertParams returns the parameters of a block's MLP with the given number of experts, its router and its shared
// expert.
func (c *Config) expertParams(experts int) int64 {
	h := int64(c.Hidden)
	n := h*int64(c.Experts) + 3*h*(int64(experts)*int64(c.ExpertFFN)+int64(c.SharedFFN))
	if c.SharedGate {
		n += h
	}
	if c.RouteBias {
		n += int64(c.Experts)
	}
	return n
}

// ActiveParams returns the parameters that one token uses: all except the experts that are not chosen for it.
func (c *Config) ActiveParams() int64 {
	n := c.Params()
	if c.Experts > 0 {
		n -= int64(c.Layers-c.Dense) * (c.expertParams(c.Experts) - c.expertParams(c.Choices))
	}
	return n
}

// headParams returns the parameters of the head without its table.
func (c *Config) headParams() int64 {
	h, n := int64(c.Hidden), int64(0)
	if !c.PostNorm {
		n += c.normParams(h)
	}
	if c.HeadTransform {
		n += h*h + h + c.normParams(h)
	}
	if c.EmbedDim > 0 {
		n += h * int64(c.EmbedDim)
	}
	if c.HeadBias {
		n += int64(c.Vocab)
	}
	return n
}
