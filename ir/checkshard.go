package ir

import (
	"fmt"
	"slices"
)

// shardingAgrees: in a node that computes, a dim is split the same way wherever it occurs, whole dims are not
// split, and results are partial over exactly the axes that the rule says. A collective changes the
// sharding as its row says.
func shardingAgrees(c *checker, f *Func) error {
	return f.each(func(n *Node) error {
		if n.Op.Comm() {
			return c.collective(n)
		}
		return c.computes(n)
	})
}

func (c *checker) computes(n *Node) error {
	uses, err := n.Uses()
	if err != nil {
		return err
	}
	passed, err := c.passedAxes(n)
	if err != nil {
		return err
	}
	axes := map[Dim][]Axis{}
	for _, u := range uses {
		a, err := c.splitOf(n, u, axes)
		if err != nil {
			return err
		}
		axes[u.Dim] = a
	}
	for i, o := range n.Outs {
		var want []Axis
		for _, u := range uses {
			if u.Lacks(i) && u.Merged == nil && !c.mergedAway(uses, u) {
				want = append(want, axes[u.Dim]...)
			}
		}
		want = append(want, passed...)
		if !sameAxes(want, o.Type.Axes) {
			return fmt.Errorf("%s is partial over %v, the rule says %v", o.Name, o.Type.Axes, want)
		}
		if len(want) > len(passed) && o.Type.Monoid != n.Op.Monoid(i) {
			return fmt.Errorf("%s combines by %v, the op by %v", o.Name, o.Type.Monoid, n.Op.Monoid(i))
		}
	}
	return nil
}

// mergedAway tells whether another dim of the node merges u: its axes go there, and nothing is summed.
func (c *checker) mergedAway(uses []Use, u Use) bool {
	return slices.ContainsFunc(uses, func(o Use) bool { return slices.Contains(o.Merged, u.Dim) })
}

// splitOf is how dim u is split, the same wherever it occurs.
func (c *checker) splitOf(n *Node, u Use, axes map[Dim][]Axis) ([]Axis, error) {
	var split []Axis
	first := true
	for _, v := range slices.Concat(n.Args, n.Outs) {
		for _, e := range v.Type.Dims {
			if e.Dim != u.Dim && (u.To == "" || e.Dim != u.To) {
				continue
			}
			if !first && !slices.Equal(split, e.Axes) {
				return nil, fmt.Errorf("dim %s is split over %v and %v", u.Dim, split, e.Axes)
			}
			split, first = e.Axes, false
		}
	}
	if u.Whole && len(split) > 0 {
		return nil, fmt.Errorf("dim %s is split over %v and may not be", u.Dim, split)
	}
	return split, nil
}

// passedAxes are the axes over which operands are partial and results stay so.
func (c *checker) passedAxes(n *Node) ([]Axis, error) {
	var axes []Axis
	mask := uint16(0)
	for i, a := range n.Args {
		if a.Type.Monoid == NoMonoid {
			continue
		}
		if mask != 0 && !sameAxes(axes, a.Type.Axes) || a.Type.Monoid != Sum {
			return nil, fmt.Errorf("partial operands differ")
		}
		mask, axes = mask|1<<i, a.Type.Axes
	}
	if mask == 0 {
		return nil, nil
	}
	if !n.Op.LinearIn(mask) {
		return nil, fmt.Errorf("%s is not linear in its partial operands", n.Op)
	}
	return axes, nil
}

func sameAxes(a, b []Axis) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// collective checks that the operand's type becomes the result's by what the node says.
func (c *checker) collective(n *Node) error {
	got := Moved(n.Args[0].Type, n.Op, n.Attr)
	if !got.Equal(n.Outs[0].Type) {
		return fmt.Errorf("%s makes %v of %v, not %v", n.Op, got, n.Args[0].Type, n.Outs[0].Type)
	}
	return nil
}

// Moved is the type that a collective makes of t: it removes the axes from the partial or from dim, and adds them
// to dim or to To.
func Moved(t Type, op Op, a Attr) Type {
	t = t.Clone()
	if op == OpAllReduce || op == OpReduceScatter {
		t.Axes = slices.DeleteFunc(t.Axes, func(x Axis) bool { return slices.Contains(a.Axes, x) })
		if len(t.Axes) == 0 {
			t.Monoid, t.Axes = NoMonoid, nil
		}
	}
	for i := range t.Dims {
		d := &t.Dims[i]
		from := d.Dim == a.Dim && (op == OpAllGather || op == OpAllToAll)
		to := d.Dim == a.Dim && (op == OpReduceScatter || op == OpSlice) || d.Dim == a.To && op == OpAllToAll
		if from {
			d.Axes = slices.DeleteFunc(d.Axes, func(x Axis) bool { return slices.Contains(a.Axes, x) })
		}
		if to {
			d.Axes = append(d.Axes, a.Axes...)
		}
	}
	return t
}
