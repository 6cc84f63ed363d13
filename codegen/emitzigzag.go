package codegen

import (
	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// isZigzag reports whether a rank's part of the dim is two runs of it.
func isZigzag(d ir.Extent) bool { return len(d.Axes) > 0 && d.Axes[0].IsZigzag() }

// where returns the rank's part of a dim as a cpu.Where.
func (e *emitter) where(d ir.Extent) jen.Code {
	if isZigzag(d) {
		return e.zigzag(d)
	}
	fields := jen.Dict{}
	if len(d.Axes) > 0 {
		fields[jen.Id("At")] = e.offset(d)
	}
	return jen.Qual(cpuPath, "Where").Values(fields)
}

// zigzag returns a variable for the rank's part of a dim in zigzag order, declared at its first use in the function.
func (e *emitter) zigzag(d ir.Extent) *jen.Statement {
	key := string(d.Dim) + " " + ir.Type{Dims: []ir.Extent{d}}.String()
	if e.wheres[key] == "" {
		name := e.fresh("where")
		n := e.p.Mesh.Ranks(d.Axes[:1])
		fn, args := "Zigzag", []jen.Code{jen.Id("r"), e.groupCode(d.Axes), jen.Lit(n), jen.Lit(d.Size)}
		if by := d.Axes[0].Turn(); by != 0 {
			fn, args = "ShiftedZigzag", append(args, jen.Lit(by))
		}
		e.body.Id(name).Op(":=").Add(rt(fn).Call(args...))
		if e.wheres == nil {
			e.wheres = map[string]string{}
		}
		e.wheres[key] = name
	}
	return jen.Id(e.wheres[key])
}
