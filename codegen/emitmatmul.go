package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// product is a contraction as one GEMM, or as one GEMM per group: m rows of a, n columns of b, sums over k.
type product struct {
	a, b            *ir.Value
	groups, m, n, k []ir.Extent
}

// productOf classifies the dims of an op.
func productOf(n *ir.Node) product {
	out := n.Outs[0].Type
	p := product{a: n.Args[0], b: n.Args[1]}
	if len(out.Dims) > 0 && !p.a.Type.Has(out.Dims[0].Dim) {
		p.a, p.b = p.b, p.a // the product commutes; the operand with the result's first dims is the left one
	}
	for _, d := range out.Dims {
		switch {
		case p.a.Type.Has(d.Dim) && p.b.Type.Has(d.Dim):
			p.groups = append(p.groups, d)
		case p.a.Type.Has(d.Dim):
			p.m = append(p.m, d)
		default:
			p.n = append(p.n, d)
		}
	}
	for _, d := range p.a.Type.Dims {
		if p.b.Type.Has(d.Dim) && !out.Has(d.Dim) {
			p.k = append(p.k, d)
		}
	}
	return p
}

// emitMatMul finds the memory layout of the named dims. Each operand has the dims that it shares with the result and
// those that are summed, each kind contiguous and in one order, so that the contraction is one GEMM with or without
// transposes.
func emitMatMul(e *emitter, n *ir.Node) {
	p := productOf(n)
	ta := transposed(n, inside(n, p.a.Type, p.groups), p.m, p.k)
	tb := transposed(n, inside(n, p.b.Type, p.groups), p.k, p.n)
	if !inOrder(inside(n, n.Outs[0].Type, p.groups).Dims, p.m, p.n) {
		panic(fmt.Sprintf("codegen: no kernel writes the result of %v", n))
	}
	each := 0
	if len(p.groups) > 0 {
		each = e.count(p.groups)
	}
	e.product(n, p.a, p.b, each, e.count(p.m), e.count(p.n), e.count(p.k), ta, tb)
}

// product writes the call: of one product, or of each of so many groups if there are any, of operands in bf16 as they
// are stored, with sums that are rounded as they come or added to what is there.
func (e *emitter) product(n *ir.Node, a, b *ir.Value, groups, rows, cols, terms int, ta, tb bool) {
	args := []any{n.Outs[0], a, b, rows, cols, terms, ta, tb}
	if n.Attr.In != "" {
		e.eights(n, args, groups)
		return
	}
	if then := e.then[n]; then != nil {
		delete(e.then, n)
		e.ended(n, then, args[1:], func() { e.product(n, a, b, groups, rows, cols, terms, ta, tb) })
		return
	}
	if sum := e.sum[n]; sum != nil {
		delete(e.sum, n)
		e.summed(n, sum, args, func() { e.product(n, a, b, groups, rows, cols, terms, ta, tb) })
		return
	}
	name := "MatMul"
	if groups > 0 {
		name, args = "MatMulEach", slices.Insert(args, 3, any(groups))
	}
	switch from := e.from[n]; {
	case e.gpu() && from == nil:
		e.kernel(name, append(args, e.adding(n))...)
	case from != nil:
		e.kernel("MatMulOn", n.Outs[0], from, a, b, rows, cols, terms, ta, tb)
	case n.Matmuls16() && n.Outs[0].Type.Elem == ir.BF16 && !e.acc(n):
		e.call(jen.Id("kern").Dot(name+"RoundBF16"), args...)
	case n.Matmuls16():
		e.kernel(name+"BF16", append(args, e.adding(n))...)
	default:
		e.kernel(name, append(args, e.adding(n))...)
	}
}

// eights writes a matmul of operands that are rounded to FP8. On a CPU these are copies in the scratch.
func (e *emitter) eights(n *ir.Node, args []any, groups int) {
	left, right := n.FP8Matmuls()
	if args[1] != any(n.Args[0]) {
		left, right = right, left
	}
	format := map[string]jen.Code{ir.E4M3: jen.Qual(numPath, "E4M3"), ir.E5M2: jen.Qual(numPath, "E5M2")}
	e.kernel("MatMul8", append(slices.Insert(args, 3, any(groups)), e.adding(n), format[left], format[right])...)
}

// inside returns t without the leading dims that number the groups.
func inside(n *ir.Node, t ir.Type, groups []ir.Extent) ir.Type {
	if !inOrder(t.Dims[:min(len(groups), len(t.Dims))], groups, nil) {
		panic(fmt.Sprintf("codegen: no kernel multiplies the groups of %v", n))
	}
	return ir.Type{Elem: t.Elem, Dims: t.Dims[len(groups):]}
}

// transposed reports whether t is laid out as second-first rather than first-second.
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
