package zoo

import (
	"math"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// attention builds attention, without its norm and residual sum.
func attention(m *model, b *builder, x *ir.Value) *ir.Value {
	b.in(ir.Attention)
	queries := m.queries()
	q := m.heads(b, "q", x, append(queries, ir.HeadDim)...)
	k := b.rename("keys", m.heads(b, "k", x, ir.Head, ir.HeadDim), ir.Seq, ir.KSeq)
	v := linear(m, b, projection{"v", "attn.v", m.qkvBias()}, x, ir.Head, ir.VDim)
	v = b.rename("values", v, ir.Seq, ir.KSeq)
	out := append(queries, ir.VDim)
	o := b.attention("attn", q, k, v, m.scores(b), append([]ir.Dim{ir.Batch, ir.Seq}, out...)...)
	return back(m, b, projection{"o", "attn.o", m.AttentionBias}, o, out...)
}

// queries returns the dims of a query's heads: K/V heads, and the queries of each if there are several.
func (m *model) queries() []ir.Dim {
	if m.Heads == m.KVHeads {
		return []ir.Dim{ir.Head}
	}
	return []ir.Dim{ir.Head, ir.Group}
}

func (m *model) qkvBias() bool { return m.QKVBias || m.AttentionBias }

// heads builds queries or keys: projected, and normalized and rotated by position if the model does so.
func (m *model) heads(b *builder, name string, x *ir.Value, dims ...ir.Dim) *ir.Value {
	y := linear(m, b, projection{name, "attn." + name, m.qkvBias()}, x, dims...)
	if m.QKNorm {
		y = m.norm(m, b, "attn."+name+"_norm", y, ir.HeadDim)
	}
	if m.position != spec.Rotary {
		return y
	}
	rope := ir.Attr{Dim: ir.HeadDim, Theta: m.RopeTheta, Rope: m.RopeScaling.Text()}
	if m.RotaryDim < m.HeadDim {
		rope.Turn = m.RotaryDim
	}
	if m.LocalTheta > 0 {
		rope.Layers, rope.Local = m.Local, m.LocalTheta
	}
	return b.same(name+"_rot", ir.OpRope, rope, y)
}

// scores returns attention's attributes.
func (m *model) scores(b *builder) ir.Attr {
	mask := ir.AttentionMask{Causal: !m.Bidirectional, Documents: m.opt.Documents}
	a := ir.Attr{AttentionMask: mask, Scale: m.QueryScale, Drop: m.DropAttn, Softcap: m.AttentionSoftcap,
		Alibi: m.position == spec.Alibi}
	if a.Scale == 0 {
		a.Scale = 1 / math.Sqrt(float64(m.HeadDim))
	}
	if m.Window > 0 {
		a.Window, a.Layers = m.Window, m.Local
	}
	if a.Drop > 0 {
		a.Key = b.key()
	}
	return a
}
