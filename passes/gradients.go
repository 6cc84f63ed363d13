package passes

import "github.com/planc-dev/planc/ir"

// gradients has a function for each differentiable op. Given the gradients of n's results (nil if there is none), it
// adds the gradients of n's operands. Tests require an entry exactly for the ops that the op table marks as
// differentiable.
var gradients = [ir.NumOps]func(g *gradient, n *ir.Node, d []*ir.Value){
	ir.OpMatMul: func(g *gradient, n *ir.Node, d []*ir.Value) {
		for i, a := range n.Args {
			if g.need[a] {
				g.add(a, g.op(ir.OpMatMul, ir.Attr{In: fp8Gradient(n, i)}, a.Type, matmulOrder(i, d[0],
					g.use(n.Args[1-i]))...))
			}
		}
	},
	ir.OpAdd: func(g *gradient, n *ir.Node, d []*ir.Value) {
		for _, a := range n.Args {
			if g.need[a] {
				g.add(a, g.reduced(d[0], a.Type))
			}
		}
	},
	ir.OpSub: func(g *gradient, n *ir.Node, d []*ir.Value) {
		if a := n.Args[0]; g.need[a] {
			g.add(a, g.reduced(d[0], a.Type))
		}
		if b := n.Args[1]; g.need[b] {
			g.add(b, g.op(ir.OpScale, ir.Attr{Scale: -1}, b.Type, g.reduced(d[0], b.Type)))
		}
	},
	ir.OpMul: func(g *gradient, n *ir.Node, d []*ir.Value) {
		for i, a := range n.Args {
			if g.need[a] {
				g.add(a, g.reduced(g.op(ir.OpMul, ir.Attr{}, n.Outs[0].Type, d[0], g.use(n.Args[1-i])), a.Type))
			}
		}
	},
	ir.OpScale:   same,
	ir.OpDropout: same,
	ir.OpRope: func(g *gradient, n *ir.Node, d []*ir.Value) {
		attr := n.Attr
		attr.Inverse = !attr.Inverse
		g.add(n.Args[0], g.op(ir.OpRope, attr, n.Args[0].Type, d[0]))
	},
	ir.OpGelu:    pointwise(ir.OpGeluGrad),
	ir.OpGeluErf: pointwise(ir.OpGeluErfGrad),
	ir.OpSilu:    pointwise(ir.OpSiluGrad),
	ir.OpSigmoid: pointwise(ir.OpSigmoidGrad),
	ir.OpRelu:    pointwise(ir.OpReluGrad),
	ir.OpSoftcap: pointwise(ir.OpSoftcapGrad),
	ir.OpReduceSum: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpBroadcast, ir.Attr{}, n.Args[0].Type, d[0]))
	},
	ir.OpBroadcast: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.reduced(d[0], n.Args[0].Type))
	},
	ir.OpJoin: func(g *gradient, n *ir.Node, d []*ir.Value) {
		_, _, first, second, whole := n.JoinDims()
		a, b := n.Args[0], n.Args[1]
		if g.need[a] {
			g.add(a, g.op(ir.OpPart, ir.Attr{Dim: whole.Dim}, a.Type, d[0]))
		}
		if g.need[b] {
			t := a.Type.Clone()
			t.Dims[len(t.Dims)-1] = second
			g.add(b, g.reduced(g.op(ir.OpPart, ir.Attr{Dim: whole.Dim, Offset: first.Size}, t, d[0]), b.Type))
		}
	},
	ir.OpRename: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpRename, ir.Attr{Dim: n.Attr.To, To: n.Attr.Dim}, n.Args[0].Type, d[0]))
	},
	// The first side, which comes last, has the gradients of all.
	ir.OpSide: func(g *gradient, n *ir.Node, d []*ir.Value) {
		if n.Attr.Offset > 0 {
			return
		}
		whole, ds := n.Args[0], d
		for _, m := range g.seg.Forward.Nodes {
			if m.Op == ir.OpSide && m.Args[0] == whole && m != n {
				ds = append(ds, g.sum(m.Outs[0]))
			}
		}
		g.add(whole, g.op(ir.OpSides, ir.Attr{}, whole.Type, ds...))
	},
	ir.OpLayerNorm: norm(ir.OpLayerNormDX, ir.OpLayerNormDGain),
	ir.OpRMSNorm:   norm(ir.OpRMSNormDX, ir.OpRMSNormDGain),
	ir.OpEmbed: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpEmbedGrad, ir.Attr{Frozen: n.Attr.Frozen}, n.Args[0].Type, d[0], g.use(n.Args[1])))
	},
	ir.OpAttention: func(g *gradient, n *ir.Node, d []*ir.Value) {
		q, k, v := n.Args[0], n.Args[1], n.Args[2]
		if whole := ir.WholeOf(n); whole != nil {
			g.add(whole, g.op(ir.OpAttentionGradSides, n.Attr, whole.Type, d[0], g.use(q), g.use(k), g.use(v),
				g.use(n.Outs[0]), g.use(n.Outs[1])))
			return
		}
		dq := g.op(ir.OpAttentionGrad, n.Attr, q.Type, d[0], g.use(q), g.use(k), g.use(v), g.use(n.Outs[0]),
			g.use(n.Outs[1]))
		node := dq.Def
		for _, a := range []*ir.Value{k, v} {
			node.Outs = append(node.Outs, &ir.Value{Name: g.name("d." + node.From), Type: a.Type.Clone(), Def: node})
		}
		for i, a := range n.Args {
			g.add(a, node.Outs[i])
		}
	},
	ir.OpLogSumExp: func(g *gradient, n *ir.Node, d []*ir.Value) {
		x := n.Args[0]
		g.add(x, g.op(ir.OpLogSumExpGrad, ir.Attr{}, x.Type, d[0], g.use(x), g.use(n.Outs[0])))
	},
	ir.OpPick: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpPickGrad, ir.Attr{}, n.Args[0].Type, d[0], g.use(n.Args[1])))
	},
	// the numbers of an expert's choices have no gradient
	ir.OpBalance: func(g *gradient, n *ir.Node, d []*ir.Value) {
		x := n.Args[0]
		g.add(x, g.op(ir.OpBalanceGrad, n.Attr, x.Type, d[0], g.use(x), g.use(n.Args[1])))
	},
	ir.OpRoute: func(g *gradient, n *ir.Node, d []*ir.Value) {
		if d[0] != nil {
			x := n.Args[0]
			g.add(x, g.op(ir.OpRouteGrad, n.Attr, x.Type, d[0], g.use(x), g.use(n.Outs[0]), g.use(n.Outs[1])))
		}
		if len(n.Args) > 1 { // not a gradient, but the counts against which the bias moves
			bias := n.Args[1]
			t := bias.Type.Clone()
			t.Elem = t.Elem.Statistic()
			g.add(bias, g.op(ir.OpTally, ir.Attr{}, t, g.use(n.Outs[1])))
		}
	},
	ir.OpDeal: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpCollect, n.Attr, n.Args[0].Type, d[0], g.use(n.Args[1])))
	},
	ir.OpCollect: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpDeal, n.Attr, n.Args[0].Type, d[0], g.use(n.Args[1])))
	},
	ir.OpDispatch: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpCombine, n.Attr, n.Args[0].Type, d[0], g.use(n.Args[1])))
	},
	ir.OpCombine: func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(ir.OpDispatch, n.Attr, n.Args[0].Type, d[0], g.use(n.Args[1])))
	},
	// The seed: the loss is a mean over the unmasked tokens of the global batch.
	ir.OpAccumulate: func(g *gradient, n *ir.Node, d []*ir.Value) {
		attr := ir.Attr{}
		if n.Attr.Into == ir.IntoAux {
			attr.Into = n.Attr.Into
		}
		g.add(n.Args[0], g.op(ir.OpInvCount, attr, n.Args[0].Type))
	},
}

