package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// emitter writes one function of the program as a Go function.
type emitter struct {
	*generator
	*namer
	seg   *ir.Segment
	segID int
	f     *ir.Func
	body  *jen.Group
	now   *ir.Node           // which is being written
	known map[*ir.Value]bool // declared already

	from  map[*ir.Node]*ir.Value  // what a product begins from
	with  map[*ir.Node]*ir.Node   // the addition that it takes in
	stays map[*ir.Value]*ir.Value // of a sum that lies where the product would: the product
	then  map[*ir.Node]*ir.Node   // the group that it ends in
	kept  map[*ir.Node]bool       // whether others than that want its result
	sum   map[*ir.Node]*ir.Node   // the sum of its right operand's rows that it does as well

	wheres map[string]string // names of the rank's parts of zigzag dims, by dim and split
}

// functions writes all functions of the program, in the order in which a step runs them.
func (g *generator) functions() []jen.Code {
	var fns []jen.Code
	g.each(func(id int, s *ir.Segment, f *ir.Func) { fns = append(fns, g.function(id, s, f)) })
	return fns
}

// each visits the functions that the program uses.
func (g *generator) each(visit func(id int, s *ir.Segment, f *ir.Func)) {
	for i, s := range g.p.Model.Segments {
		for _, v := range []*ir.Segment{s, s.Remat} {
			for _, f := range v.Funcs() {
				if g.p.Uses(v) {
					visit(i, s, f)
				}
			}
		}
	}
}

// emitter is a function's.
func (g *generator) emitter(id int, s *ir.Segment, f *ir.Func) *emitter {
	return &emitter{generator: g, namer: newNamer(), seg: s, segID: id, f: f, known: map[*ir.Value]bool{}}
}

// funcName is block.forward's Go name: blockForward.
func funcName(f *ir.Func) string { return camel(f.Name) }

func (g *generator) function(id int, s *ir.Segment, f *ir.Func) jen.Code {
	e := g.emitter(id, s, f)
	name := funcName(f)
	body := jen.BlockFunc(func(b *jen.Group) {
		e.body = b
		for _, v := range f.Inputs {
			e.input(v)
		}
		e.nodes(e.epilogue(f.Nodes))
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
	e.body.Id(e.name(v)).Op(":=").Add(e.view(v.Type, at, v.Type.LocalElems(e.p.Mesh)))
}

// view is rt.View[type](r, offset, n).
func (e *emitter) view(t ir.Type, at jen.Code, n int) jen.Code {
	return e.runtime("View").Index(elemCode(t)).Call(jen.Id("r"), at, jen.Lit(n))
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

// at is the byte offset of a value in the arena.
func (e *emitter) at(v *ir.Value) jen.Code {
	if v.Kind == ir.Weight {
		return e.paramAt(v.Name, "Params")
	}
	field, ok := blockFields[v.Place.Region]
	if !ok {
		return e.batchAt(v)
	}
	return plus(jen.Id("b").Dot(field), v.Place.Offset)
}

// blockFields are the fields of rt.Block that say where a place begins.
var blockFields = map[string]string{
	ir.PlaceX: "X", ir.PlaceOut: "Out", ir.PlaceSlot: "Slot", ir.PlaceDY: "DY", ir.PlaceDX: "DX", ir.PlaceWork: "Work",
	ir.PlaceHead: "Logits",
}

func plus(base *jen.Statement, n int) jen.Code {
	if n == 0 {
		return base
	}
	return base.Op("+").Lit(n)
}

// batchAt is where the micro-batch's part of a batch input lies.
func (e *emitter) batchAt(v *ir.Value) jen.Code {
	field, ok := batchFields[v.Name]
	if !ok {
		panic(fmt.Sprintf("codegen: %s of %s has no place", v.Name, e.f.Name))
	}
	return jen.Id("r").Dot("Stage").Dot("Inputs").Dot(field).Op("+").Id("b").Dot("Micro").Op("*").Lit(
		v.Type.LocalBytes(e.p.Mesh))
}

// paramAt is the byte offset of the layer's parameter or of its gradient.
func (e *emitter) paramAt(name, field string) jen.Code {
	ref, offset := e.ref(e.seg, name)
	elem := e.p.Plan.Precision.Params
	if field == "Grads" {
		elem = e.p.Plan.Precision.Grads
	}
	return plus(jen.Id("b").Dot(field).Index(jen.Lit(ref)), offset*elem.Size())
}

// storage are package num's names of the types of 16 bits.
var storage = map[ir.Elem]string{ir.BF16: "BF16", ir.F16: "F16"}

// node writes one op: a comment with its line, views of its results, the call.
func (e *emitter) node(n *ir.Node) {
	emit := emitters[n.Op]
	if emit == nil {
		panic(fmt.Sprintf("codegen: no emitter for %v", n))
	}
	if n.Op == ir.OpAccumulate && n.Args[0].Place.Region == ir.PlaceGrad {
		return // its operand was made there
	}
	e.now = n
	e.body.Comment(opLine(n))
	for _, m := range e.also(n) {
		e.body.Comment("\t" + opLine(m))
	}
	// on a CPU, a matmul with an epilogue stores its own result only if another op needs it
	if e.gpu() || e.then[n] == nil || e.kept[n] {
		e.results(n)
	}
	emit(e, n)
	if add := e.with[n]; add != nil && e.stays[add.Outs[0]] != nil {
		e.known[add.Outs[0]] = true
		e.of[add.Outs[0]] = e.name(n.Outs[0])
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

// batchFields are the runtime's names of the batch inputs.
var batchFields = map[string]string{ir.Tokens: "Tokens", ir.Labels: "Labels", ir.Mask: "Mask", ir.Types: "Types",
	ir.Pixels: "Pixels"}
