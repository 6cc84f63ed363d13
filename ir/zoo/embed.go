package zoo

import (
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// embed builds the first segment: embeddings of tokens or patches, positions, a norm, dropout.
func embed(m *model) *ir.Func {
	b := m.builder("embed.forward")
	y := m.source(m, b)
	b.in(ir.Norm)
	if m.position == spec.Learned {
		y = b.same("y", ir.OpAdd, ir.Attr{}, y, m.places(b))
	}
	if m.EmbedNorm {
		y = m.norm(m, b, "ln", y, ir.Hidden)
	}
	if y.Name == "e" { // nothing was added to the table's rows
		y.Name = "y"
	}
	return b.ret(b.dropout("y_drop", y, m.DropEmbd))
}

// words looks tokens up, and their segments if the model has some.
func words(m *model, b *builder) *ir.Value {
	ids := b.input("tokens", ir.I32, tokens...)
	init := normal(m.InitStd)
	init.Zero = m.PaddingRow
	wte := b.param("wte", init, ir.Vocab, m.width())
	b.in(ir.VocabR)
	e := b.op("e", ir.OpEmbed, ir.Attr{Frozen: m.PaddingRow}, []ir.Dim{ir.Batch, ir.Seq, m.width()}, wte, ids)
	if m.EmbedDim > 0 {
		e = b.matmul("e_wide", e, b.param("project_in", normal(m.InitStd), narrow, ir.Hidden), stream...)
	}
	if m.EmbedScale != 0 && m.EmbedScale != 1 {
		e = b.same("e_scaled", ir.OpScale, ir.Attr{Scale: m.EmbedScale}, e)
	}
	if m.TokenTypes > 0 {
		types := b.input("types", ir.I32, tokens...)
		t := b.op("t", ir.OpEmbed, ir.Attr{}, stream, b.param("wtt", normal(m.InitStd), ir.TypeID, ir.Hidden), types)
		b.in(ir.Norm)
		e = b.same("e_typed", ir.OpAdd, ir.Attr{}, e, t)
	}
	return e
}

// width returns the dim of the token table's rows.
func (m *model) width() ir.Dim {
	if m.EmbedDim > 0 {
		return narrow
	}
	return ir.Hidden
}

// patches projects an image's patches. Position 0 is the class token. Its patch is zeros, so it consists of a row of a
// two-row table that is added there. The other row is the projection's bias, which starts at 0 and is added at all
// other positions. The class token is drawn; weight decay applies to neither row.
func patches(m *model, b *builder) *ir.Value {
	pixels := b.input("pixels", b.elem, ir.Batch, ir.Seq, ir.Patch)
	w := b.param("patch", normal(m.InitStd), ir.Patch, ir.Hidden)
	b.in(ir.Norm)
	e := b.matmul("e", pixels, w, stream...)
	kinds := b.op("kinds", ir.OpIota, ir.Attr{Max: 1}, []ir.Dim{ir.Seq})
	table := b.param("wct", ir.Param{Init: "normal", Std: m.InitStd, First: 1}, kind, ir.Hidden)
	table.Param.Decay = false
	c := b.op("c", ir.OpEmbed, ir.Attr{}, []ir.Dim{ir.Seq, ir.Hidden}, table, kinds)
	return b.same("e_class", ir.OpAdd, ir.Attr{}, e, c)
}

// places looks up the rows of the position table. In opt two unused rows precede that of position 0. If attention does
// not cross the borders of documents, each document has the positions that it has alone.
func (m *model) places(b *builder) *ir.Value {
	wpe := b.param("wpe", normal(m.InitStd), ir.Position, ir.Hidden)
	dims := []ir.Dim{ir.Seq}
	if m.opt.Documents {
		dims = tokens
	}
	mask := ir.AttentionMask{Documents: m.opt.Documents}
	pos := b.op("pos", ir.OpIota, ir.Attr{AttentionMask: mask, Offset: m.PositionOffset}, dims)
	return b.op("p", ir.OpEmbed, ir.Attr{}, append(slices.Clone(dims), ir.Hidden), wpe, pos)
}
