package zoo

import (
	"math"

	"github.com/planc-dev/planc/ir"
)

// gpt2 is the family of GPT-2 (Radford et al. 2019; Hugging Face's GPT2LMHeadModel): learned positions, layer
// norms before each half block, one MLP, biases everywhere, the output table tied to the embedding.
var gpt2 = family{embed: gpt2Embed, block: gpt2Block, head: head(layerNorm), logits: logits(layerNorm)}

func gpt2Embed(m *model) *ir.Func {
	b := m.builder("embed.forward")
	ids := b.input("tokens", ir.I32, tokens...)
	wte := b.param("wte", normal(m.InitStd), ir.Vocab, ir.Hidden)
	wpe := b.param("wpe", normal(m.InitStd), ir.Position, ir.Hidden)
	b.in(ir.VocabR)
	e := b.op("e", ir.OpEmbed, ir.Attr{}, stream, wte, ids)
	b.in(ir.Norm)
	pos := b.op("pos", ir.OpIota, ir.Attr{}, []ir.Dim{ir.Seq})
	p := b.op("p", ir.OpEmbed, ir.Attr{}, []ir.Dim{ir.Seq, ir.Hidden}, wpe, pos)
	y := b.same("y", ir.OpAdd, ir.Attr{}, e, p)
	return b.ret(b.dropout("y_drop", y, m.DropEmbd))
}

func gpt2Block(m *model) *ir.Func {
	b := m.builder("block.forward")
	x := b.input("x", b.elem, stream...)
	h := gpt2Attention(m, b, x)
	return b.ret(gpt2MLP(m, b, h))
}

// layerNorm declares and applies a layer norm.
func layerNorm(m *model, b *builder, name string, x *ir.Value) *ir.Value {
	gain, bias := b.param(name+".gain", ones, ir.Hidden), b.param(name+".bias", zeros, ir.Hidden)
	return b.same(name, ir.OpLayerNorm, ir.Attr{Eps: m.NormEps}, x, gain, bias)
}

// project multiplies by a weight that brings dims and adds its bias.
func project(m *model, b *builder, name string, x *ir.Value, dims ...ir.Dim) *ir.Value {
	w := b.param("attn."+name, normal(m.InitStd), append([]ir.Dim{ir.Hidden}, dims...)...)
	bias := b.param("attn."+name+"_bias", zeros, dims...)
	y := b.matmul(name+"0", x, w, append([]ir.Dim{ir.Batch, ir.Seq}, dims...)...)
	return b.same(name, ir.OpAdd, ir.Attr{}, y, bias)
}

// residualStd is GPT-2's initial deviation of the two projections into the residual stream.
func (m *model) residualStd() float64 { return m.InitStd / math.Sqrt(float64(2*m.Layers)) }

func gpt2Attention(m *model, b *builder, x *ir.Value) *ir.Value {
	b.in(ir.Norm)
	n := layerNorm(m, b, "ln1", x)
	b.in(ir.Attention)
	q := project(m, b, "q", n, ir.Head, ir.HeadDim)
	k := b.rename("keys", project(m, b, "k", n, ir.Head, ir.HeadDim), ir.Seq, ir.KSeq)
	v := b.rename("values", project(m, b, "v", n, ir.Head, ir.VDim), ir.Seq, ir.KSeq)
	attr := ir.Attr{Scale: 1 / math.Sqrt(float64(m.HeadDim)), Causal: true, Drop: m.DropAttn}
	if attr.Drop > 0 {
		attr.Key = b.key()
	}
	o := b.attention("attn", q, k, v, attr, ir.Batch, ir.Seq, ir.Head, ir.VDim)
	w := b.param("attn.o", normal(m.residualStd()), ir.Head, ir.VDim, ir.Hidden)
	p := b.matmul("o", o, w, stream...)
	b.in(ir.Norm)
	p = b.same("o_biased", ir.OpAdd, ir.Attr{}, p, b.param("attn.o_bias", zeros, ir.Hidden))
	return b.same("h", ir.OpAdd, ir.Attr{}, x, b.dropout("o_drop", p, m.DropResid))
}

func gpt2MLP(m *model, b *builder, h *ir.Value) *ir.Value {
	n := layerNorm(m, b, "ln2", h)
	b.in(ir.MLP)
	up := b.matmul("up0", n, b.param("mlp.up", normal(m.InitStd), ir.Hidden, ir.FFN), ir.Batch, ir.Seq, ir.FFN)
	up = b.same("up", ir.OpAdd, ir.Attr{}, up, b.param("mlp.up_bias", zeros, ir.FFN))
	act := b.same("act", m.act(), ir.Attr{}, up)
	down := b.matmul("down", act, b.param("mlp.down", normal(m.residualStd()), ir.FFN, ir.Hidden), stream...)
	b.in(ir.Norm)
	down = b.same("down_biased", ir.OpAdd, ir.Attr{}, down, b.param("mlp.down_bias", zeros, ir.Hidden))
	return b.same("y", ir.OpAdd, ir.Attr{}, h, b.dropout("down_drop", down, m.DropResid))
}
