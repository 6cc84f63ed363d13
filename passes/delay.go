package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// delays decides which partial values pass their one user unresolved, so that each sum is resolved by one
// collective at the legal point of fewest bytes (a tie: the earliest).
//
// A value may be passed if its only user is an op jointly linear in exactly those operands that are partial, all
// over the same axes, in the layout that the user wants. Values with one user make trees, so the best
// places are found exactly from the leaves up: resolving at a value costs its bytes, resolving before it costs
// what its operands' best places cost. An accumulator takes partials as they are: its part is resolved at
// the end of the step in any case.
func delays(p *ir.Program, f *ir.Func) map[*ir.Value]bool {
	d := &delayer{prog: p, users: f.Users(), open: map[*ir.Value]*pending{}, delay: map[*ir.Value]bool{}}
	for _, n := range f.Nodes {
		d.visit(n)
	}
	return d.delay
}

// delayer walks a function forwards; open holds the values that are partial when nothing is resolved before.
type delayer struct {
	prog  *ir.Program
	users map[*ir.Value]int
	open  map[*ir.Value]*pending
	delay map[*ir.Value]bool
}

// pending is a partial value: where its parts come from and what resolving it best costs in bytes.
type pending struct {
	axes   []ir.Axis
	layout ir.Layout
	cost   int
	from   []*ir.Value // partial operands that it passes on, nil for a reduction
}

func (d *delayer) visit(n *ir.Node) {
	uses, err := n.Uses()
	if err != nil {
		return // partition reports it
	}
	layout := nodeLayout(d.prog, n, uses)
	passed := d.passable(n, layout)
	if n.Op == ir.OpAccumulate {
		for _, v := range passed {
			d.commit(v)
		}
		return
	}
	for i, o := range n.Outs {
		axes := lacking(uses, i, layout)
		bytes := o.Type.With(layout).LocalBytes(d.prog.Mesh)
		switch {
		case len(passed) > 0:
			d.pass(o, passed, axes, layout, bytes)
		case len(axes) > 0 && n.Op.Monoid(i) == ir.Sum:
			d.open[o] = &pending{axes: axes, layout: layout, cost: bytes}
		}
	}
}

// pass opens o as a sum of the passed operands' parts, which its op may sum over further axes.
func (d *delayer) pass(o *ir.Value, passed []*ir.Value, own []ir.Axis, layout ir.Layout, bytes int) {
	before := 0
	for _, v := range passed {
		before += d.open[v].cost
	}
	// Resolving later is worth it only for fewer bytes, or where an accumulator takes the parts for nothing:
	// then commit walks this tree whatever the costs are.
	axes := slices.Concat(own, d.open[passed[0]].axes)
	d.open[o] = &pending{axes: axes, layout: layout, cost: min(bytes, before), from: passed}
	if bytes < before {
		d.commit(passed...)
	}
}

// commit makes values pass unresolved, and what they are made of.
func (d *delayer) commit(vs ...*ir.Value) {
	for _, v := range vs {
		if !d.delay[v] {
			d.delay[v] = true
			d.commit(d.open[v].from...)
		}
	}
}

// passable are the operands of n that are open and may be passed, or nil if they may not all be.
func (d *delayer) passable(n *ir.Node, layout ir.Layout) []*ir.Value {
	var vs []*ir.Value
	mask := uint16(0)
	for i, a := range n.Args {
		o := d.open[a]
		if o == nil || d.users[a] > 1 || !sameLayout(a.Type, o.layout, layout) {
			continue
		}
		mask |= 1 << i
		vs = append(vs, a)
	}
	if len(vs) == 0 || !n.Op.LinearIn(mask) {
		return nil
	}
	for _, v := range vs {
		if !slices.Equal(d.open[v].axes, d.open[vs[0]].axes) {
			return nil
		}
	}
	return vs
}

// sameLayout compares two maps on the dims of t.
func sameLayout(t ir.Type, a, b ir.Layout) bool {
	for _, e := range t.Dims {
		if !slices.Equal(a[e.Dim], b[e.Dim]) {
			return false
		}
	}
	return true
}
