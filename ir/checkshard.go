package ir

import (
	"fmt"
	"slices"
)

// shardingAgrees: in a node that computes, a dim is split the same way wherever it occurs, whole dims are not
// split, and results are partial over exactly the axes that the rule says. A collective changes the
// sharding as its row says.
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
			err = fmt.Errorf("%s is returned while it is partial: %v", o.Name, o.Type)
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
