package zoo

import "github.com/planc-dev/planc/ir"

// mla builds MLA (DeepSeek-AI 2024): keys and values, and usually queries, are projected from narrow latent
// vectors. The latent vectors are computed and normalized in the region of the residual stream, so that tensor
// parallelism gathers them instead of the stream, and the up-projections are split by heads. Only the last elements of
// a key have positions; they are shared by all heads.
func mla(m *model, b *builder, x *ir.Value) *ir.Value {
	q, in, weight := x, ir.Hidden, "attn.q"
	if m.QLatent > 0 {
		q, in, weight = m.latent(b, "q_latent", "attn.q_down", x, ir.QLatent), ir.QLatent, "attn.q_up"
	}
	kv := m.latent(b, "kv_latent", "attn.kv_down", x, ir.KVLatent)
	shared := b.matmul("k_shared", x, b.param("attn.k_shared", normal(m.InitStd), ir.Hidden, ir.RotaryDim),
		withLast(x, ir.RotaryDim)...)

	b.in(ir.Attention)
	up := func(name, weight string, y *ir.Value, in, out ir.Dim) *ir.Value {
		return b.matmul(name, y, b.param(weight, normal(m.InitStd), in, ir.Head, out), ir.Batch, ir.Seq, ir.Head, out)
	}
	q = b.same("q_rot", ir.OpRope, m.turn(ir.HeadDim, m.PlainDim), up("q", weight, q, in, ir.HeadDim))
	k := up("k", "attn.k", kv, ir.KVLatent, plainDim)
	k = b.op("k_whole", ir.OpJoin, ir.Attr{}, []ir.Dim{ir.Batch, ir.Seq, ir.Head, ir.HeadDim}, k,
		b.same("k_rot", ir.OpRope, m.turn(ir.RotaryDim, 0), shared))
	k = b.rename("keys", k, ir.Seq, ir.KSeq)
	v := b.rename("values", up("v", "attn.v", kv, ir.KVLatent, ir.VDim), ir.Seq, ir.KSeq)
	o := b.attention("attn", q, k, v, m.scores(b), ir.Batch, ir.Seq, ir.Head, ir.VDim)
	return back(m, b, projection{"o", "attn.o", false}, o, ir.Head, ir.VDim)
}

// mlaEps is added to the variance in the norms of the latent vectors. DeepSeek's model code uses the default of its
// norm, whatever rms_norm_eps of config.json is (transformers 5.23, q_a_layernorm and kv_a_layernorm).
const mlaEps = 1e-6

// latent builds a normalized latent vector.
func (m *model) latent(b *builder, name, param string, x *ir.Value, d ir.Dim) *ir.Value {
	y := b.matmul(name, x, b.param(param, normal(m.InitStd), ir.Hidden, d), withLast(x, d)...)
	return rmsNormBy(m, b, param+"_norm", y, d, mlaEps)
}

// turn returns the attributes of rotary positions over the last elements of a dim, starting with element from.
func (m *model) turn(d ir.Dim, from int) ir.Attr {
	a := ir.Attr{Dim: d, Theta: m.RopeTheta, Rope: m.RopeScaling.Text(), Offset: from, Pairs: m.RotaryNext}
	if from > 0 {
		a.Turn = m.RotaryDim
	}
	return a
}

// routeBias returns the bias of experts' scores for the choice, if the model has one. Gradients do not change it: see
// [ir.Param.Balance].
func (m *model) routeBias(b *builder) []*ir.Value {
	if !m.RouteBias {
		return nil
	}
	return []*ir.Value{b.param("moe.bias", ir.Param{Init: "zeros", Balance: true}, ir.Candidate)}
}
