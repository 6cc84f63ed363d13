package codegen

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// gate is several ops of a body that one link of a chain computes, in the place of the last of them: SwiGLU's
// silu(a)*b, if nothing else uses silu(a); or, if b is dy, also dy*up*silu'(a): the gradients of silu(a)*up with
// respect to both.
type gate struct {
	do   string
	args []*ir.Value // of the link, those of the second kind with the first kind's result behind them
	in   []*ir.Node  // the ops before the last
}

// gates returns the gates of the body by their last ops. On a GPU a body is already one loop, and 16-bit numbers are
// rounded op by op.
func (l *loop) gates() map[*ir.Node]*gate {
	found := map[*ir.Node]*gate{}
	if l.e.gpu() {
		return found
	}
	for _, n := range l.body {
		if n.Op != ir.OpSilu || storage[n.Outs[0].Type.Elem] != "" {
			continue
		}
		mul := l.soleUser(n.Outs[0], ir.OpMul)
		if mul == nil || mul.Args[0] == mul.Args[1] {
			continue
		}
		a, b := n.Args[0], ir.OtherOperand(mul, n.Outs[0])
		if end, up := l.gradOfGate(mul, a, b); end != nil {
			operands := []*ir.Value{b, a, ir.OtherOperand(up, b), mul.Outs[0]}
			found[end] = &gate{"SiluMulGrad", operands, []*ir.Node{n, mul, up}}
		} else if whole(mul.Outs[0], a, b) {
			found[mul] = &gate{"SiluMul", []*ir.Value{a, b}, []*ir.Node{n}}
		}
	}
	for end := range found {
		if within(found, end) { // another gate does it: what it takes is to be made for that
			delete(found, end)
		}
	}
	return found
}

// within reports whether an op is computed by a later one of its gate.
func within(gates map[*ir.Node]*gate, n *ir.Node) bool {
	for _, g := range gates {
		if slices.Contains(g.in, n) {
			return true
		}
	}
	return false
}

// gradOfGate are the ops of the gradient by a that goes with mul = silu(a)*dy, the last one and the multiplication by
// dy.
func (l *loop) gradOfGate(mul *ir.Node, a, dy *ir.Value) (end, up *ir.Node) {
	if !slices.Contains(l.n.Outs, mul.Outs[0]) || slices.ContainsFunc(l.body, func(m *ir.Node) bool {
		return slices.Contains(m.Args, mul.Outs[0])
	}) {
		return nil, nil
	}
	for _, n := range l.body {
		if n.Op != ir.OpSiluGrad || n.Args[1] != a || n.Args[0].Def == nil {
			continue
		}
		up := n.Args[0].Def
		if up.Op != ir.OpMul || l.soleUser(up.Outs[0], ir.OpSiluGrad) != n || !slices.Contains(up.Args, dy) ||
			up.Args[0] == up.Args[1] {
			continue
		}
		if slices.Contains(l.body, up) && whole(mul.Outs[0], a, dy, ir.OtherOperand(up, dy), n.Outs[0]) {
			return n, up
		}
	}
	return nil, nil
}

// soleUser returns the op of a kind that is the only user of a value of the body.
func (l *loop) soleUser(v *ir.Value, op ir.Op) (user *ir.Node) {
	if slices.Contains(l.n.Outs, v) {
		return nil
	}
	for _, m := range l.body {
		if !slices.Contains(m.Args, v) {
			continue
		}
		if user != nil || m.Op != op {
			return nil
		}
		user = m
	}
	return user
}

// whole reports whether each of the values has all elements of v.
func whole(v *ir.Value, xs ...*ir.Value) bool {
	return !slices.ContainsFunc(xs, func(x *ir.Value) bool { return !x.Type.Equal(v.Type) })
}
