package codegen

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// normGrad is the gradient of a norm's input, with the gradients of its gain and its bias that the same kernel
// computes.
type normGrad struct {
	dx, gain *ir.Node
	bias     *ir.Node  // nil if there is none
	more     *ir.Value // that the group of dx adds to its result; nil if there is none
}

// inputGrads are the gradients of norms' inputs: the op that computes the gradient of the gain, and the function of
// package gpu that computes all.
var inputGrads = map[ir.Op]struct {
	gain ir.Op
	all  string
}{
	ir.OpLayerNormDX: {ir.OpLayerNormDGain, "LayerNormGrads"},
	ir.OpRMSNormDX:   {ir.OpRMSNormDGain, "RMSNormGrads"},
}

// normGrads lets the kernel that computes the gradient of a norm's input also compute those of its gain and its bias,
// on a GPU and in 16 bits with sums in f32. They read the same operands. The sums are accumulators that nothing reads
// before the step's end, so that they may move. It returns the ops without those sums; u.normGrad has them.
func (u *fusion) normGrads(nodes []*ir.Node) []*ir.Node {
	for _, n := range slices.Clone(nodes) {
		g := u.inputGrad(n)
		if g == nil {
			continue
		}
		find := func(ok func(*ir.Node) bool) *ir.Node {
			i := slices.IndexFunc(nodes, ok)
			if i < 0 {
				return nil
			}
			found := nodes[i]
			nodes = slices.Delete(nodes, i, i+1)
			return found
		}
		g.gain = find(g.isGain)
		if g.gain == nil {
			continue
		}
		if g.dx.Op == ir.OpLayerNormDX {
			g.bias = find(g.isBias)
		}
		u.normGrad[n] = g
	}
	return nodes
}

// inputGrad returns the gradient of a norm's input that an op, or a group of it and an addition, computes, and nil for
// others.
func (u *fusion) inputGrad(n *ir.Node) *normGrad {
	body := n.Body
	if n.Op != ir.OpFused {
		body = []*ir.Node{n}
	}
	g := &normGrad{dx: body[0]}
	if inputGrads[g.dx.Op].all == "" || len(body) > 2 || len(n.Outs) != 1 || len(n.Joins()) > 0 || n.Attr.Round {
		return nil
	}
	out := n.Outs[0].Type
	if len(body) == 2 {
		g.more = other(body[1], g.dx.Outs[0])
		if body[1].Op != ir.OpAdd || g.more == g.dx.Outs[0] || body[1].Outs[0] != n.Outs[0] ||
			!inOrder(g.more.Type.Dims, out.Dims, nil) || g.more.Type.Elem != out.Elem {
			return nil
		}
	}
	otherType := func(v *ir.Value) bool { return v.Type.Elem != out.Elem }
	if !out.Elem.Narrow() || otherType(g.dx.Outs[0]) || slices.ContainsFunc(g.dx.Args, otherType) {
		return nil
	}
	return g
}

// isGain reports whether an op adds to the gradient of the norm's gain.
func (g *normGrad) isGain(n *ir.Node) bool {
	return n.Op == inputGrads[g.dx.Op].gain && n.Args[0] == g.dx.Args[0] && n.Args[1] == g.dx.Args[1] &&
		n.Attr.Eps == g.dx.Attr.Eps && g.isSum(n)
}

// isBias reports whether an op adds to the gradient of the norm's bias.
func (g *normGrad) isBias(n *ir.Node) bool {
	return n.Op == ir.OpReduceSum && n.Args[0] == g.dx.Args[0] && g.isSum(n)
}

// isSum reports whether an op adds a sum over rows to an f32 accumulator that has the dims of the gain.
func (g *normGrad) isSum(n *ir.Node) bool {
	return accumulates(n) && !n.Attr.Round && len(n.Joins()) == 0 && n.Outs[0].Type.Elem == ir.F32 &&
		inOrder(n.Outs[0].Type.Dims, g.dx.Args[2].Type.Dims, nil)
}

// sums returns the ops of the gradients of the gain and the bias.
func (g *normGrad) sums() []*ir.Node {
	if g.bias == nil {
		return []*ir.Node{g.gain}
	}
	return []*ir.Node{g.gain, g.bias}
}

// emitNormGrads writes all gradients of a norm: one call, or the separate ops if there is no kernel for the row. The
// sums come first then, because dx may overwrite their operands.
func emitNormGrads(e *emitter, n *ir.Node, g *normGrad) {
	for _, sum := range g.sums() {
		e.results(sum)
	}
	call := []any{jen.Id("r"), g.operands(e, n), g.gain.Outs[0]}
	switch {
	case g.dx.Op == ir.OpRMSNormDX:
	case g.bias == nil:
		call = append(call, e.missing(g.gain.Outs[0].Type))
	default:
		call = append(call, g.bias.Outs[0])
	}
	e.unless(e.calling(e.runtime(inputGrads[g.dx.Op].all), call...), func() {
		for _, op := range append(g.sums(), n) {
			e.now = op
			emitters[op.Op](e, op)
		}
	})
}

// operands returns the operands of a norm's gradients as package gpu has them.
func (g *normGrad) operands(e *emitter, n *ir.Node) jen.Code {
	dy, x, gain := g.dx.Args[0], g.dx.Args[1], g.dx.Args[2]
	rows, cols := e.rowsCols(dy.Type, gain.Type)
	fields := jen.Dict{
		jen.Id("DX"): jen.Id(e.name(n.Outs[0])), jen.Id("DY"): jen.Id(e.name(dy)), jen.Id("X"): jen.Id(e.name(x)),
		jen.Id("Gain"): jen.Id(e.name(gain)), jen.Id("Rows"): jen.Lit(rows), jen.Id("Cols"): jen.Lit(cols),
		jen.Id("Eps"): jen.Lit(g.dx.Attr.Eps),
	}
	if g.more != nil {
		fields[jen.Id("More")] = jen.Id(e.name(g.more))
	}
	if g.dx.Attr.Unit {
		fields[jen.Id("Unit")] = jen.True()
	}
	return jen.Qual(gpuPath, "NormGrads").Index(elemCode(n.Outs[0].Type)).Values(fields)
}
