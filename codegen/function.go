package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/fusion"
)

// emitter writes one function of the program as a Go function.
type emitter struct {
	*statements
	sizes
	indices
	places
	used  *declarations
	f     *ir.Func
	calls *fusion.Calls
	sides map[*ir.Value]*ir.Node // the ops of which values are operands that are written side by side
	now   *ir.Node               // the op that is being written
}

// functions writes all functions of the program, in the order in which a step runs them. It also returns what they
// refer to.
func functions(p *ir.Program, on Target) (fns []jen.Code, used *declarations) {
	used = newDeclarations(p.Mesh)
	eachFunc(p, func(id int, s *ir.Segment, f *ir.Func) {
		fns = append(fns, newEmitter(p, on, used).function(id, s, f))
	})
	return fns, used
}

// eachFunc visits the functions that a program uses, with the index of their segment.
func eachFunc(p *ir.Program, visit func(id int, s *ir.Segment, f *ir.Func)) {
	for i, s := range p.Model.Segments {
		for _, v := range []*ir.Segment{s, s.Remat} {
			for _, f := range v.Funcs() {
				if p.Uses(v) {
					visit(i, s, f)
				}
			}
		}
	}
}

// newEmitter returns the emitter of one function.
func newEmitter(p *ir.Program, on Target, used *declarations) *emitter {
	w := &statements{Target: on, namer: newNamer(), known: map[*ir.Value]bool{}}
	n := sizes{p.Mesh}
	return &emitter{statements: w, sizes: n, indices: indices{w, n, &used.groups, map[string]string{}},
		places: places{parameters: parameters{p}, on: on}, used: used}
}

// funcName is block.forward's Go name: blockForward.
func funcName(f *ir.Func) string { return camel(f.Name) }

// function writes function f of segment s, whose index is id.
func (e *emitter) function(id int, s *ir.Segment, f *ir.Func) jen.Code {
	e.seg, e.segID, e.f, e.sides, e.calls = s, id, f, f.SideWriters(), fusion.Of(f, e.gpu(), e.mesh)
	name := funcName(f)
	body := jen.BlockFunc(func(b *jen.Group) {
		e.body = b
		for _, v := range f.Inputs {
			e.input(v)
		}
		e.nodes(e.calls.Nodes)
	})
	doc := fmt.Sprintf("%s is %s, of which the model has %d.", name, f.Name, s.Count)
	return jen.Comment(doc).Line().Func().Id(name).
		Params(jen.Id("r").Op("*").Add(rt("Rank")), jen.Id("b").Op("*").Add(rt("Block"))).Add(body).Line()
}

// input declares a view of an input that some op reads.
func (e *emitter) input(v *ir.Value) {
	for _, n := range e.f.Nodes {
		for _, a := range n.Args {
			if a == v {
				e.declare(v)
				return
			}
		}
	}
}

// declare writes name := view of the value's place, once.
func (e *emitter) declare(v *ir.Value) {
	if e.known[v] {
		return
	}
	e.known[v] = true
	e.assign(v, e.at(v))
}

// assign writes name := view at offset at, which may have declared what it needs before.
func (e *emitter) assign(v *ir.Value, at jen.Code) {
	n := v.Type.LocalElems(e.mesh)
	if w := e.sides[v]; w != nil { // and what lies between its rows
		side, row := w.Outs[0].Type.SideSizes(e.mesh)
		n = (n/side-1)*row + side
	}
	e.body.Id(e.name(v)).Op(":=").Add(e.view(v.Type, at, n))
}

// elemCode is the Go type of a tensor's elements.
func elemCode(t ir.Type) *jen.Statement {
	switch {
	case t.Elem == ir.I32:
		return jen.Id("int32")
	case t.Elem.Narrow():
		return jen.Qual(numPath, storage[t.Elem])
	}
	return jen.Id("float")
}

// storage are package num's names of the types of 16 bits.
var storage = map[ir.Elem]string{ir.BF16: "BF16", ir.F16: "F16"}

// node writes one op: a comment with its line, views of its results, the call.
func (e *emitter) node(n *ir.Node) {
	emit := emitters[n.Op]
	if emit == nil {
		panic(fmt.Sprintf("codegen: no emitter for %v", n))
	}
	e.now = n
	call := e.calls.Call(n)
	e.body.Comment(opLine(n))
	for _, m := range call.Ops() {
		e.body.Comment("\t" + opLine(m))
	}
	// on a CPU, a matmul with an epilogue stores its own result only if another op needs it
	if e.gpu() || call.Epilogue == nil || call.KeepsResult {
		e.results(n)
	}
	if call.NormGradient != nil {
		emitNormGrads(e, call.NormGradient)
	} else {
		emit(e, n)
	}
	if call.SumInPlace {
		e.alias(call.Addition.Outs[0], n.Outs[0])
	}
}

// results declares where an op's results go.
func (e *emitter) results(n *ir.Node) {
	for _, o := range n.Outs {
		e.result(n, o)
	}
}

// result declares where an op's result goes.
func (e *emitter) result(n *ir.Node, o *ir.Value) {
	switch {
	case n.Op.View():
	case e.known[o]:
	case o.Place.Region == ir.PlaceGrad:
		e.known[o] = true
		e.assign(o, e.paramAt(e.into(o), "Grads"))
	default:
		e.declare(o)
	}
}

// into is the parameter whose accumulator takes v.
func (e *emitter) into(v *ir.Value) string {
	for _, n := range e.f.Nodes {
		if n.Op == ir.OpAccumulate && n.Args[0] == v {
			return n.Attr.Into
		}
	}
	panic("codegen: " + v.Name + " has no accumulator")
}

// opLine is the op as the text form has it, without places.
func opLine(n *ir.Node) string {
	c := *n
	c.Outs = nil
	for _, o := range n.Outs {
		d := *o
		d.Place = ir.Place{}
		c.Outs = append(c.Outs, &d)
	}
	return c.String()
}

// inLocal returns an expression that is local in local layers and full in others. The layer is known at run time, so
// that all layers share the function.
func (e *emitter) inLocal(l ir.Layers, local, full *jen.Statement) *jen.Statement {
	if l == "" {
		return local
	}
	return rt("Pick").Call(jen.Id(e.used.pattern(l)), jen.Id("b").Dot("Layer"), local, full)
}

// adding returns whether a matmul adds to its result: always, never, or from the second micro-batch on.
func (e *emitter) adding(n *ir.Node) any {
	if !ir.Accumulates(n) {
		return false
	}
	into := e.into(n.Outs[0])
	if slices.ContainsFunc(e.written(e.seg), func(w *ir.Value) bool { return w.Name == into }) {
		return jen.Id("b").Dot("Micro").Op(">").Lit(0)
	}
	return true
}
