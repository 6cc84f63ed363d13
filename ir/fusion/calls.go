// Package fusion decides which ops of a compiled function one call of its code computes. A GEMM may also add a bias and
// a residual, apply GELU or its derivative, and sum its operand's rows for the gradient of a bias. The kernel of a
// norm's gradient may also compute the gradients of the gain and the bias.
//
// [Of] decides it for a function, from the ops and their places in memory. Package codegen writes the calls, and the
// cost model prices them, so that what is priced is what runs. Groups of element-wise ops are not decided here: they
// are nodes of the function, made by package passes.
package fusion

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// Calls are the calls of a function's code.
type Calls struct {
	Nodes []*ir.Node // the ops that are called, in order; the calls of some compute other ops too
	calls map[*ir.Node]*Call
}

// Call is what the call of an op computes in addition to the op.
type Call struct {
	C          *ir.Value // the beta (C) operand of a matmul
	Addition   *ir.Node  // the op that adds C
	SumInPlace bool      // on a CPU: the sum with C is in the place of the matmul's result
	// on a GPU: the bias that a matmul adds in addition to C, and the op that adds it
	Bias         *ir.Value
	BiasAddition *ir.Node

	Epilogue     *ir.Node         // the op, or group of one op, that is the epilogue of a matmul
	KeepsResult  bool             // other ops need the result of a matmul with an epilogue
	RowSum       *ir.Node         // the sum of its right operand's rows that a matmul also computes
	NormGradient *ir.NormGradient // the gradient of a norm that the call computes completely
}

// noCall is a call that computes only its op.
var noCall Call

// Call returns what the call of one of the function's ops computes.
func (c *Calls) Call(n *ir.Node) *Call {
	if call := c.calls[n]; call != nil {
		return call
	}
	return &noCall
}

// Ops returns the ops that the call computes in addition to its own.
func (c *Call) Ops() (ops []*ir.Node) {
	if c.BiasAddition != nil {
		ops = append(ops, c.BiasAddition)
	}
	if c.Addition != nil {
		ops = append(ops, c.Addition)
	}
	if c.Epilogue != nil {
		ops = append(ops, ir.SingleOp(c.Epilogue))
	}
	if c.RowSum != nil {
		ops = append(ops, c.RowSum)
	}
	if c.NormGradient != nil {
		ops = append(ops, c.NormGradient.Sums()...)
	}
	return ops
}

// Alone returns an op without what its call adds to it: a matmul without its C operand and bias.
func (c *Call) Alone(n *ir.Node) *ir.Node {
	if c.BiasAddition != nil {
		return ir.OtherOperand(c.BiasAddition, c.Bias).Def
	}
	if c.Addition != nil {
		return ir.OtherOperand(c.Addition, c.C).Def
	}
	return n
}

// Of decides the calls of a function. It makes an addend (a bias, a residual, another matmul's result) the beta (C)
// operand of a matmul. The addition is then done in registers at the end of the GEMM and needs no pass over memory of
// its own. Then it finds epilogues, and on a GPU sums for gradients of biases and gradients of norms. An op whose
// operand is computed in the gradient to which it is added needs no call.
//
// On a GPU, a matmul can add both a bias and a residual: the library adds the bias as its epilogue.
//
// A matmul can absorb an addition if nothing else uses the matmul's result, the addend is computed before the matmul,
// and the matmul may write to the sum's place. An addition inside a group leaves its place to the matmul. The place of
// any other sum is free once the matmul's operands have been read, so these must be elsewhere, and nothing may come
// between the two. On a CPU, the sum may instead stay in the matmul's place, if nothing else needs that place before
// the sum's last use.
func Of(f *ir.Func, onGPU bool, m ir.Mesh) *Calls {
	u := &fuser{onGPU: onGPU, mesh: m, f: f, sides: f.SideWriters(), calls: map[*ir.Node]*Call{},
		inPlaceOf: map[*ir.Value]*ir.Value{}}
	nodes := slices.DeleteFunc(slices.Clone(f.Nodes), isInPlace)
	users := f.Users()
	for i := 0; i < len(nodes); i++ {
		for i < len(nodes) && u.takeIn(nodes, i, users) {
			if nodes[i] == nil {
				nodes = slices.Delete(nodes, i, i+1)
			}
		}
	}
	nodes = u.activations(nodes)
	if onGPU {
		nodes = u.normGradients(u.rowSums(nodes))
	}
	return &Calls{nodes, u.calls}
}

// isInPlace reports whether an op adds a value to a gradient in which the value is computed.
func isInPlace(n *ir.Node) bool {
	return n.Op == ir.OpAccumulate && n.Args[0].Place.Region == ir.PlaceGrad
}

// fuser decides the calls of one function.
type fuser struct {
	onGPU     bool
	mesh      ir.Mesh
	f         *ir.Func
	sides     map[*ir.Value]*ir.Node
	calls     map[*ir.Node]*Call
	inPlaceOf map[*ir.Value]*ir.Value // the matmul's result in whose place a sum is, if it stays there
}

// call returns what the call of an op computes so far.
func (u *fuser) call(n *ir.Node) *Call {
	if c := u.calls[n]; c != nil {
		return c
	}
	return &noCall
}

// edit returns what the call of an op computes, to be changed.
func (u *fuser) edit(n *ir.Node) *Call {
	c := u.calls[n]
	if c == nil {
		c = &Call{}
		u.calls[n] = c
	}
	return c
}

// elems is the number of local elements of some dims.
func (u *fuser) elems(dims []ir.Extent) int { return ir.Type{Dims: dims}.LocalElems(u.mesh) }
