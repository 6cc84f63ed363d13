package codegen

import (
	"fmt"

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
	c := matMulCall{emitter: e, n: n, a: p.a, b: p.b, rows: e.count(p.m), cols: e.count(p.n), terms: e.count(p.k),
		transA: ta, transB: tb}
	if len(p.groups) > 0 {
		c.groups = e.count(p.groups)
	}
	c.write()
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
