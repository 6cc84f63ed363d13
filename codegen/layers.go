package codegen

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// inLocal returns an expression that is local in local layers and full in others. The layer is known at run time, so
// that all layers share the function.
func (e *emitter) inLocal(l ir.Layers, local, full *jen.Statement) *jen.Statement {
	if l == "" {
		return local
	}
	if !slices.Contains(e.patterns, l) {
		e.patterns = append(e.patterns, l)
	}
	return rt("Pick").Call(jen.Id(patternName(l)), jen.Id("b").Dot("Layer"), local, full)
}

// patternName of 5l1f is layers5l1f.
func patternName(l ir.Layers) string { return "layers" + string(l) }

// patternTables declares the patterns that functions use.
func (g *generator) patternTables() []jen.Code {
	var out []jen.Code
	for _, l := range g.patterns {
		out = append(out, jen.Commentf("%s is the repeating pattern of layers with local attention.", patternName(l)),
			jen.Var().Id(patternName(l)).Op("=").Add(rt("Layers")).ValuesFunc(func(v *jen.Group) {
				for _, local := range l.Pattern() {
					v.Lit(local)
				}
			}))
	}
	return out
}
