package codegen

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// emitJoin writes the concatenation of rows of a [shared, between, d] and of b [shared, d].
func emitJoin(e *emitter, n *ir.Node) {
	shared, between, a, b, _ := n.JoinDims()
	x, y := n.Args[0].Type.Dims, n.Args[1].Type.Dims
	for i, d := range shared {
		if x[i].Dim != d || y[i].Dim != d {
			panic(fmt.Sprintf("codegen: no kernel joins %v and %v", n.Args[0].Type, n.Args[1].Type))
		}
	}
	count := func(from, to int) int { return e.count(x[from:to]) }
	e.own("Concat", n.Outs[0], n.Args[0], n.Args[1], count(0, len(shared)), count(len(shared),
		len(shared)+len(between)),
		a.Size, b.Size)
}
