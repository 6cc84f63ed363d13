package passes

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// remat gives each segment of blocks a second pair of functions if the plan recomputes blocks by themselves. The
// forward function computes the same. The backward function takes only what the policy saves, and recomputes the rest
// from that, each value just before its first user. Values that no gradient needs are not recomputed. The pass works on
// the logical graph: recomputed nodes have the ops, regions and dropout keys of the forward function. The partitioner
// therefore repeats their collectives by the same rule, and the values are bitwise the same.
func remat(p *ir.Program) error {
	savedIn, known := policies[p.Plan.Recompute]
	if !known {
		return fmt.Errorf("unknown recompute %q", p.Plan.Recompute)
	}
	if savedIn == nil || p.Plan.RecomputeEvery > 1 {
		return nil
	}
	for _, s := range p.Model.Segments {
		if isBlock(s) {
			s.Remat = recomputed(s, savedIn(s.Forward))
		}
	}
	return nil
}

// policies return the nodes of a forward function whose results are saved; a block's inputs always are.
var policies = map[string]func(*ir.Func) map[*ir.Node]bool{
	"none":      nil,
	"selective": expensive,
	"full":      func(*ir.Func) map[*ir.Node]bool { return nil },
}

// expensive returns the nodes whose results selective recompute saves: those of expensive ops, so that the attention
// core and element-wise ops are recomputed (Korthikanti et al. 2022). If a bias and a residual are added to a matmul's
// result, possibly after dropout, the sum is saved instead. It is as large, nothing is recomputed for it, and the
// matmul's GEMM can add the bias.
func expensive(f *ir.Func) map[*ir.Node]bool {
	saved, users := map[*ir.Node]bool{}, f.Users()
	for _, n := range f.Nodes {
		switch {
		case n.Attr.Round:
		case n.Op == ir.OpMatMul:
			saved[lastSum(f, n, users)] = true
		case n.Op == ir.OpEmbed || n.Op == ir.OpRoute:
			saved[n] = true
		}
	}
	return saved
}

// lastSum returns the last of the additions to a matmul's result, each of which is the only user of the value before
// it; the matmul if there are none. Dropout may be between them.
func lastSum(f *ir.Func, matmul *ir.Node, users map[*ir.Value]int) *ir.Node {
	last, v := matmul, matmul.Outs[0]
	for _, n := range f.Nodes {
		if n.Op != ir.OpAdd && n.Op != ir.OpDropout || n.Attr.Round || users[v] != 1 || !slices.Contains(n.Args, v) ||
			!n.Outs[0].Type.Equal(v.Type) {
			continue
		}
		v = n.Outs[0]
		if n.Op == ir.OpAdd {
			last = n
		}
	}
	return last
}

// isBlock distinguishes blocks, which return what they take, from embeddings and heads, which are not recomputed.
func isBlock(s *ir.Segment) bool {
	return s.Forward.Value(StreamName) != nil && len(s.Forward.Outputs) > 0
}

// recomputed returns the variant of a segment whose forward function saves only the results of some of its nodes.
func recomputed(s *ir.Segment, saved map[*ir.Node]bool) *ir.Segment {
	v := &ir.Segment{Name: s.RematName(), Count: s.Count, Forward: s.Forward.Clone()}
	v.Forward.Name = v.Name + ".forward"
	a := &rematerializer{saved: saved, from: s.Forward, to: &ir.Func{Name: v.Name + ".backward"},
		made: map[string]*ir.Value{},
		now:  map[*ir.Value]*ir.Value{}}
	a.rewrite(s.Backward.Clone())
	gatherRounds(a.to)
	v.Backward = a.to
	return v
}

// rematerializer rewrites a backward function.
type rematerializer struct {
	saved map[*ir.Node]bool       // nodes of the forward function whose results are saved
	from  *ir.Func                // the forward function
	to    *ir.Func                // the new backward function
	made  map[string]*ir.Value    // forward values that it has so far
	now   map[*ir.Value]*ir.Value // values of the old backward function in the new one
}

func (a *rematerializer) rewrite(old *ir.Func) {
	for _, v := range old.Inputs {
		if a.from.Value(v.Name) == nil { // an incoming gradient
			a.to.Inputs = append(a.to.Inputs, v)
			a.now[v] = v
		}
	}
	for _, n := range old.Nodes {
		if len(n.Outs) > 0 && a.made[n.Outs[0].Name] != nil {
			a.now[n.Outs[0]] = a.made[n.Outs[0].Name] // a view that is recomputed already
			continue
		}
		for i, arg := range n.Args {
			n.Args[i] = a.value(arg)
		}
		a.to.Nodes = append(a.to.Nodes, n)
		for _, o := range n.Outs {
			a.now[o] = o
			if a.from.Value(o.Name) != nil {
				a.made[o.Name] = o
			}
		}
	}
	for _, o := range old.Outputs {
		a.to.Outputs = append(a.to.Outputs, a.now[o])
	}
}

// value returns an operand of the old function in the new one.
func (a *rematerializer) value(v *ir.Value) *ir.Value {
	if now := a.now[v]; now != nil {
		return now
	}
	a.now[v] = a.forward(a.from.Value(v.Name))
	return a.now[v]
}

// forward returns a value of the forward function in the backward one: an input if it is saved, otherwise recomputed
// from the operands of its op.
func (a *rematerializer) forward(v *ir.Value) *ir.Value {
	if w := a.made[v.Name]; w != nil {
		return w
	}
	if v.Def == nil || a.saved[v.Def] {
		w := &ir.Value{Name: v.Name, Type: v.Type.Clone(), Kind: ir.Input, Param: v.Param}
		if v.Kind == ir.Weight {
			w.Kind = ir.Weight
		}
		a.to.Inputs = append(a.to.Inputs, w)
		a.made[v.Name] = w
		return w
	}
	n := &ir.Node{Op: v.Def.Op, Attr: v.Def.Attr, Region: v.Def.Region, From: v.Def.From}
	for _, arg := range v.Def.Args {
		n.Args = append(n.Args, a.forward(arg))
	}
	for _, o := range v.Def.Outs {
		w := &ir.Value{Name: o.Name, Type: o.Type.Clone(), Def: n}
		n.Outs = append(n.Outs, w)
		a.made[o.Name] = w
	}
	a.to.Nodes = append(a.to.Nodes, n)
	return a.made[v.Name]
}

// splitInput makes a block save its input split over tp. The forward function slices it, and the backward function
// gathers it for users that need it whole.
func (pt *partitioner) splitInput() {
	x := pt.f.Value(StreamName)
	layout := ir.Layout{}
	for d, axes := range pt.prog.Layouts[ir.Norm] {
		layout[d] = axes
	}
	layout[ir.Seq] = atoms(pt.prog.Mesh, present(pt.prog.Mesh, "tp"))
	pt.made[StreamName] = pt.reshard(pt.now[x], x.Type.WithLayout(layout), ir.Norm, StreamName)
	pt.f.Nodes = pt.nodes
}
