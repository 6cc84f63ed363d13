package zoo

import (
	"math"

	"github.com/planc-dev/planc/ir"
)

// llama is the family of Llama 2 and 3 (Touvron et al. 2023; Hugging Face's LlamaForCausalLM): rotary
// positions, RMS norms, grouped K/V heads, SwiGLU, no biases unless the configuration says so.
var llama = family{embed: llamaEmbed, block: llamaBlock, head: head(rmsNorm), logits: logits(rmsNorm)}

func llamaEmbed(m *model) *ir.Func {
	b := m.builder("embed.forward")
	ids := b.input("tokens", ir.I32, tokens...)
	wte := b.param("wte", normal(m.InitStd), ir.Vocab, ir.Hidden)
	b.in(ir.VocabR)
	return b.ret(b.op("y", ir.OpEmbed, ir.Attr{}, stream, wte, ids))
}

func rmsNorm(m *model, b *builder, name string, x *ir.Value) *ir.Value {
	return b.same(name, ir.OpRMSNorm, ir.Attr{Eps: m.NormEps}, x, b.param(name+".gain", ones, ir.Hidden))
}

// linear multiplies by a weight that brings dims, and adds a bias if the model has one there.
func linear(m *model, b *builder, name, param string, x *ir.Value, bias bool, dims ...ir.Dim) *ir.Value {
	w := b.param(param, normal(m.InitStd), append([]ir.Dim{ir.Hidden}, dims...)...)
	y := b.matmul(name, x, w, append([]ir.Dim{ir.Batch, ir.Seq}, dims...)...)
	if bias {
		y = b.same(name+"_biased", ir.OpAdd, ir.Attr{}, y, b.param(param+"_bias", zeros, dims...))
	}
	return y
}

func llamaBlock(m *model) *ir.Func {
	b := m.builder("block.forward")
	x := b.input("x", b.elem, stream...)
	h := llamaAttention(m, b, x)
	return b.ret(llamaMLP(m, b, h))
}

func llamaAttention(m *model, b *builder, x *ir.Value) *ir.Value {
	b.in(ir.Norm)
	n := rmsNorm(m, b, "ln1", x)
	b.in(ir.Attention)
	rope := ir.Attr{Dim: ir.HeadDim, Theta: m.RopeTheta, Rope: m.ropeText()}
	queries := m.queries()
	q := b.same("q_rot", ir.OpRope, rope, linear(m, b, "q", "attn.q", n, m.AttentionBias, append(queries, ir.HeadDim)...))
	k := b.same("k_rot", ir.OpRope, rope, linear(m, b, "k", "attn.k", n, m.AttentionBias, ir.Head, ir.HeadDim))
	k = b.rename("keys", k, ir.Seq, ir.KSeq)
	v := b.rename("values", linear(m, b, "v", "attn.v", n, m.AttentionBias, ir.Head, ir.VDim), ir.Seq, ir.KSeq)
	attr := ir.Attr{Scale: 1 / math.Sqrt(float64(m.HeadDim)), Causal: true, Drop: m.DropAttn}
	if attr.Drop > 0 {
		attr.Key = b.key()
	}
	outDims := append([]ir.Dim{ir.Batch, ir.Seq}, append(queries, ir.VDim)...)
	o := b.attention("attn", q, k, v, attr, outDims...)
	w := b.param("attn.o", normal(m.InitStd), append(append([]ir.Dim{}, queries...), ir.VDim, ir.Hidden)...)
	p := b.matmul("o", o, w, stream...)
	b.in(ir.Norm)
	if m.AttentionBias {
		p = b.same("o_biased", ir.OpAdd, ir.Attr{}, p, b.param("attn.o_bias", zeros, ir.Hidden))
	}
	return b.same("h", ir.OpAdd, ir.Attr{}, x, b.dropout("o_drop", p, m.DropResid))
}

// ropeText is the rotary scaling as ir.Attr.Rope has it: kind,factor,low,high,original.
func (m *model) ropeText() string { return m.RopeScaling.Text() }

func llamaMLP(m *model, b *builder, h *ir.Value) *ir.Value {
	n := rmsNorm(m, b, "ln2", h)
	b.in(ir.MLP)
	gate := linear(m, b, "gate", "mlp.gate", n, m.MLPBias, ir.FFN)
	act := b.same("act", m.act(), ir.Attr{}, gate)
	up := linear(m, b, "up", "mlp.up", n, m.MLPBias, ir.FFN)
	both := b.same("gated", ir.OpMul, ir.Attr{}, act, up)
	down := b.matmul("down", both, b.param("mlp.down", normal(m.InitStd), ir.FFN, ir.Hidden), stream...)
	b.in(ir.Norm)
	if m.MLPBias {
		down = b.same("down_biased", ir.OpAdd, ir.Attr{}, down, b.param("mlp.down_bias", zeros, ir.Hidden))
	}
	return b.same("y", ir.OpAdd, ir.Attr{}, h, b.dropout("down_drop", down, m.DropResid))
}
