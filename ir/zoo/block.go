package zoo

import "github.com/planc-dev/planc/ir"

// block builds one layer of a segment: attention and an MLP, each added to the residual stream.
func block(m *model, segment string, mlp func(*model, *builder, *ir.Value) *ir.Value) *ir.Func {
	b := m.builder(segment + ".forward")
	x := b.input("x", b.elem, stream...)
	attend := attention
	if m.KVLatent > 0 {
		attend = mla
	}
	a := m.half(b, "ln1", "o_drop", x, attend)
	if m.ParallelResidual { // attention and MLP both read x
		f := m.half(b, "ln2", "down_drop", x, mlp)
		h := b.same("h", ir.OpAdd, ir.Attr{}, x, a)
		return b.ret(b.same("y", ir.OpAdd, ir.Attr{}, h, f))
	}
	h := m.sum(b, "ln1", "h", x, a)
	f := m.half(b, "ln2", "down_drop", h, mlp)
	return b.ret(m.sum(b, "ln2", "y", h, f))
}

// half builds what attention or the MLP adds to x, with the model's norms.
func (m *model) half(b *builder, ln, drop string, x *ir.Value,
	part func(*model, *builder, *ir.Value) *ir.Value) *ir.Value {
	b.in(ir.Norm)
	if !m.PostNorm {
		x = m.norm(m, b, ln, x, ir.Hidden)
	}
	y := part(m, b, x)
	if m.SandwichNorm {
		y = m.norm(m, b, ln+"_post", y, ir.Hidden)
	}
	return b.dropout(drop, y, m.DropResid)
}

// sum adds to the residual stream, followed by a norm if the model has its norms after the sum.
func (m *model) sum(b *builder, ln, name string, x, y *ir.Value) *ir.Value {
	s := b.same(name, ir.OpAdd, ir.Attr{}, x, y)
	if m.PostNorm {
		s = m.norm(m, b, ln, s, ir.Hidden)
	}
	return s
}
