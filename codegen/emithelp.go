package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// kernel writes kern.Name(args). Values of 16 bits go through the rank's scratch: operands, and results that are added
// to, are widened into it, results are rounded out of it.
func (e *emitter) kernel(name string, args ...any) {
	if e.gpu() {
		for i, v := range e.now.Joins() {
			e.copied(e.now.Outs[i], v)
		}
		e.called(name, args...)
		return
	}
	e.kernelWith(e.now.Widened(), name, args...)
}

// kernelWith is a CPU's kernel, for which these values are widened.
func (e *emitter) kernelWith(widened []*ir.Value, name string, args ...any) {
	wide := map[*ir.Value]string{}
	for _, v := range widened {
		e.widen(v, wide)
		if len(wide) == 1 {
			defer func() { e.body.Add(rt("FreeScratch").Call(jen.Id("r"))) }()
		}
	}
	for i, a := range args {
		if v, ok := a.(*ir.Value); ok && wide[v] != "" {
			args[i] = jen.Id(wide[v])
		}
	}
	for i, v := range e.now.Joins() { // what other keys have left in the result
		to := wide[e.now.Outs[i]]
		if to == "" {
			to = e.name(e.now.Outs[i])
		}
		e.body.Copy(jen.Id(to), jen.Id(e.name(v)))
	}
	e.called(name, args...)
	for _, o := range e.now.Outs {
		if wide[o] != "" {
			e.body.Add(rt("Narrow").Call(jen.Id(e.name(o)), jen.Id(wide[o])))
		}
	}
}

// widen declares a value's wide twin.
func (e *emitter) widen(v *ir.Value, wide map[*ir.Value]string) {
	wide[v] = e.fresh(e.name(v) + "Wide")
	from := rt("Widen").Call(jen.Id("r"), jen.Id(e.name(v)))
	if v.Def == e.now && !e.acc(e.now) && !e.sums(e.now) {
		from = rt("Scratch").Call(jen.Id("r"), jen.Len(jen.Id(e.name(v))))
	}
	e.body.Id(wide[v]).Op(":=").Add(from)
}

// stored writes a kernel that moves numbers, or the runtime's own where they are not stored as kernels have them.
func (e *emitter) stored(kernel, own string, to, from *ir.Value, args ...any) {
	all := append([]any{to, from}, args...)
	if e.gpu() || to.Type.Elem == from.Type.Elem && !to.Type.Elem.Narrow() {
		e.kernel(kernel, all...)
	} else {
		e.call(rt(own), all...)
	}
}

// call writes fn(args): values by their names, numbers and flags as literals, code as it is.
func (e *emitter) call(fn *jen.Statement, args ...any) { e.body.Add(e.calling(fn, args...)) }

// calling is the call.
func (e *emitter) calling(fn *jen.Statement, args ...any) *jen.Statement {
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
	return fn.Call(codes...)
}

// alias makes a view's result another name of its operand.
func (e *emitter) alias(n *ir.Node) {
	e.known[n.Outs[0]] = true
	e.of[n.Outs[0]] = e.name(n.Args[0])
}

// acc reports whether the op adds to its result: a gradient's accumulator.
func (e *emitter) acc(n *ir.Node) bool { return n.Outs[0].Place.Region == ir.PlaceGrad }

// sums reports whether the op adds to its result from round to round.
func (e *emitter) sums(n *ir.Node) bool {
	return n.Attr.Round && (n.Op == ir.OpCombine || n.Op == ir.OpCollect)
}

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
	e.body.List(jen.Id(l), jen.Id(n)).Op(":=").Add(rt("LocalRange")).Call(jen.Id("r"), e.groupCode(d.Axes),
		jen.Lit(width),
		jen.Lit(d.Size))
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
