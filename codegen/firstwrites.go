package codegen

import (
	"github.com/planc-dev/planc/ir"
)

// A gradient is zeroed before a step, and each micro-batch adds to it, unless a matmul overwrites it in the first one.
// That saves the zeroing and the matmul's reading of its C operand. It requires that nothing else adds to the gradient
// before, in any order in which a schedule may run the functions.

// written lists the parameters of a segment whose gradients are written by matmuls in the first micro-batch, in the
// order of its weights.
func (ps parameters) written(s *ir.Segment) (ws []*ir.Value) {
	for _, w := range s.Forward.Weights() {
		if ps.mayWriteFirst(s, w) && madeOnce(s, w.Name) && (s.Remat == nil || !ps.p.Uses(s.Remat) ||
			madeOnce(s.Remat, w.Name)) {
			ws = append(ws, w)
		}
	}
	return ws
}

// mayWriteFirst reports whether no other layer of the model adds to a gradient before a layer of segment s does. If
// other layers share the parameter, this holds for the last of them, if it is a single layer and backward is not split:
// gradients of blocks reach it first. Second parts of split backward passes may run in any order.
func (ps parameters) mayWriteFirst(s *ir.Segment, w *ir.Value) bool {
	run, offset := ps.runOf(s, w)
	shared := run.segment != ps.segmentID(s.Name)
	for i, o := range ps.p.Model.Segments {
		for _, x := range o.Forward.Weights() {
			if r, at := ps.runOf(o, x); o == s || r != run || at != offset {
				continue
			}
			shared = true
			if i > ps.segmentID(s.Name) {
				return false
			}
		}
	}
	return !shared || s.Count == 1 && s.Weights == nil
}

// madeOnce reports whether exactly one matmul of a segment's functions computes a parameter's gradient in place, in the
// kernels' type, and nothing else adds to it.
func madeOnce(s *ir.Segment, param string) bool {
	found := 0
	for _, n := range s.Accumulates() {
		if n.Attr.Scalar() || n.Attr.Into != param {
			continue
		}
		x := n.Args[0]
		found++
		if x.Place.Region != ir.PlaceGrad || !writes(x) {
			return false
		}
	}
	return found == 1
}

// writes reports whether a gradient is the whole result of a matmul, in a type that needs no rounding to be stored.
func writes(x *ir.Value) bool {
	return x.Def != nil && x.Def.Op == ir.OpMatMul && !x.Def.Attr.Round &&
		(x.Type.Elem == ir.F32 || x.Type.Elem == ir.F64)
}
