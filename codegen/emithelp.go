package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// kernel writes kern.Name(args).
func (e *emitter) kernel(name string, args ...any) { e.call(jen.Id("kern").Dot(name), args...) }

// call writes fn(args): values by their names, numbers and flags as literals, code as it is.
func (e *emitter) call(fn *jen.Statement, args ...any) {
	codes := make([]jen.Code, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *ir.Value:
			codes[i] = jen.Id(e.name(a))
		case int, float64, bool:
			codes[i] = jen.Lit(a)
		case jen.Code:
			codes[i] = a
		default:
			panic(fmt.Sprintf("codegen: argument of type %T", a))
		}
	}
	e.body.Add(fn.Call(codes...))
}

// alias makes a view's result another name of its operand.
func (e *emitter) alias(n *ir.Node) {
	e.known[n.Outs[0]] = true
	e.of[n.Outs[0]] = e.name(n.Args[0])
}

// acc tells whether the op adds to its result: a gradient's accumulator.
func (e *emitter) acc(n *ir.Node) bool { return n.Outs[0].Place.Region == ir.PlaceGrad }

// count is the number of local elements of some dims.
func (e *emitter) count(dims []ir.Extent) int {
	return ir.Type{Dims: dims}.LocalElems(e.p.Mesh)
}

// rowsCols splits a type into what comes before the dims of inner, and these.
func (e *emitter) rowsCols(t, inner ir.Type) (rows, cols int) {
	cols = e.count(inner.Dims)
	return e.count(t.Dims) / cols, cols
}

// around is the number of local elements before a dim, its local size, and the elements after it.
func (e *emitter) around(t ir.Type, d ir.Dim) (outer, size, inner int) {
	for i, x := range t.Dims {
		if x.Dim == d {
			return e.count(t.Dims[:i]), e.count(t.Dims[i : i+1]), e.count(t.Dims[i+1:])
		}
	}
	panic(fmt.Sprintf("codegen: %v has no dim %s", t, d))
}

// part is where the rank's part of a dim begins and how many of it are not padding.
func (e *emitter) part(d ir.Extent) (lo, size jen.Code) {
	if len(d.Axes) == 0 {
		return jen.Lit(0), jen.Lit(d.Size)
	}
	width := e.count([]ir.Extent{d})
	if d.Size%e.p.Mesh.Ranks(d.Axes) == 0 {
		return e.offset(d), jen.Lit(width)
	}
	l, n := e.fresh("lo"), e.fresh("valid")
	e.body.List(jen.Id(l), jen.Id(n)).Op(":=").Add(rt("Part")).Call(jen.Id("r"), e.groupCode(d.Axes), jen.Lit(width), jen.Lit(d.Size))
	e.body.List(jen.Id("_"), jen.Id("_")).Op("=").List(jen.Id(l), jen.Id(n))
	return jen.Id(l), jen.Id(n)
}

// lastDim is a type as rows of its last dim, and the rank's part of that.
func (e *emitter) lastDim(t ir.Type) (rows, cols int, lo, size jen.Code) {
	d := t.Dims[len(t.Dims)-1]
	cols = e.count([]ir.Extent{d})
	lo, size = e.part(d)
	return e.count(t.Dims) / cols, cols, lo, size
}
