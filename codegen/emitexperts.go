package codegen

import (
	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// nodes writes a sequence of ops. The ops of the rounds of experts form one loop. Their results are declared before it,
// because later ops read them.
func (e *emitter) nodes(ns []*ir.Node) {
	for len(ns) > 0 {
		if !ns[0].Attr.Round {
			e.node(ns[0])
			ns = ns[1:]
			continue
		}
		end := 0
		for end < len(ns) && ns[end].Attr.Round {
			e.results(ns[end])
			end++
		}
		outer := e.body
		outer.For(jen.Id("round").Op(":=").Range().Id("rounds")).BlockFunc(func(b *jen.Group) {
			e.body = b
			for _, n := range ns[:end] {
				e.node(n)
			}
		})
		e.body, ns = outer, ns[end:]
	}
}

// round returns the number of the round if there are several.
func round(n *ir.Node) jen.Code {
	if n.Attr.Round {
		return jen.Id("round")
	}
	return jen.Lit(0)
}

func emitRounds(e *emitter, n *ir.Node) {
	experts := 0
	for _, m := range e.f.Nodes {
		if m.Op == ir.OpDispatch {
			x, _ := m.Outs[0].Type.Extent(ir.Expert)
			experts = x.Size
		}
	}
	e.groups.number(n.Attr.Axes)
	e.body.Id("rounds").Op(":=").Add(e.runtime("Rounds")).Call(jen.Id("r"), e.groups.code(n.Attr.Axes),
		jen.Id(e.name(n.Args[0])), jen.Lit(experts), jen.Lit(n.Attr.Max))
}

func (e *emitter) routeShape(n *ir.Node, x, index ir.Type) jen.Code {
	candidates, choices := x.Dims[len(x.Dims)-1], index.Dims[len(index.Dims)-1]
	scale := n.Attr.Scale
	if scale == 0 {
		scale = 1
	}
	d := jen.Dict{jen.Id("Rows"): jen.Lit(e.count(x.Dims[:len(x.Dims)-1])),
		jen.Id("Experts"): jen.Lit(candidates.Size), jen.Id("Choices"): jen.Lit(choices.Size),
		jen.Id("Scale"): jen.Lit(scale)}
	if n.Attr.Eps != 0 {
		d[jen.Id("Eps")] = jen.Lit(n.Attr.Eps)
	}
	for name, on := range map[string]bool{"Sigmoid": n.Attr.Gate == "sigmoid", "Share": n.Attr.Share} {
		if on {
			d[jen.Id(name)] = jen.True()
		}
	}
	if n.Attr.Groups > 1 {
		d[jen.Id("Groups")], d[jen.Id("Best")] = jen.Lit(n.Attr.Groups), jen.Lit(n.Attr.Best)
	}
	return jen.Qual(cpuPath, "RouteShape").Values(d)
}

func emitRoute(e *emitter, n *ir.Node) {
	args := []any{n.Outs[0], n.Outs[1], n.Args[0], e.missing(n.Args[0].Type)}
	if len(n.Args) > 1 {
		args[3] = n.Args[1]
	}
	index := n.Outs[1].Type
	shape := e.routeShape(n, n.Args[0].Type, index)
	if !e.gpu() { // choices on a device are not reported
		shape = rt("WithChoiceObserver").Call(jen.Id("r"), jen.Id("b"), e.where(index.Dims[1]),
			jen.Lit(e.count(index.Dims[1:2])), shape)
	}
	e.kernel("Route", append(args, shape)...)
}

func emitRouteGrad(e *emitter, n *ir.Node) {
	e.kernel("RouteGrad", n.Outs[0], n.Args[0], n.Args[1], n.Args[2], n.Args[3], e.routeShape(n, n.Args[1].Type,
		n.Args[3].Type))
}

// emitPlaces writes an op that moves tokens to experts' slots or back.
func emitPlaces(kernel string) func(*emitter, *ir.Node) {
	return func(e *emitter, n *ir.Node) {
		places, index := n.Outs[0].Type, n.Args[1].Type
		if !places.Has(ir.Expert) {
			places = n.Args[0].Type
		}
		experts, _ := places.Extent(ir.Expert)
		slots, _ := places.Extent(n.Attr.Dim)
		choices, choose := index.Extent(ir.Choice)
		if !choose {
			choices.Size = 1
		}
		d := jen.Dict{jen.Id("Tokens"): jen.Lit(e.count(index.Dims) / choices.Size),
			jen.Id("Choices"): jen.Lit(choices.Size), jen.Id("Experts"): jen.Lit(experts.Size),
			jen.Id("Slots"): jen.Lit(e.count([]ir.Extent{slots})), jen.Id("Width"): jen.Lit(e.count(places.Dims[2:])),
			jen.Id("Round"): round(n)}
		e.kernel(kernel, n.Outs[0], n.Args[0], n.Args[1], jen.Qual(cpuPath, "SlotShape").Values(d))
	}
}
