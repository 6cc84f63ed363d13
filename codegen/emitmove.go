package codegen

import (
	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// moves writes a collective that splits a dim or joins its parts: rt.Op(r, group, to, from, sizes), or the variant that
// knows how the parts of a zigzag dim lie. NCCL moves contiguous parts, and counts their elements in 64 bits: only a
// kernel that rearranges parts limits the sizes. A slice always has that kernel.
func (e *emitter) moves(op string, n *ir.Node, outer int, sizes ...int) {
	a := n.Attr.Axes[0]
	isContiguous := outer == 1 && !a.IsZigzag() && n.Op != ir.OpSlice
	args := []any{n.Outs[0], n.Args[0], outer}
	for _, size := range sizes {
		if isContiguous {
			args = append(args, jen.Lit(size))
		} else {
			args = append(args, size)
		}
	}
	if a.IsZigzag() {
		op, args = op+"Zigzag", append(args, e.mesh.Ranks([]ir.Axis{a}))
	}
	e.joined(op, n, args...)
}

// emitShift writes the move of parts from their current to the required positions.
func emitShift(e *emitter, n *ir.Node) {
	t := n.Args[0].Type
	ranks, from, to := e.mesh.Ranks(n.Attr.Axes), t.Dims[dimIndex(t, n.Attr.Dim)].Axes[0].Turn(),
		n.Attr.Axes[0].Turn()
	e.joined("Shift", n, n.Outs[0], n.Args[0], (to-from+ranks)%ranks)
}

// emitAllToAll writes an all-to-all of the two dims, in their order in memory.
func emitAllToAll(e *emitter, n *ir.Node) {
	in, out := n.Args[0].Type, n.Outs[0].Type
	x, y, back := dimIndex(in, n.Attr.Dim), dimIndex(in, n.Attr.To), false
	first, second := in.Dims[x], out.Dims[y] // each as it is where it is split
	if x > y {
		x, y, back = y, x, true
		first, second = second, first
	}
	one := func(d ir.Extent) int { return e.count([]ir.Extent{d}) }
	turn := rt("AllToAllShape").Add(inline("Outer", e.count(in.Dims[:x]), "First", one(first), "Middle",
		e.count(in.Dims[x+1:y]), "Second", one(second),
		"Inner", e.count(in.Dims[y+1:]), "Back", back))
	e.joined("AllToAll", n, n.Outs[0], n.Args[0], turn)
}
