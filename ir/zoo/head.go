package zoo

import "github.com/planc-dev/planc/ir"

// head builds the last segment: a final norm, the logits, and the loss.
func head(m *model) *ir.Func {
	b := m.builder("head.forward")
	x := b.input("x", b.elem, stream...)
	b.in(ir.Norm)
	m.loss(b, m.scored(b, m.final(b, x)))
	return b.ret()
}

// logits builds the function that sampling runs instead of the head, for one position.
func logits(m *model) *ir.Func {
	b := m.builder("head.logits")
	x := b.input("x", b.elem, stream...)
	b.in(ir.Norm)
	at := b.op("at", ir.OpSelect, ir.Attr{Dim: ir.Seq}, []ir.Dim{ir.Batch, ir.Hidden}, x)
	return b.ret(m.scored(b, m.final(b, at)))
}

// final builds the layers between the last block and the output table.
func (m *model) final(b *builder, x *ir.Value) *ir.Value {
	if !m.PostNorm {
		x = m.norm(m, b, "ln", x, ir.Hidden)
	}
	if m.HeadTransform {
		x = linear(m, b, projection{"changed", "transform", true}, x, transform)
		x = b.same("changed_act", m.act(), ir.Attr{}, x)
		x = b.rename("changed_ln", m.norm(m, b, "transform_ln", x, transform), transform, ir.Hidden)
	}
	if m.EmbedDim > 0 {
		x = b.matmul("x_narrow", x, b.param("project_out", normal(m.InitStd), ir.Hidden, narrow),
			withLast(x, narrow)...)
	}
	return x
}

// scored builds the logits of x.
func (m *model) scored(b *builder, x *ir.Value) *ir.Value {
	b.in(ir.VocabR)
	y := b.matmul("logits", x, m.outputTable(b), withLast(x, ir.Vocab)...)
	if m.HeadBias {
		y = b.same("logits_biased", ir.OpAdd, ir.Attr{}, y, b.param("lm_head_bias", zeros, ir.Vocab))
	}
	if m.LogitSoftcap > 0 {
		y = b.same("logits_capped", ir.OpSoftcap, ir.Attr{Softcap: m.LogitSoftcap}, y)
	}
	return y
}

// withLast returns x's dims with another last dim.
func withLast(x *ir.Value, last ir.Dim) []ir.Dim {
	ds := dimsOf(x)
	ds[len(ds)-1] = last
	return ds
}

// outputTable returns the head's weight: that of the embedding, or one of its own.
func (m *model) outputTable(b *builder) *ir.Value {
	init := normal(m.InitStd)
	if m.Tied {
		init.Tied = "embed.wte"
		return b.param("wte", init, ir.Vocab, m.width())
	}
	return b.param("lm_head", init, ir.Vocab, m.width())
}

// loss ends the head with the cross-entropy of the logits over the unmasked labels. An image's class is the label of
// position 0, where the class token is, and the other positions are masked. So images have labels in the same form as
// texts; the additional logits cost less than a hundredth of the model.
func (m *model) loss(b *builder, logits *ir.Value) {
	labels := b.input("labels", ir.I32, tokens...)
	mask := b.input("mask", b.elem.Statistic(), tokens...)
	lse := b.op("lse", ir.OpLogSumExp, ir.Attr{}, tokens, logits)
	label := b.op("label", ir.OpPick, ir.Attr{}, tokens, logits, labels)
	ce := b.same("ce", ir.OpSub, ir.Attr{}, lse, label)
	counted := b.same("counted", ir.OpMul, ir.Attr{}, ce, mask)
	b.accumulate(b.op("loss", ir.OpReduceSum, ir.Attr{}, nil, counted), "loss")
}
