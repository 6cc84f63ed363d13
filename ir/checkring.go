package ir

import (
	"fmt"
	"slices"
)

// ringsMeet: in a ring each query meets each key that it may see once. A ring's turns are linked by what they join in;
// all take the same queries, and keys that shifts have brought from one place; the last has met all, in turns that no
// two share. What a turn makes of the gradients of keys and values ends where that of the others ends, at home. So no
// message is sent that nobody takes: a shift is one op, that all ranks of its axis come to in one order, as to any
// collective.
func ringsMeet(c *checker, f *Func) error {
	for _, v := range append(slices.Clone(f.Inputs), f.Outputs...) {
		if e, away := v.Type.away(); away {
			return fmt.Errorf("%s: the parts of %s are not where they belong", v.Name, e.Dim)
		}
	}
	users := users(f)
	return f.each(func(n *Node) error {
		if !n.Op.Attends() {
			return nil
		}
		if len(n.Attr.Axes) == 0 {
			if n.before() != nil {
				return fmt.Errorf("it joins in other keys' results and names no axes of a ring")
			}
			return nil
		}
		for _, u := range users[n.Outs[0]] {
			if u.Op == n.Op && u.before() == n.Outs[0] {
				return nil // not the last
			}
		}
		return n.ringWhole(c.prog.Mesh, f, users)
	})
}

// away finds a dim whose parts a shift has moved.
func (t Type) away() (Extent, bool) {
	for _, e := range t.Dims {
		if len(e.Axes) > 0 && e.Axes[0].Turn() != 0 {
			return e, true
		}
	}
	return Extent{}, false
}

// before is the result so far that a node of a ring joins in, nil for the first.
func (n *Node) before() *Value {
	if vs := n.Joins(); len(vs) > 0 {
		return vs[0]
	}
	return nil
}

// users lists the nodes that take a value.
func users(f *Func) map[*Value][]*Node {
	out := map[*Value][]*Node{}
	for _, n := range f.Nodes {
		for _, a := range n.Args {
			out[a] = append(out[a], n)
		}
	}
	return out
}

// ringWhole goes back from the last turn of a ring.
func (n *Node) ringWhole(m Mesh, f *Func, users map[*Value][]*Node) error {
	met := map[int]bool{}
	of, homes := n.fixed(), n.homes(users)
	e, _ := n.Keys().Type.Extent(KSeq)
	ranks := m.Ranks(e.Axes)
	for at := n; ; {
		e, _ := at.Keys().Type.Extent(KSeq)
		t := 0
		if len(e.Axes) > 0 {
			t = e.Axes[0].Turn()
		}
		switch {
		case !slices.Equal(at.fixed(), of):
			return fmt.Errorf("its turns take other operands")
		case met[t]:
			return fmt.Errorf("keys of turn %d are met twice", t)
		case !slices.Equal(at.homes(users), homes):
			return fmt.Errorf("the gradients of keys of turn %d are not where those of others are", t)
		}
		met[t] = true
		before := at.before()
		if before == nil {
			break
		}
		if before.Def == nil || before.Def.Op != n.Op || len(users[before]) != 1 || slices.Contains(f.Outputs, before) {
			return fmt.Errorf("%s, which it joins in, is not of the turn before alone", before.Name)
		}
		at = before.Def
	}
	for _, t := range Turns(&n.Attr, e.Size, ranks) {
		if !met[t] {
			return fmt.Errorf("keys of turn %d are not met", t)
		}
		delete(met, t)
	}
	if len(met) > 0 {
		return fmt.Errorf("%d turns are there of which no query sees a key", len(met))
	}
	return nil
}

// fixed are the operands that all turns of a ring share: those that stay, and where shifts brought the others from.
func (n *Node) fixed() (vs []*Value) {
	for _, a := range n.Args[:n.Op.own()] {
		for a.Def != nil && a.Def.Op == OpShift {
			a = a.Def.Args[0]
		}
		vs = append(vs, a)
	}
	return vs
}

// homes are where the gradients of keys and values end that a turn makes: behind shifts and what sums them up.
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
