package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// remake makes backward functions do again what one element-wise op of the forward function makes of values that are
// saved anyway, if it is wanted by one such op alone, with which it is fused: of a gated MLP that is the activation,
// which needs the gate's product, and that is saved for the activation's gradient. What is made again is then neither
// saved nor read, which costs more time than the op: of three matrices of tokens × ffn that the gate saves, two are
// left.
//
// It works on the logical graph, so that the values are the same to the bit.
func remake(p *ir.Program) error {
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

// soleUser is the node that takes a value, if there is but one and nothing else does.
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

// isRemade tells whether what a forward node makes is made again for its user: all three, the node, what makes its
// operands, and the user, are of one region, so that no value changes its layout for that.
func isRemade(s *ir.Segment, n, user *ir.Node) bool {
	if n == nil || !n.Op.Element() || !user.Op.Element() || n.Attr.Round != user.Attr.Round ||
		n.Region != user.Region ||
		!n.Outs[0].Type.Equal(user.Outs[0].Type) {
		return false
	}
	return !slices.ContainsFunc(n.Args, func(a *ir.Value) bool {
		saved := s.Backward.Value(a.Name)
		return saved == nil || saved.Kind == ir.Temp || a.Def != nil && a.Def.Region != n.Region || a.Name == StreamName
	})
}

// remadeBefore puts a node that makes v, an input until now, right before its user.
func remadeBefore(f *ir.Func, user *ir.Node, v *ir.Value, forward *ir.Node) {
	n := &ir.Node{Op: forward.Op, Attr: forward.Attr, Region: forward.Region, From: forward.From, Outs: []*ir.Value{v}}
	for _, a := range forward.Args {
		n.Args = append(n.Args, f.Value(a.Name))
	}
	v.Kind, v.Def = ir.Temp, n
	f.Nodes = slices.Insert(f.Nodes, slices.Index(f.Nodes, user), n)
}
