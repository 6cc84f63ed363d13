package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// joinLoss merges a classifier's loss and its gradient with respect to the logits into one op of the forward function,
// [ir.OpCrossEntropy]. Each row of logits is then read only once, and its gradient takes its place in memory. The
// weight of a token's loss in the step's is known before the first micro-batch, so it is computed in the forward
// function too. Backward takes the gradient like other forward values. The loss must be the log-sum-exp minus the
// label's logit, of logits that nothing else reads. If their last dim is split, both sums are over ranks, and the loss
// is left as it is.
func joinLoss(s *ir.Segment) {
	for _, n := range s.Forward.Nodes {
		if n.Op != ir.OpLogSumExp {
			continue
		}
		l := lossOf{s: s, lse: n}
		if l.forward() && l.backward() && l.movable(l.dl) {
			l.join()
			return
		}
	}
}

// lossOf holds the nodes of a loss.
type lossOf struct {
	s                *ir.Segment
	lse, pick, ce    *ir.Node             // log-sum-exp, label's logit, and their difference
	dlse, dpick, sum *ir.Node             // their gradients with respect to the logits, and the sum of both
	dl               *ir.Value            // the gradient of ce
	moved            map[*ir.Node]bool    // the nodes that compute dl
	now              map[string]*ir.Value // their values in the forward function
}

// forward finds the loss in the forward function.
func (l *lossOf) forward() bool {
	f := l.s.Forward
	users, x, lse := f.Users(), l.lse.Args[0], l.lse.Outs[0]
	for _, n := range f.Nodes {
		switch {
		case n.Op == ir.OpPick && n.Args[0] == x:
			l.pick = n
		case n.Op == ir.OpSub && n.Args[0] == lse:
			l.ce = n
		}
	}
	if l.pick == nil || l.ce == nil || l.ce.Args[1] != l.pick.Outs[0] || users[x] != 2 || users[lse] != 1 ||
		users[l.pick.Outs[0]] != 1 {
		return false
	}
	rows := x.Type.Clone()
	last := rows.Dims[len(rows.Dims)-1]
	rows.Dims, rows.Elem = rows.Dims[:len(rows.Dims)-1], lse.Type.Elem
	return len(last.Axes) == 0 && rows.Monoid == ir.NoMonoid && rows.Equal(lse.Type) &&
		rows.Equal(l.ce.Outs[0].Type) && x.Def != nil && !x.Def.Op.View()
}

// backward finds its gradient in the backward function.
func (l *lossOf) backward() bool {
	b := l.s.Backward
	users, x, lse := b.Users(), b.Value(l.lse.Args[0].Name), b.Value(l.lse.Outs[0].Name)
	if x == nil || lse == nil || users[x] != 1 || users[lse] != 1 || l.s.Weights != nil &&
		(l.s.Weights.Value(x.Name) != nil || l.s.Weights.Value(lse.Name) != nil) {
		return false
	}
	for _, n := range b.Nodes {
		switch {
		case n.Op == ir.OpLogSumExpGrad && n.Args[1] == x && n.Args[2] == lse:
			l.dlse, l.dl = n, n.Args[0]
		case n.Op == ir.OpPickGrad && n.Args[1].Name == l.pick.Args[1].Name:
			l.dpick = n
		case n.Op == ir.OpAdd && l.dlse != nil && l.dpick != nil && slices.Contains(n.Args, l.dlse.Outs[0]) &&
			slices.Contains(n.Args, l.dpick.Outs[0]):
			l.sum = n
		}
	}
	if l.sum == nil || users[l.dlse.Outs[0]] != 1 || users[l.dpick.Outs[0]] != 1 {
		return false
	}
	minus := l.dpick.Args[0].Def
	return minus != nil && minus.Op == ir.OpScale && minus.Attr.Scale == -1 && minus.Args[0] == l.dl &&
		l.dl.Type.Equal(l.ce.Outs[0].Type) && l.sum.Outs[0].Type.Equal(x.Type)
}

// movable reports whether the forward function can compute d from its inputs, by element-wise ops.
func (l *lossOf) movable(d *ir.Value) bool {
	l.moved = map[*ir.Node]bool{}
	ancestors(d.Def, l.moved)
	for n := range l.moved {
		if n.Op != ir.OpInvCount && !n.Op.Element() {
			return false
		}
		for _, a := range n.Args {
			if v := l.s.Forward.Value(a.Name); a.Def == nil && (v == nil || v.Def != nil || a.Kind == ir.Weight) {
				return false
			}
		}
	}
	return d.Def != nil
}

// join rewrites both functions.
func (l *lossOf) join() {
	f, b := l.s.Forward, l.s.Backward
	l.now = map[string]*ir.Value{}
	var nodes []*ir.Node
	for _, n := range f.Nodes {
		switch n {
		case l.lse, l.pick:
		case l.ce:
			nodes = append(append(nodes, l.scale()...), l.node())
		default:
			nodes = append(nodes, n)
		}
	}
	f.Nodes = nodes
	d := l.sum.Outs[0]
	d.Def, d.Kind = nil, ir.Input
	b.Inputs = append(b.Inputs, d)
	removed := map[*ir.Node]bool{l.dlse: true, l.dpick: true, l.sum: true, l.dpick.Args[0].Def: true}
	for i := len(b.Nodes) - 1; i >= 0; i-- {
		n := b.Nodes[i]
		if removed[n] || l.moved[n] && !slices.ContainsFunc(n.Outs, b.Reads) {
			b.Nodes = slices.Delete(b.Nodes, i, i+1)
		}
	}
	b.Inputs = slices.DeleteFunc(b.Inputs, func(v *ir.Value) bool { return !b.Reads(v) })
}

// scale returns the nodes that compute dl, as nodes of the forward function.
func (l *lossOf) scale() (nodes []*ir.Node) {
	for _, n := range l.s.Backward.Nodes {
		if !l.moved[n] {
			continue
		}
		c := *n
		c.Args, c.Outs = nil, nil
		for _, a := range n.Args {
			c.Args = append(c.Args, l.here(a))
		}
		for _, o := range n.Outs {
			v := &ir.Value{Name: o.Name, Type: o.Type.Clone(), Def: &c}
			c.Outs, l.now[o.Name] = append(c.Outs, v), v
		}
		nodes = append(nodes, &c)
	}
	return nodes
}

// here returns a value of backward in the forward function.
func (l *lossOf) here(v *ir.Value) *ir.Value {
	if w := l.now[v.Name]; w != nil {
		return w
	}
	return l.s.Forward.Value(v.Name)
}

// node returns the merged op.
func (l *lossOf) node() *ir.Node {
	d, ce := l.sum.Outs[0], l.ce.Outs[0]
	n := &ir.Node{Op: ir.OpCrossEntropy, Region: l.ce.Region, From: l.ce.From,
		Args: []*ir.Value{l.lse.Args[0], l.pick.Args[1], l.here(l.dl)}}
	n.Outs = []*ir.Value{ce, {Name: d.Name, Type: d.Type.Clone(), Def: n}}
	ce.Def = n
	return n
}
