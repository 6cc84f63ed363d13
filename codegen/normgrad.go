package codegen

import (
	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// allGradients are the functions of package gpu that compute all gradients of a norm.
var allGradients = map[ir.Op]string{ir.OpLayerNormDX: "LayerNormGrads", ir.OpRMSNormDX: "RMSNormGrads"}

// emitNormGrads writes all gradients of a norm: one call, or the separate ops if there is no kernel for the row. The
// sums come first then, because dx may overwrite their operands.
func emitNormGrads(e *emitter, g *ir.NormGradient) {
	for _, sum := range g.Sums() {
		e.results(sum)
	}
	call := []any{jen.Id("r"), normOperands(e, g), g.Gain.Outs[0]}
	switch {
	case g.DX.Op == ir.OpRMSNormDX:
	case g.Bias == nil:
		call = append(call, e.missing(g.Gain.Outs[0].Type))
	default:
		call = append(call, g.Bias.Outs[0])
	}
	e.unless(e.calling(e.runtime(allGradients[g.DX.Op]), call...), func() {
		for _, op := range append(g.Sums(), g.Node) {
			e.now = op
			emitters[op.Op](e, op)
		}
	})
}

// normOperands returns the operands of a norm's gradients as package gpu has them.
func normOperands(e *emitter, g *ir.NormGradient) jen.Code {
	dx, dy, x, gain := g.Node.Outs[0], g.DX.Args[0], g.DX.Args[1], g.DX.Args[2]
	rows, cols := e.rowsCols(dy.Type, gain.Type)
	fields := jen.Dict{
		jen.Id("DX"): jen.Id(e.name(dx)), jen.Id("DY"): jen.Id(e.name(dy)), jen.Id("X"): jen.Id(e.name(x)),
		jen.Id("Gain"): jen.Id(e.name(gain)), jen.Id("Rows"): jen.Lit(rows), jen.Id("Cols"): jen.Lit(cols),
		jen.Id("Eps"): jen.Lit(g.DX.Attr.Eps),
	}
	if g.More != nil {
		fields[jen.Id("More")] = jen.Id(e.name(g.More))
	}
	if g.DX.Attr.Unit {
		fields[jen.Id("Unit")] = jen.True()
	}
	return jen.Qual(gpuPath, "NormGrads").Index(elemCode(dx.Type)).Values(fields)
}
