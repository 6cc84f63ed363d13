package codegen

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// activations lets products on a GPU end in a GELU or in what multiplies its derivative, of which cuBLASLt knows the approximation by tanh, where a group
// has nothing else left to do. The product's comment and call then have both; should the library refuse the call, what it replaces is
// done. It returns the function's ops with the products in the places of those groups, which e.then has.
//
// Numbers are of 16 bits: the library does not say how well its tanh is computed.
func (e *emitter) activations(nodes []*ir.Node) []*ir.Node {
	e.then, e.kept = map[*ir.Node]*ir.Node{}, map[*ir.Node]bool{}
	for i := 0; i < len(nodes); i++ {
		if at := e.endsIn(nodes, i); at >= 0 {
			m := nodes[at]
			e.then[m], e.kept[m] = nodes[i], e.outlives(nodes, m.Outs[0])
			nodes[i] = m
			nodes = slices.Delete(nodes, at, at+1)
			i--
		}
	}
	return nodes
}

// endsIn is the index of the product that op i is the end of, negative if there is none.
func (e *emitter) endsIn(nodes []*ir.Node, i int) int {
	op := only(nodes[i])
	if op == nil || op.Op != ir.OpGelu && op.Op != ir.OpGeluGrad {
		return -1
	}
	v := op.Args[0]
	at := slices.IndexFunc(nodes[:i], func(n *ir.Node) bool { return n.Op == ir.OpMatMul && n.Outs[0] == v })
	if at < 0 || !e.mayEnd(nodes[at], op) || !e.mayWait(nodes[at:i], op.Outs[0]) {
		return -1
	}
	if op.Op == ir.OpGeluGrad && (e.outlives(nodes, v) || e.from[nodes[at]] != nil || e.overlap(op.Args[1], op.Outs[0])) {
		return -1
	}
	return at
}

// mayWait tells whether the first of some ops, a product, can be done behind the others and write to out: they neither read its result nor write where
// its operands lie, and out lies elsewhere.
func (e *emitter) mayWait(nodes []*ir.Node, out *ir.Value) bool {
	reads := slices.Clone(nodes[0].Args)
	if from := e.from[nodes[0]]; from != nil {
		reads = append(reads, from)
	}
	outs := []*ir.Value{out}
	for _, n := range nodes[1:] {
		if slices.Contains(n.Args, nodes[0].Outs[0]) {
			return false
		}
		for _, o := range n.Outs {
			if r := o.Place.Region; r != ir.PlaceWork && r != ir.PlaceGrad && r != ir.PlaceSlot {
				return false
			}
		}
		if !n.Op.View() {
			outs = append(outs, n.Outs...)
		}
	}
	return !slices.ContainsFunc(reads, func(a *ir.Value) bool {
		return slices.ContainsFunc(outs, func(o *ir.Value) bool { return e.overlap(a, o) })
	})
}

// only is the op of a node that does one, nil if it does more.
func only(n *ir.Node) *ir.Node {
	switch {
	case n.Op != ir.OpFused:
		return n
	case len(n.Body) == 1:
		return n.Body[0]
	}
	return nil
}

// mayEnd tells whether the library may have product m ended by op: it is one of 16 bits throughout.
func (e *emitter) mayEnd(m, op *ir.Node) bool {
	elem := op.Outs[0].Type.Elem
	if !elem.Narrow() || m.Attr.In != "" || m.Attr.Round || op.Attr.Round || len(productOf(m).groups) > 0 || e.acc(m) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(m.Args, op.Args), func(v *ir.Value) bool { return v.Type.Elem != elem })
}

// outlives tells whether a value that an op reads is also wanted by another.
func (e *emitter) outlives(nodes []*ir.Node, v *ir.Value) bool {
	users := 0
	for _, n := range nodes {
		if slices.Contains(n.Args, v) {
			users++
		}
	}
	return users > 1 || v.Place.Region != ir.PlaceWork || slices.Contains(e.f.Outputs, v)
}

// ended writes a product with what it ends in: one call, or what that stands for, where the library refuses it.
func (e *emitter) ended(n, then *ir.Node, args []any, apart func()) {
	e.results(then)
	op := only(then)
	name, call := "MatMulGeluGrad", []any{jen.Id("r"), op.Outs[0], op.Args[len(op.Args)-1]}
	if op.Op == ir.OpGelu {
		name = "MatMulGelu"
		call = []any{jen.Id("r"), op.Outs[0], e.operand(!e.kept[n], n.Outs[0]), e.operand(e.from[n] == nil, e.from[n])}
	}
	e.unless(e.calling(e.runtime(name), append(call, args...)...), func() {
		apart()
		e.now = then
		emitLoop(e, then)
	})
}

// operand is a value, or what stands for none.
func (e *emitter) operand(not bool, v *ir.Value) any {
	if not {
		return e.nothing(e.now.Outs[0].Type)
	}
	return v
}
