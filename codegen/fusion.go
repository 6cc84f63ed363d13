package codegen

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// fusion says which other ops of a function each matmul's call computes: its C operand, its epilogue and the sum of its
// right operand's rows. [fuse] finds them from the ops and their places in memory; the emitter then writes the calls.
type fusion struct {
	Target
	sizes
	f     *ir.Func
	nodes []*ir.Node // as they are written: without the ops that matmuls compute

	cOperand    map[*ir.Node]*ir.Value        // the beta (C) operand of a matmul
	addition    map[*ir.Node]*ir.Node         // the op that adds the C operand
	inPlaceOf   map[*ir.Value]*ir.Value       // the matmul's result in whose place a sum is, if it stays there
	epilogue    map[*ir.Node]*ir.Node         // the op, or group of one op, that is the epilogue of a matmul
	keepsResult map[*ir.Node]bool             // whether other ops need the result of a matmul with an epilogue
	rowSum      map[*ir.Node]*ir.Node         // the sum of its right operand's rows that a matmul also computes
	normGrad    map[*ir.Node]*ir.NormGradient // gradients of norms, by the op that computes all of one
}

// fuse makes an addend (a bias, a residual, another matmul's result) the beta (C) operand of a matmul. The addition is
// then done in registers at the end of the GEMM and needs no pass over memory of its own. Then it finds epilogues, and
// on a GPU sums for gradients of biases.
//
// A matmul can absorb an addition if nothing else uses the matmul's result, the addend is computed before the matmul,
// and the matmul may write to the sum's place. An addition inside a group leaves its place to the matmul. The place of
// any other sum is free once the matmul's operands have been read, so these must be elsewhere, and nothing may come
// between the two. On a CPU, the sum may instead stay in the matmul's place, if nothing else needs that place before
// the sum's last use.
func fuse(f *ir.Func, on Target, mesh ir.Mesh) *fusion {
	u := &fusion{Target: on, sizes: sizes{mesh}, f: f, cOperand: map[*ir.Node]*ir.Value{},
		addition: map[*ir.Node]*ir.Node{}, inPlaceOf: map[*ir.Value]*ir.Value{}, epilogue: map[*ir.Node]*ir.Node{},
		keepsResult: map[*ir.Node]bool{}, rowSum: map[*ir.Node]*ir.Node{},
		normGrad: map[*ir.Node]*ir.NormGradient{}}
	nodes := slices.Clone(f.Nodes)
	users := f.Users()
	for i := 0; i < len(nodes); i++ {
		for i < len(nodes) && u.takeIn(nodes, i, users) {
			if nodes[i] == nil {
				nodes = slices.Delete(nodes, i, i+1)
			}
		}
	}
	nodes = u.activations(nodes)
	if u.gpu() {
		nodes = u.normGrads(u.biasGrads(nodes))
	}
	u.nodes = nodes
	return u
}

// also returns the other ops that an op's call computes.
func (u *fusion) also(n *ir.Node) (ops []*ir.Node) {
	if add := u.addition[n]; add != nil {
		ops = append(ops, add)
	}
	if epilogue := u.epilogue[n]; epilogue != nil {
		ops = append(ops, only(epilogue))
	}
	if sum := u.rowSum[n]; sum != nil {
		ops = append(ops, sum)
	}
	if g := u.normGrad[n]; g != nil {
		ops = append(ops, g.Sums()...)
	}
	return ops
}

// alone returns a matmul without its beta (C) operand.
func (u *fusion) alone(n *ir.Node) *ir.Node {
	if add := u.addition[n]; add != nil {
		return other(add, u.cOperand[n]).Def
	}
	return n
}
