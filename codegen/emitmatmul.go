package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// emitMatMul finds how the named dims lie in memory: each operand has the dims that it shares with the result
// and those that are summed, each kind together and in one order, so that the product is one GEMM with or without transposes.
func emitMatMul(e *emitter, n *ir.Node) {
	out := n.Outs[0].Type
	a, b := n.Args[0], n.Args[1]
	if len(out.Dims) > 0 && !a.Type.Has(out.Dims[0].Dim) {
		a, b = b, a // the product commutes; the operand with the result's first dims is the left one
	}
	var groups, m, k, nn []ir.Extent
	for _, d := range out.Dims {
		switch {
		case a.Type.Has(d.Dim) && b.Type.Has(d.Dim):
			groups = append(groups, d)
		case a.Type.Has(d.Dim):
			m = append(m, d)
		default:
			nn = append(nn, d)
		}
	}
	for _, d := range a.Type.Dims {
		if b.Type.Has(d.Dim) && !out.Has(d.Dim) {
			k = append(k, d)
		}
	}
	ta := transposed(n, inside(n, a.Type, groups), m, k)
	tb := transposed(n, inside(n, b.Type, groups), k, nn)
	if !inOrder(inside(n, out, groups).Dims, m, nn) {
		panic(fmt.Sprintf("codegen: no kernel writes the result of %v", n))
	}
	each := 0
	if len(groups) > 0 {
		each = e.count(groups)
	}
	e.product(n, a, b, each, e.count(m), e.count(nn), e.count(k), ta, tb)
}

// product writes the call: of one product, or of each of so many groups if there are any, of operands in bf16 as they are stored, with sums
// that are rounded as they come or added to what is there.
func (e *emitter) product(n *ir.Node, a, b *ir.Value, groups, rows, cols, terms int, ta, tb bool) {
	args := []any{n.Outs[0], a, b, rows, cols, terms, ta, tb}
	name := "MatMul"
	if groups > 0 {
		name, args = "MatMulEach", slices.Insert(args, 3, any(groups))
	}
	switch {
	case n.Products16() && n.Outs[0].Type.Elem == ir.BF16 && !e.acc(n):
		e.call(jen.Id("kern").Dot(name+"RoundBF16"), args...)
	case n.Products16():
		e.kernel(name+"BF16", append(args, e.acc(n))...)
	default:
		e.kernel(name, append(args, e.acc(n))...)
	}
}

// inside is t without the dims of a product for each of which there is one of its own; they come first.
func inside(n *ir.Node, t ir.Type, groups []ir.Extent) ir.Type {
	if !inOrder(t.Dims[:min(len(groups), len(t.Dims))], groups, nil) {
		panic(fmt.Sprintf("codegen: no kernel multiplies the groups of %v", n))
	}
	return ir.Type{Elem: t.Elem, Dims: t.Dims[len(groups):]}
}

// transposed tells whether t is laid out as second-first rather than first-second.
func transposed(n *ir.Node, t ir.Type, first, second []ir.Extent) bool {
	switch {
	case inOrder(t.Dims, first, second):
		return false
	case inOrder(t.Dims, second, first):
		return true
	}
	panic(fmt.Sprintf("codegen: no kernel reads the operands of %v", n))
}

func inOrder(dims []ir.Extent, first, second []ir.Extent) bool {
	if len(dims) != len(first)+len(second) {
		return false
	}
	for i, d := range append(append([]ir.Extent{}, first...), second...) {
		if dims[i].Dim != d.Dim {
			return false
		}
	}
	return true
}
