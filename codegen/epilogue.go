package codegen

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// epilogue lets products begin from what is added to them: a bias, a residual, another product. The addition is then
// the end of the product, whose sums are in registers, and no pass over memory of its own. It returns the function's
// ops as they are written; e.from has what each product is added to.
//
// A product takes an addition in if nothing else uses it, if what is added is there before it, and if it may write
// where the sum goes: an addition inside of a group leaves its place to the product; any other sum's place is free once
// the product's operands were read, so these must lie elsewhere, and nothing may come between the two; or, on a CPU,
// the sum stays where the product would have been, if nothing else wants that place before the sum's last use.
func (e *emitter) epilogue(nodes []*ir.Node) []*ir.Node {
	e.from, e.with, e.stays = map[*ir.Node]*ir.Value{}, map[*ir.Node]*ir.Node{}, map[*ir.Value]*ir.Value{}
	nodes = slices.Clone(nodes)
	users := e.f.Users()
	for i := 0; i < len(nodes); i++ {
		for i < len(nodes) && e.takeIn(nodes, i, users) {
			if nodes[i] == nil {
				nodes = slices.Delete(nodes, i, i+1)
			}
		}
	}
	nodes = e.activations(nodes)
	if e.gpu() {
		nodes = e.biasGrads(nodes)
	}
	return nodes
}

// takeIn moves one addition of op i into the product that it adds to, if it can. The op becomes nil if that was all of
// it.
func (e *emitter) takeIn(nodes []*ir.Node, i int, users map[*ir.Value]int) bool {
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
				!e.adds(v, w, add) || !before(nodes[:at], w) {
				continue
			}
			if sum := add.Outs[0]; !slices.Contains(g.Outs, sum) {
				nodes[i] = without(g, add, sum, v)
			} else if e.mayWrite(nodes[at:i], sum) {
				nodes[at] = writing(nodes[at], sum)
				nodes[i] = nil
				if len(body) > 1 {
					nodes[i] = without(g, add, sum, sum)
				}
			} else if len(body) == 1 && e.mayStay(nodes[i+1:], v, sum) {
				nodes[i], e.stays[sum] = nil, v
			} else {
				continue
			}
			e.from[nodes[at]], e.with[nodes[at]] = w, add
			return true
		}
	}
	return false
}

// adds tells whether v is a product that can begin from w, as add adds them: rows of numbers as the kernels compute,
// all of them or one.
func (e *emitter) adds(v, w *ir.Value, add *ir.Node) bool {
	m := v.Def
	if m.Op != ir.OpMatMul || m.Attr.In != "" || m.Attr.Round || e.from[m] != nil || v.Place.Region != ir.PlaceWork ||
		len(productOf(m).groups) > 0 {
		return false
	}
	if !e.sumsIn(v.Type.Elem, m) || w.Type.Elem != v.Type.Elem || add.Outs[0].Type.Elem != v.Type.Elem {
		return false
	}
	return w.Type.Equal(v.Type) || inOrder(w.Type.Dims, productOf(m).n, nil) &&
		e.count(w.Type.Dims) == e.count(productOf(m).n)
}

// sumsIn tells whether a product's sums can begin from numbers of a type, its result's: of those that are computed in,
// and on a GPU, where sums are rounded once at their end, of 16 bits too.
func (e *emitter) sumsIn(elem ir.Elem, m *ir.Node) bool {
	for _, x := range m.Args {
		if elem.Narrow() && (!e.gpu() || x.Type.Elem != elem) || !elem.Narrow() && x.Type.Elem != ir.F32 &&
			x.Type.Elem != ir.F64 {
			return false
		}
	}
	return true
}

// once tells whether one op of a group reads a value.
func once(body []*ir.Node, v *ir.Value) bool {
	n := 0
	for _, m := range body {
		if slices.Contains(m.Args, v) {
			n++
		}
	}
	return n == 1
}

// before tells whether a value is an input or a result of the ops before.
func before(nodes []*ir.Node, w *ir.Value) bool {
	return w.Def == nil || slices.ContainsFunc(nodes, func(n *ir.Node) bool { return slices.Contains(n.Outs, w) })
}

// mayWrite tells whether the first of some ops, a product, may write where sum goes, which the op behind them makes.
// What that op reads need not be looked at: the memory pass lets it live until the op's end, so that no result of the
// op lies there (TestMemory of passes), and views make nothing.
func (e *emitter) mayWrite(nodes []*ir.Node, sum *ir.Value) bool {
	for _, n := range nodes[1:] {
		if !n.Op.View() {
			return false
		}
	}
	return !slices.ContainsFunc(nodes[0].Args, func(a *ir.Value) bool { return e.overlap(a, sum) })
}

// mayStay tells whether a sum may lie where the product v would, which is free behind the addition: none of the
// following ops writes there as long as the sum is wanted.
func (e *emitter) mayStay(nodes []*ir.Node, v, sum *ir.Value) bool {
	if e.gpu() || sum.Place.Region != ir.PlaceWork || !sum.Type.Equal(v.Type) || slices.Contains(e.f.Outputs, sum) {
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
		return slices.ContainsFunc(n.Outs, func(o *ir.Value) bool { return e.overlap(o, v) })
	})
}

// lies is where a value of the workspace lies.
func (e *emitter) lies(v *ir.Value) ir.Place {
	if at := e.stays[v]; at != nil {
		return at.Place
	}
	return v.Place
}

// overlap tells whether two values of the workspace share memory.
func (e *emitter) overlap(a, b *ir.Value) bool {
	x, y := e.lies(a), e.lies(b)
	return x.Region == ir.PlaceWork && y.Region == ir.PlaceWork &&
		x.Offset < y.Offset+b.Type.LocalBytes(e.p.Mesh) && y.Offset < x.Offset+a.Type.LocalBytes(e.p.Mesh)
}

// writing is a product whose result goes where another value lies.
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
