package zoo

import "github.com/planc-dev/planc/ir"

// experts builds a mixture of experts, in which each token passes only some of the experts (Shazeer et al. 2017). A
// router chooses them and computes their weights. Passes set the number of slots per round; ops marked Round run once
// per round.
//
// The weight of an expert multiplies its hidden layer, before the down-projection. Because the projection is linear,
// the sum is the same, and the weight's gradient needs only values that exist there.
func experts(m *model, b *builder, x *ir.Value) *ir.Value {
	y := m.sent(b, x)
	if m.SharedFFN > 0 {
		b.in(ir.MLP)
		shared := gatedMLP(m, b, x)
		if m.SharedGate {
			b.in(ir.Norm)
			gate := b.op("shared_gate", ir.OpReduceSum, ir.Attr{}, tokens, b.same("shared_gates", ir.OpMul, ir.Attr{},
				x, b.param("mlp.shared_gate", normal(m.InitStd), ir.Hidden)))
			shared = b.same("shared", ir.OpMul, ir.Attr{}, shared, b.same("shared_part", ir.OpSigmoid, ir.Attr{}, gate))
		}
		b.in(ir.Norm)
		y = b.same("both_parts", ir.OpAdd, ir.Attr{}, y, shared)
	}
	return y
}

// sent builds the routed experts.
func (m *model) sent(b *builder, x *ir.Value) *ir.Value {
	b.in(ir.Dispatch)
	choose := []ir.Dim{ir.Batch, ir.Seq, ir.Choice}
	scores := b.matmul("router", x, b.param("moe.router", normal(m.InitStd), ir.Hidden, ir.Candidate),
		withLast(x, ir.Candidate)...)
	weight := b.op("weight", ir.OpRoute, m.route(), choose, append([]*ir.Value{scores}, m.routeBias(b)...)...)
	index := &ir.Value{Name: "index", Type: b.typ(ir.I32, choose), Def: weight.Def}
	weight.Def.Outs = append(weight.Def.Outs, index)

	m.balance(b, scores, index)
	index = m.limited(b, index)
	places := ir.Attr{Dim: ir.SlotDim, Round: true}
	in := b.op("sent", ir.OpDispatch, places, []ir.Dim{ir.Expert, ir.SlotDim, ir.Hidden}, x, index)
	part := b.op("part", ir.OpDeal, places, []ir.Dim{ir.Expert, ir.SlotDim}, weight, index)

	b.in(ir.Experts)
	out := m.expertMLP(b, in, part)
	b.in(ir.Dispatch)
	return b.op("combined", ir.OpCombine, places, dimsOf(x), out, index)
}

// route returns the attributes that turn the router's outputs into choices and weights.
func (m *model) route() ir.Attr {
	a := ir.Attr{Dim: ir.Candidate, Gate: "softmax", Share: m.RouteShare, Eps: m.RouteEps}
	if m.RouteGate != "" {
		a.Gate = m.RouteGate
	}
	if m.RouteScale != 1 {
		a.Scale = m.RouteScale
	}
	if m.Groups > 1 {
		a.Groups, a.Best = m.Groups, m.BestGroups
	}
	return a
}

// expertMLP builds each expert's SwiGLU or GeGLU MLP on the tokens in its slots, times their weights.
func (m *model) expertMLP(b *builder, x, part *ir.Value) *ir.Value {
	wide := []ir.Dim{ir.Expert, ir.SlotDim, ir.ExpertFFN}
	round := ir.Attr{Round: true}
	mul := func(name string, y *ir.Value, param string, dims []ir.Dim, w ...ir.Dim) *ir.Value {
		return b.op(name, ir.OpMatMul, round, dims, y, b.param(param, normal(m.InitStd), w...))
	}
	gate := mul("moe_gate", x, "moe.gate", wide, ir.Expert, ir.Hidden, ir.ExpertFFN)
	act := b.same("moe_act", m.act(), round, gate)
	up := mul("moe_up", x, "moe.up", wide, ir.Expert, ir.Hidden, ir.ExpertFFN)
	both := b.same("moe_gated", ir.OpMul, round, act, up)
	weighted := b.same("weighted", ir.OpMul, round, both, part)
	return mul("moe_down", weighted, "moe.down", dimsOf(x), ir.Expert, ir.ExpertFFN, ir.Hidden)
}
