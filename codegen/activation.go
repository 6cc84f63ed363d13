package codegen

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// endings maps the ops that may be the epilogue of a matmul on a CPU to their names in its kernels. Package vec has
// loops for them over rows that are not adjacent.
var endings = map[ir.Op]string{ir.OpGelu: "Gelu", ir.OpGeluGrad: "GeluGrad", ir.OpAdd: "Add"}

// activations makes an op the epilogue of a matmul if its group has no other op left: the tanh approximation of GELU,
// the multiplication by its derivative, and on a CPU an addition if the matmul already has a C operand. The matmul's
// comment and call then contain both. It returns the function's ops with the matmuls in place of those groups, which
// e.then has.
//
// On a CPU this applies to the kernels' type, and the op is computed on a strip of sums while it is in the cache. On a
// GPU it applies to 16-bit types, because cuBLASLt does not document the accuracy of its tanh. If cuBLASLt refuses the
// call, the separate ops are computed.
func (e *emitter) activations(nodes []*ir.Node) []*ir.Node {
	e.then, e.kept = map[*ir.Node]*ir.Node{}, map[*ir.Node]bool{}
	for i := 0; i < len(nodes); i++ {
		if at := e.endsIn(nodes, i); at >= 0 {
			nodes[i] = e.endIn(nodes, at, i)
			nodes = slices.Delete(nodes, at, at+1)
			i--
		}
	}
	return nodes
}

// endIn returns the matmul at index at combined with op i: with its addend as the C operand if it has none, else with
// op i as the epilogue.
func (e *emitter) endIn(nodes []*ir.Node, at, i int) *ir.Node {
	m, op := nodes[at], only(nodes[i])
	kept := e.outlives(nodes, m.Outs[0])
	if op.Op == ir.OpAdd && e.from[m] == nil && !kept {
		n := writing(m, op.Outs[0])
		e.from[n], e.with[n] = other(op, m.Outs[0]), op
		return n
	}
	e.then[m], e.kept[m] = nodes[i], kept
	return m
}

// other is an op's operand that is not v, nil if there is none.
func other(op *ir.Node, v *ir.Value) *ir.Value {
	if i := slices.IndexFunc(op.Args, func(a *ir.Value) bool { return a != v }); i >= 0 {
		return op.Args[i]
	}
	return nil
}

// endsIn returns the index of the matmul whose epilogue op i is, negative if there is none.
func (e *emitter) endsIn(nodes []*ir.Node, i int) int {
	op := only(nodes[i])
	if op == nil || endings[op.Op] == "" || op.Op == ir.OpAdd && e.gpu() {
		return -1
	}
	for k, v := range op.Args {
		at := slices.IndexFunc(nodes[:i], func(n *ir.Node) bool { return n.Op == ir.OpMatMul && n.Outs[0] == v })
		if at >= 0 && e.ends(nodes, at, i, k) {
			return at
		}
		if op.Op != ir.OpAdd { // of others the first operand is what comes in
			break
		}
	}
	return -1
}

// ends reports whether op i, which has the matmul at index at as operand k, can be its epilogue.
func (e *emitter) ends(nodes []*ir.Node, at, i, k int) bool {
	m, op := nodes[at], only(nodes[i])
	if e.then[m] != nil || !e.mayEnd(m, op) || !e.mayWait(nodes[at:i], op.Outs[0]) {
		return false
	}
	if len(op.Args) == 1 {
		return true
	}
	v, x := op.Args[k], op.Args[1-k]
	if e.overlap(x, op.Outs[0]) {
		return false
	}
	if e.gpu() {
		return !e.outlives(nodes, v) && e.from[m] == nil
	}
	return x != v && x.Type.Equal(v.Type)
}

// mayWait reports whether the first of some ops, a matmul, can run after the others and write to out: they neither read
// its result nor write where its operands are, and out is elsewhere.
func (e *emitter) mayWait(nodes []*ir.Node, out *ir.Value) bool {
	reads, outs := e.reads(nodes[0]), []*ir.Value{out}
	for _, n := range nodes[1:] {
		if slices.Contains(e.reads(n), nodes[0].Outs[0]) {
			return false
		}
		for _, o := range e.makes(n) {
			if r := o.Place.Region; r != ir.PlaceWork && r != ir.PlaceGrad && r != ir.PlaceSlot {
				return false
			}
		}
		if !n.Op.View() {
			outs = append(outs, e.makes(n)...)
		}
	}
	return !slices.ContainsFunc(reads, func(a *ir.Value) bool {
		return slices.ContainsFunc(outs, func(o *ir.Value) bool { return e.overlap(a, o) })
	})
}

// reads returns an op's operands, including those of its C operand and epilogue.
func (e *emitter) reads(n *ir.Node) []*ir.Value {
	vs := slices.Clone(n.Args)
	if from := e.from[n]; from != nil {
		vs = append(vs, from)
	}
	if then := e.then[n]; then != nil {
		vs = append(vs, then.Args...)
	}
	return vs
}

// makes returns an op's results, including those of its epilogue.
func (e *emitter) makes(n *ir.Node) []*ir.Value {
	if then := e.then[n]; then != nil {
		return slices.Concat(n.Outs, then.Outs)
	}
	return n.Outs
}

// only returns the op of a node that does a single op, nil if it does more.
func only(n *ir.Node) *ir.Node {
	switch {
	case n.Op != ir.OpFused:
		return n
	case len(n.Body) == 1:
		return n.Body[0]
	}
	return nil
}

// mayEnd reports whether op may be the epilogue of matmul m: all types are those in which a CPU's kernels compute, or
// on a GPU 16-bit types.
func (e *emitter) mayEnd(m, op *ir.Node) bool {
	elem := op.Outs[0].Type.Elem
	if elem.Narrow() != e.gpu() || m.Attr.In != "" || m.Attr.Round || op.Attr.Round || len(productOf(m).groups) > 0 ||
		e.acc(m) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(m.Args, op.Args), func(v *ir.Value) bool { return v.Type.Elem != elem })
}

// outlives reports whether a value that an op reads is also used by another.
func (e *emitter) outlives(nodes []*ir.Node, v *ir.Value) bool {
	users := 0
	for _, n := range nodes {
		if slices.Contains(e.reads(n), v) {
			users++
		}
	}
	return users > 1 || v.Place.Region != ir.PlaceWork || slices.Contains(e.f.Outputs, v)
}

// ended writes a matmul with its epilogue: one call, or on a GPU the separate ops if the library refuses the call.
func (e *emitter) ended(n, then *ir.Node, args []any, apart func()) {
	e.results(then)
	op := only(then)
	if !e.gpu() {
		args = slices.Insert(args, 2, any(jen.Qual(cpuPath, "Do"+endings[op.Op])))
		e.kernel("MatMulThen", append(e.ending(n, op), args...)...)
		return
	}
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

// ending returns the arguments of the kernel MatMulThen for matmul n and its epilogue, without those of the matmul.
func (e *emitter) ending(n, op *ir.Node) []any {
	or := func(v *ir.Value) any {
		if v == nil {
			return jen.Nil()
		}
		return v
	}
	sums := n.Outs[0]
	if !e.kept[n] {
		sums = nil
	}
	return []any{op.Outs[0], or(sums), or(e.from[n]), or(other(op, n.Outs[0]))}
}

// operand is a value, or what stands for none.
func (e *emitter) operand(not bool, v *ir.Value) any {
	if not {
		return e.nothing(e.now.Outs[0].Type)
	}
	return v
}
