package codegen

import (
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

// widen declares the widened copy of a value.
func (e *emitter) widen(v *ir.Value, wide map[*ir.Value]string) {
	wide[v] = e.fresh(e.name(v) + "Wide")
	from := rt("Widen").Call(jen.Id("r"), jen.Id(e.name(v)))
	if v.Def == e.now && !ir.Accumulates(e.now) && !sumsRounds(e.now) {
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

// joined writes a collective: rt.Name(r, group, args), or package gpu's.
func (e *emitter) joined(name string, n *ir.Node, args ...any) {
	if n.Op == ir.OpAllToAll || n.Op == ir.OpShift {
		e.groups.record(&e.groups.messages, n.Attr.Axes)
	}
	e.groups.record(&e.groups.tensors, n.Attr.Axes)
	e.call(e.runtime(name), append([]any{jen.Id("r"), e.groups.code(n.Attr.Axes)}, args...)...)
}

// sumsRounds reports whether the op adds to its result from round to round.
func sumsRounds(n *ir.Node) bool {
	return n.Attr.Round && (n.Op == ir.OpCombine || n.Op == ir.OpCollect)
}
