package ir

import (
	"fmt"
	"slices"
)

// shardingAgrees checks the axes of all nodes. In a node that computes, a dim is split the same way wherever it occurs,
// dims that the rule marks as whole are not split, and results are partial over exactly the axes that follow from the
// rule. A collective changes the sharding as its row in the table says.
func shardingAgrees(c *checker, f *Func) error {
	err := f.each(func(n *Node) error {
		switch {
		case n.Op.Comm():
			return c.collective(n)
		case n.Op == OpAccumulate:
			if err := c.accumulates(n); err != nil {
				return err
			}
		}
		return c.computes(n)
	})
	for _, o := range f.Outputs {
		if err == nil && o.Type.Monoid != NoMonoid {
			err = fmt.Errorf("%s is partial, but it is returned: %v", o.Name, o.Type)
		}
	}
	return err
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
			if u.Lacks(i) && u.Merged == nil && !c.mergedAway(uses, u) && !n.GoesRound(axes[u.Dim]) {
				want = append(want, Plain(axes[u.Dim])...)
			}
		}
		want = append(want, passed...)
		if !sameAxes(want, o.Type.Axes) {
			return fmt.Errorf("%s is partial over %v, but its rule requires %v", o.Name, o.Type.Axes, want)
		}
		if len(want) > len(passed) && o.Type.Monoid != n.Op.Monoid(i) {
			return fmt.Errorf("%s combines by %v, but the op by %v", o.Name, o.Type.Monoid, n.Op.Monoid(i))
		}
	}
	return nil
}

// mergedAway reports whether another dim of the node merges u, so that its axes move there and nothing is reduced.
func (c *checker) mergedAway(uses []Use, u Use) bool {
	return slices.ContainsFunc(uses, func(o Use) bool { return slices.Contains(o.Merged, u.Dim) })
}

// splitOf returns the axes that split dim u, which must be the same wherever it occurs.
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
		return nil, fmt.Errorf("dim %s is split over %v, but it must be whole", u.Dim, split)
	}
	return split, nil
}

// passedAxes returns the axes over which operands are partial and results remain partial.
func (c *checker) passedAxes(n *Node) ([]Axis, error) {
	var axes []Axis
	mask := uint16(0)
	for i, a := range n.Args {
		if a.Type.Monoid == NoMonoid {
			continue
		}
		if mask != 0 && !sameAxes(axes, a.Type.Axes) || a.Type.Monoid != Sum {
			return nil, fmt.Errorf("partial operands must be sums over the same axes")
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
