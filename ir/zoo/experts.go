package zoo

import "github.com/planc-dev/planc/ir"

// experts is an MLP of which each token goes through a few parts (Shazeer et al. 2017): a router chooses them and says
// how much each counts. Places of the experts are as many as the passes give a round; ops marked so are done for each.
//
// The weight of an expert is put on its hidden layer, before the projection back: that is linear, so the sum is the
// same, and the weight's gradient needs nothing that is not at hand there.
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

// sent is what the experts that tokens are sent to make of them.
func (m *model) sent(b *builder, x *ir.Value) *ir.Value {
	b.in(ir.Dispatch)
	choose := []ir.Dim{ir.Batch, ir.Seq, ir.Choice}
	scores := b.matmul("router", x, b.param("moe.router", normal(m.InitStd), ir.Hidden, ir.Candidate),
		with(x, ir.Candidate)...)
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

// route is how the router's outputs become choices and weights.
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

// expertMLP is each expert's gated MLP on the tokens at its places, times their weights.
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
