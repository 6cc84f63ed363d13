package fusion

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// takeIn moves one addition of op i into the matmul to whose result it adds, if possible. The op becomes nil if nothing
// is left of it.
func (u *fuser) takeIn(nodes []*ir.Node, i int, users map[*ir.Value]int) bool {
	g := nodes[i]
	body := g.Body
	if g.Op == ir.OpAdd {
		body = []*ir.Node{g}
	}
	for _, add := range body {
		if add.Op != ir.OpAdd || add.Attr.Round {
			continue
		}
		for k, v := range add.Args {
			w := add.Args[1-k]
			at := slices.Index(nodes, v.Def)
			if v == w || at < 0 || users[v] != 1 || !once(body, v) || !slices.Contains(g.Args, w) ||
				!u.adds(v, w, add) || !before(nodes[:at], w) {
				continue
			}
			c := *u.call(nodes[at])
			if sum := add.Outs[0]; !slices.Contains(g.Outs, sum) {
				nodes[i] = without(g, add, sum, v)
			} else if u.mayWrite(nodes[at:i], sum) {
				nodes[at] = writing(nodes[at], sum)
				nodes[i] = nil
				if len(body) > 1 {
					nodes[i] = without(g, add, sum, sum)
				}
			} else if len(body) == 1 && u.mayStay(nodes[i+1:], v, sum) {
				nodes[i], u.inPlaceOf[sum], c.SumInPlace = nil, v, true
			} else {
				continue
			}
			c.Bias, c.BiasAddition = c.C, c.Addition
			c.C, c.Addition = w, add
			u.calls[nodes[at]] = &c
			return true
		}
	}
	return false
}

// adds reports whether v is a matmul that can have w as its C operand for the addition add: rows in the kernels' type,
// all of them or one. On a GPU, a matmul that adds one row, a bias, can also add all rows: a residual.
func (u *fuser) adds(v, w *ir.Value, add *ir.Node) bool {
	m := v.Def
	if m.Op != ir.OpMatMul || m.Attr.In != "" || m.Attr.Round || u.call(m).Bias != nil ||
		v.Place.Region != ir.PlaceWork ||
		len(GEMMOf(m).Groups) > 0 {
		return false
	}
	if !u.sumsIn(v.Type.Elem, m) || w.Type.Elem != v.Type.Elem || add.Outs[0].Type.Elem != v.Type.Elem {
		return false
	}
	if c := u.call(m).C; c != nil {
		return u.onGPU && w.Type.Equal(v.Type) && !c.Type.Equal(v.Type)
	}
	columns := GEMMOf(m).N
	return w.Type.Equal(v.Type) || InOrder(w.Type.Dims, columns, nil) && u.elems(w.Type.Dims) == u.elems(columns)
}

// sumsIn reports whether a matmul's C operand may have a type: that of the arithmetic, and on a GPU, where sums are
// rounded once at the end, also a 16-bit type.
func (u *fuser) sumsIn(elem ir.Elem, m *ir.Node) bool {
	for _, x := range m.Args {
		if elem.Narrow() && (!u.onGPU || x.Type.Elem != elem) || !elem.Narrow() && x.Type.Elem != ir.F32 &&
			x.Type.Elem != ir.F64 {
			return false
		}
	}
	return true
}

// once reports whether exactly one op of a group reads a value.
func once(body []*ir.Node, v *ir.Value) bool {
	n := 0
	for _, m := range body {
		if slices.Contains(m.Args, v) {
			n++
		}
	}
	return n == 1
}

// before reports whether a value is an input or a result of the ops before.
func before(nodes []*ir.Node, w *ir.Value) bool {
	return w.Def == nil || slices.ContainsFunc(nodes, func(n *ir.Node) bool { return slices.Contains(n.Outs, w) })
}

// mayWrite reports whether the first of some ops, a matmul, may write to the place of sum, which the op after them
// computes. The inputs of that op need no check: the memory pass keeps them alive until the op's end, so that no result
// of the op overlaps them (TestMemory of passes), and views compute nothing.
func (u *fuser) mayWrite(nodes []*ir.Node, sum *ir.Value) bool {
	for _, n := range nodes[1:] {
		if !n.Op.View() {
			return false
		}
	}
	return !slices.ContainsFunc(nodes[0].Args, func(a *ir.Value) bool { return u.overlap(a, sum) })
}

// mayStay reports whether a sum may be in the place of matmul v, which is free after the addition: none of the
// following ops may write there while the sum is in use.
func (u *fuser) mayStay(nodes []*ir.Node, v, sum *ir.Value) bool {
	if u.onGPU || sum.Place.Region != ir.PlaceWork || !sum.Type.Equal(v.Type) || slices.Contains(u.f.Outputs, sum) {
		return false
	}
	last := -1
	for i, n := range nodes {
		if slices.Contains(n.Args, sum) {
			last = i
			if n.Op.View() || n.Op.Attends() { // another name, or one op of several
				return false
			}
		}
	}
	return !slices.ContainsFunc(nodes[:last+1], func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Outs, func(o *ir.Value) bool { return u.overlap(o, v) })
	})
}

// lies returns the place of a value in the workspace.
func (u *fuser) lies(v *ir.Value) ir.Place {
	if at := u.inPlaceOf[v]; at != nil {
		return at.Place
	}
	return v.Place
}

// overlap reports whether two values of the workspace share memory. A side of a value counts as the value.
func (u *fuser) overlap(a, b *ir.Value) bool {
	a, b = cmp.Or(ir.WholeOfSide(a, u.sides), a), cmp.Or(ir.WholeOfSide(b, u.sides), b)
	x, y := u.lies(a), u.lies(b)
	return x.Region == ir.PlaceWork && y.Region == ir.PlaceWork &&
		x.Offset < y.Offset+b.Type.LocalBytes(u.mesh) && y.Offset < x.Offset+a.Type.LocalBytes(u.mesh)
}

// writing is a matmul whose result is written over another value.
func writing(n *ir.Node, to *ir.Value) *ir.Node {
	c := *n
	c.Outs = []*ir.Value{to}
	return &c
}

// without is a group without an addition, whose sum is now called otherwise.
func without(g, add *ir.Node, sum, now *ir.Value) *ir.Node {
	c := *g
	c.Args, c.Body = nil, nil
	c.Outs = slices.DeleteFunc(slices.Clone(g.Outs), func(v *ir.Value) bool { return v == sum })
	made := map[*ir.Value]bool{}
	for _, m := range g.Body {
		if m == add {
			continue
		}
		m2 := *m
		m2.Args = slices.Clone(m.Args)
		for i, a := range m2.Args {
			if a == sum {
				a, m2.Args[i] = now, now
			}
			if !made[a] && !slices.Contains(c.Args, a) {
				c.Args = append(c.Args, a)
			}
		}
		made[m.Outs[0]] = true
		c.Body = append(c.Body, &m2)
	}
	return &c
}
