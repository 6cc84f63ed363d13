package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// rematerialize makes backward functions recompute the result of an element-wise op of the forward function if its
// operands are saved anyway, and if its only user is another such op, with which it is fused. In SwiGLU this is the
// activation: it needs the gate projection, which is saved for the activation's gradient. The recomputed value is then
// neither saved nor read, which saves more time than the op takes: of the three matrices of tokens × ffn that SwiGLU
// saves, two remain. The pass works on the logical graph, so that the values are bitwise the same.
func rematerialize(p *ir.Program) error {
	for _, s := range p.Model.Segments {
		s.Backward.Inputs = slices.DeleteFunc(s.Backward.Inputs, func(v *ir.Value) bool {
			def, user := s.Forward.Value(v.Name), soleUser(s.Backward, v)
			if def == nil || user == nil || !isRemade(s, def.Def, user) {
				return false
			}
			remadeBefore(s.Backward, user, v, def.Def)
			return true
		})
	}
	return nil
}

// soleUser returns the node that takes a value, nil if there are several or if the value is returned.
func soleUser(f *ir.Func, v *ir.Value) (user *ir.Node) {
	if slices.Contains(f.Outputs, v) {
		return nil
	}
	for _, n := range f.Nodes {
		if !slices.Contains(n.Args, v) {
			continue
		}
		if user != nil {
			return nil
		}
		user = n
	}
	return user
}

// isRemade reports whether the result of a forward node is recomputed for its user. The node, the nodes that compute
// its operands, and the user must be in the same region, so that no value changes its layout.
func isRemade(s *ir.Segment, n, user *ir.Node) bool {
	if n == nil || !n.Op.Element() || !user.Op.Element() || n.Attr.Round != user.Attr.Round ||
		n.Region != user.Region ||
		!n.Outs[0].Type.Equal(user.Outs[0].Type) {
		return false
	}
	return !slices.ContainsFunc(n.Args, func(a *ir.Value) bool {
		saved := s.Backward.Value(a.Name)
		return saved == nil || saved.Kind == ir.Temp && !isSavedSide(saved) ||
			a.Def != nil && a.Def.Region != n.Region || a.Name == StreamName
	})
}

// isSavedSide reports whether a value of a backward function is a side of a saved one.
func isSavedSide(v *ir.Value) bool { return v.Def.Op == ir.OpSide && v.Def.Args[0].Kind != ir.Temp }

// remadeBefore inserts a node that computes v, which was an input, right before its user, and the sides that it reads
// before that.
func remadeBefore(f *ir.Func, user *ir.Node, v *ir.Value, forward *ir.Node) {
	n := &ir.Node{Op: forward.Op, Attr: forward.Attr, Region: forward.Region, From: forward.From, Outs: []*ir.Value{v}}
	for _, a := range forward.Args {
		n.Args = append(n.Args, f.Value(a.Name))
	}
	v.Kind, v.Def = ir.Temp, n
	before := []*ir.Node{n}
	for _, a := range n.Args {
		if a.Def != nil && slices.Index(f.Nodes, a.Def) > slices.Index(f.Nodes, user) {
			before = slices.Insert(before, 0, a.Def)
		}
	}
	f.Nodes = slices.DeleteFunc(f.Nodes, func(m *ir.Node) bool { return slices.Contains(before, m) })
	f.Nodes = slices.Insert(f.Nodes, slices.Index(f.Nodes, user), before...)
}
