package ir

import (
	"fmt"
	"slices"
)

// ringsMeet checks that in a ring each query meets each key that it may see exactly once. The turns of a ring are
// linked by the result that they merge into. All turns take the same queries, and keys that shifts have brought from
// the same value. The turns have distinct offsets, and together cover all keys. The gradients of keys and values of all
// turns end in the same value, at the home ranks. Every message is received, because a shift is one op that all ranks
// of its axis execute in the same order, like any collective.
func ringsMeet(c *checker, f *Func) error {
	for _, v := range append(slices.Clone(f.Inputs), f.Outputs...) {
		if e, away := v.Type.away(); away {
			return fmt.Errorf("%s: the parts of %s are not at their home ranks", v.Name, e.Dim)
		}
	}
	users := users(f)
	return f.each(func(n *Node) error {
		if !n.Op.Attends() {
			return nil
		}
		if len(n.Attr.Axes) == 0 {
			if n.before() != nil {
				return fmt.Errorf("it merges a partial result, but names no axes of a ring")
			}
			return nil
		}
		for _, u := range users[n.Outs[0]] {
			if u.Op == n.Op && u.before() == n.Outs[0] {
				return nil // not the last turn
			}
		}
		return n.ringWhole(c.prog.Mesh, f, users)
	})
}

// away returns a dim whose parts a shift has moved.
func (t Type) away() (Extent, bool) {
	for _, e := range t.Dims {
		if len(e.Axes) > 0 && e.Axes[0].Turn() != 0 {
			return e, true
		}
	}
	return Extent{}, false
}

// before returns the result so far that a node of a ring merges into, nil for the first node.
func (n *Node) before() *Value {
	if vs := n.Joins(); len(vs) > 0 {
		return vs[0]
	}
	return nil
}

// users maps each value to the nodes that take it.
func users(f *Func) map[*Value][]*Node {
	out := map[*Value][]*Node{}
	for _, n := range f.Nodes {
		for _, a := range n.Args {
			out[a] = append(out[a], n)
		}
	}
	return out
}

// ringWhole checks a ring, going back from its last turn.
func (n *Node) ringWhole(m Mesh, f *Func, users map[*Value][]*Node) error {
	met := map[int]bool{}
	operands, homes := n.fixed(), n.homes(users)
	e, _ := n.Keys().Type.Extent(KSeq)
	ranks := m.Ranks(e.Axes)
	for at := n; ; {
		e, _ := at.Keys().Type.Extent(KSeq)
		t := 0
		if len(e.Axes) > 0 {
			t = e.Axes[0].Turn()
		}
		switch {
		case !slices.Equal(at.fixed(), operands):
			return fmt.Errorf("its turns have different operands")
		case met[t]:
			return fmt.Errorf("keys of turn %d occur twice", t)
		case !slices.Equal(at.homes(users), homes):
			return fmt.Errorf("the gradients of keys of turn %d end elsewhere than those of other turns", t)
		}
		met[t] = true
		before := at.before()
		if before == nil {
			break
		}
		if before.Def == nil || before.Def.Op != n.Op || len(users[before]) != 1 || slices.Contains(f.Outputs, before) {
			return fmt.Errorf("%s, which it merges, is not the result of the previous turn only", before.Name)
		}
		at = before.Def
	}
	for _, t := range Turns(&n.Attr, e.Size, ranks) {
		if !met[t] {
			return fmt.Errorf("keys of turn %d are missing", t)
		}
		delete(met, t)
	}
	if len(met) > 0 {
		return fmt.Errorf("%d turns have keys that no query sees", len(met))
	}
	return nil
}

// fixed returns the operands that all turns of a ring share: those that do not move, and the values from which shifts
// moved the others.
func (n *Node) fixed() (vs []*Value) {
	for _, a := range n.Args[:n.Op.own()] {
		for a.Def != nil && a.Def.Op == OpShift {
			a = a.Def.Args[0]
		}
		vs = append(vs, a)
	}
	return vs
}

// homes returns the values in which the gradients of a turn's keys and values end, after shifts and sums.
func (n *Node) homes(users map[*Value][]*Node) (vs []*Value) {
	if n.Op != OpAttentionGrad {
		return nil
	}
	for _, v := range n.Outs[1:] {
		for {
			next := users[v]
			if len(next) != 1 || next[0].Op != OpShift && next[0].Op != OpAdd {
				break
			}
			v = next[0].Outs[0]
		}
		vs = append(vs, v)
	}
	return vs
}
