package codegen

import (
	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// emitScalar writes an addition to a number of the step.
func emitScalar(e *emitter, n *ir.Node) {
	if e.gpu() {
		e.own(map[bool]string{true: "AddAux", false: "AddLoss"}[n.Attr.Into == ir.IntoAux], n.Args[0])
		return
	}
	x := jen.Float64().Call(jen.Id(e.name(n.Args[0])).Index(jen.Lit(0)))
	if n.Attr.Into == ir.IntoAux {
		e.body.Add(rt("AddAux").Call(jen.Id("r"), x))
		return
	}
	e.body.Id("r").Dot("LossSum").Op("+=").Add(x)
}

// emitLimit writes the op that leaves each expert its first choices of each sequence.
func emitLimit(e *emitter, n *ir.Node) {
	index := n.Args[0].Type
	sequence := e.count(index.Dims[len(index.Dims)-2:])
	experts := 0
	for _, m := range e.f.Nodes {
		if m.Op == ir.OpDispatch {
			x, _ := m.Outs[0].Type.Extent(ir.Expert)
			experts = x.Size
		}
	}
	limit := func(args ...any) { e.call(jen.Qual(cpuPath, "LimitChoices"), args...) }
	if e.gpu() {
		limit = func(args ...any) { e.own("LimitChoices", args...) }
	}
	limit(n.Outs[0], n.Args[0], e.count(index.Dims)/sequence, sequence, experts, n.Attr.Max)
}

func emitTally(e *emitter, n *ir.Node) {
	tally := n.Outs[0].Type
	groups, choices := e.tokenGroups(n.Args[0].Type, tally)
	e.kernel("Tally", n.Outs[0], n.Args[0], groups, choices, tally.Dims[len(tally.Dims)-1].Size)
}

// balanceShape describes the grouping of tokens. The scale counts the tokens of all ranks.
func (e *emitter) balanceShape(n *ir.Node, x, tally ir.Type) jen.Code {
	experts := tally.Dims[len(tally.Dims)-1].Size
	groups, each := e.tokenGroups(x, tally)
	tokens, sequence := 1, 1
	for _, d := range x.Dims[:len(x.Dims)-1] {
		if !tally.Has(d.Dim) {
			tokens *= d.Size
		}
		if d.Dim == ir.Seq {
			sequence = d.Size
		}
	}
	d := jen.Dict{jen.Id("Groups"): jen.Lit(groups), jen.Id("Tokens"): jen.Lit(each / experts),
		jen.Id("Experts"): jen.Lit(experts),
		jen.Id("Scale"):   jen.Lit(float64(experts) / float64(tokens) / float64(sequence))}
	if n.Attr.Gate == "sigmoid" {
		d[jen.Id("Sigmoid")] = jen.True()
	}
	return jen.Qual(cpuPath, "BalanceShape").Values(d)
}

func emitBalance(e *emitter, n *ir.Node) {
	e.kernel("Balance", n.Outs[0], n.Args[0], n.Args[1], e.balanceShape(n, n.Args[0].Type, n.Args[1].Type))
}

func emitBalanceGrad(e *emitter, n *ir.Node) {
	e.kernel("BalanceGrad", n.Outs[0], n.Args[0], n.Args[1], n.Args[2], e.balanceShape(n, n.Args[1].Type,
		n.Args[2].Type))
}