// matmulOrder orders the operands so that the result's dims are in memory order: d(a) = d·b, d(b) = a·d.
func matmulOrder(i int, d, other *ir.Value) []*ir.Value {
	if i == 0 {
		return []*ir.Value{d, other}
	}
	return []*ir.Value{other, d}
}

// same is for ops that are their own gradient.
func same(g *gradient, n *ir.Node, d []*ir.Value) {
	g.add(n.Args[0], g.op(n.Op, n.Attr, n.Args[0].Type, d[0]))
}

func pointwise(op ir.Op) func(*gradient, *ir.Node, []*ir.Value) {
	return func(g *gradient, n *ir.Node, d []*ir.Value) {
		g.add(n.Args[0], g.op(op, n.Attr, n.Args[0].Type, d[0], g.use(n.Args[0])))
	}
}

func norm(dx, dgain ir.Op) func(*gradient, *ir.Node, []*ir.Value) {
	return func(g *gradient, n *ir.Node, d []*ir.Value) {
		x, gain := n.Args[0], n.Args[1]
		if g.need[gain] {
			g.add(gain, g.op(dgain, ir.Attr{Eps: n.Attr.Eps}, gain.Type, d[0], g.use(x)))
		}
		if len(n.Args) > 2 {
			g.add(n.Args[2], g.reduced(d[0], n.Args[2].Type))
		}
		if g.need[x] {
			g.add(x, g.op(dx, n.Attr, x.Type, d[0], g.use(x), g.use(gain)))
		}
	}
}

// reduced sums d over the dims that t lacks.
func (g *gradient) reduced(d *ir.Value, t ir.Type) *ir.Value {
	for _, e := range d.Type.Dims {
		if !t.Has(e.Dim) {
			return g.op(ir.OpReduceSum, ir.Attr{}, t, d)
		}
	}
	return d
}
