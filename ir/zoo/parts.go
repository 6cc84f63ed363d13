package zoo

import "github.com/planc-dev/planc/ir"

// layerNorm declares and applies a layer norm over d.
func layerNorm(m *model, b *builder, name string, x *ir.Value, d ir.Dim) *ir.Value {
	operands := []*ir.Value{b.param(name+".gain", ones, d)}
	if !m.BiasFreeNorm {
		operands = append(operands, b.param(name+".bias", zeros, d))
	}
	return b.same(name, ir.OpLayerNorm, ir.Attr{Eps: m.NormEps}, x, operands...)
}

// rmsNorm declares and applies an RMSNorm over d.
func rmsNorm(m *model, b *builder, name string, x *ir.Value, d ir.Dim) *ir.Value {
	return rmsNormBy(m, b, name, x, d, m.NormEps)
}

// rmsNormBy is rmsNorm with an eps of its own.
func rmsNormBy(m *model, b *builder, name string, x *ir.Value, d ir.Dim, eps float64) *ir.Value {
	init := ones
	if m.UnitNorm {
		init = zeros // the gain is 1 + the parameter
	}
	return b.same(name, ir.OpRMSNorm, ir.Attr{Eps: eps, Unit: m.UnitNorm}, x, b.param(name+".gain", init, d))
}

// projection is a linear layer between the stream and other dims.
type projection struct {
	name    string // of its result
	param   string // of its weight
	hasBias bool
}

// linear multiplies the stream by a weight that adds dims, and adds a bias if the projection has one.
func linear(m *model, b *builder, p projection, x *ir.Value, dims ...ir.Dim) *ir.Value {
	w := b.param(p.param, normal(m.InitStd), append([]ir.Dim{ir.Hidden}, dims...)...)
	out := append([]ir.Dim{ir.Batch, ir.Seq}, dims...)
	if !p.hasBias {
		return b.matmul(p.name, x, w, out...)
	}
	y := b.matmul(p.name+"0", x, w, out...)
	return b.same(p.name, ir.OpAdd, ir.Attr{}, y, b.param(p.param+"_bias", zeros, dims...))
}

// back projects back to the residual stream; its bias is added in the stream's region.
func back(m *model, b *builder, p projection, x *ir.Value, dims ...ir.Dim) *ir.Value {
	w := b.param(p.param, normal(m.residualStd()), append(append([]ir.Dim{}, dims...), ir.Hidden)...)
	y := b.matmul(p.name, x, w, stream...)
	b.in(ir.Norm)
	if p.hasBias {
		y = b.same(p.name+"_biased", ir.OpAdd, ir.Attr{}, y, b.param(p.param+"_bias", zeros, ir.Hidden))
	}
	return y
}

// plainMLP builds up-projection, activation, down-projection.
func plainMLP(m *model, b *builder, x *ir.Value) *ir.Value {
	b.in(ir.MLP)
	up := linear(m, b, projection{"up", "mlp.up", m.MLPBias}, x, ir.FFN)
	act := b.same("act", m.act(), ir.Attr{}, up)
	return back(m, b, projection{"down", "mlp.down", m.MLPBias}, act, ir.FFN)
}

// gatedMLP builds down(activation(gate) · up): SwiGLU or GeGLU (Shazeer 2020).
func gatedMLP(m *model, b *builder, x *ir.Value) *ir.Value {
	b.in(ir.MLP)
	gate := linear(m, b, projection{"gate", "mlp.gate", m.MLPBias}, x, ir.FFN)
	act := b.same("act", m.act(), ir.Attr{}, gate)
	up := linear(m, b, projection{"up", "mlp.up", m.MLPBias}, x, ir.FFN)
	both := b.same("gated", ir.OpMul, ir.Attr{}, act, up)
	return back(m, b, projection{"down", "mlp.down", m.MLPBias}, both, ir.FFN)
}
