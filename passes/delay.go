package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// delays decides which partial values pass their users unresolved, so that each sum is resolved by one collective at
// the legal point with the fewest bytes (the earliest of equal ones).
//
// A value may be passed to an op that is jointly linear in exactly the operands that are partial, which must be partial
// over the same axes, in the layout that the op needs. Values with one user form trees, so the best points are found
// exactly from the leaves up: resolving at a value costs its bytes, and resolving before it costs the sum of its
// operands' best points. An accumulator takes partials as they are, because its value is resolved at the end of the
// step in any case.
//
// A value with several users is passed to all of them or to none. Those that are partial over the same axes are tried
// together, then with those that become possible as a result, and passed if the function then resolves fewer bytes. In
// this way the gradients of K and V, which may be replicated over some axes, stay partial over these up to the
// accumulator, even through a norm of K, and are added to the gradient of the queries before it is resolved.
//
// Values whose names are in saved are needed whole elsewhere, so they are not passed.
func delays(r *reader, f *ir.Func, saved map[string]bool) map[*ir.Value]bool {
	users := f.Users()
	best := walk(r, f, saved, users, nil)
	for _, group := range best.shared() {
		forced := append(group, best.forced...)
		for len(group) > 0 {
			try := walk(r, f, saved, users, forced)
			if !try.illegal && try.bytes() < best.bytes() {
				best = try
			}
			group = try.opened(group[0])
			forced = append(group, forced...)
		}
	}
	return best.delay
}

// opened returns the values with several users that became partial over the axes of v because v and similar values are
// passed.
func (d *delayer) opened(v *ir.Value) []*ir.Value {
	var vs []*ir.Value
	for _, group := range d.shared() {
		for _, o := range group {
			if !slices.Contains(d.forced, o) && d.open[v] != nil && slices.Equal(d.open[o].axes, d.open[v].axes) {
				vs = append(vs, o)
			}
		}
	}
	return vs
}

// delayer walks a function forwards. open holds the values that are partial if nothing is resolved before.
type delayer struct {
	*reader
	f       *ir.Func
	saved   map[string]bool
	users   map[*ir.Value]int
	forced  []*ir.Value // values with several users that are passed
	open    map[*ir.Value]*pending
	delay   map[*ir.Value]bool
	illegal bool // a user cannot take a forced value
}

// pending is a partial value: the origin of its parts, and the bytes that its best resolution costs.
type pending struct {
	own    bool // its op reduces a split dim
	axes   []ir.Axis
	layout ir.Layout
	bytes  int
	cost   int
	from   []*ir.Value // partial operands that it passes on
}

func walk(r *reader, f *ir.Func, saved map[string]bool, users map[*ir.Value]int, forced []*ir.Value) *delayer {
	d := &delayer{reader: r, f: f, saved: saved, users: users, forced: forced,
		open: map[*ir.Value]*pending{}, delay: map[*ir.Value]bool{}}
	for _, n := range f.Nodes {
		d.visit(n)
	}
	for _, o := range f.Outputs {
		d.illegal = d.illegal || slices.Contains(forced, o)
	}
	return d
}

// shared groups the open values with several users by their axes.
func (d *delayer) shared() [][]*ir.Value {
	var groups [][]*ir.Value
	for _, n := range d.f.Nodes {
		for _, o := range n.Outs {
			if d.open[o] == nil || d.users[o] < 2 || d.saved[o.Name] {
				continue
			}
			i := slices.IndexFunc(groups, func(g []*ir.Value) bool {
				return slices.Equal(d.open[g[0]].axes, d.open[o].axes)
			})
			if i < 0 {
				groups = append(groups, []*ir.Value{o})
			} else {
				groups[i] = append(groups[i], o)
			}
		}
	}
	return groups
}

// bytes returns the bytes that the function resolves: those of each value that is partial and not passed.
func (d *delayer) bytes() int {
	sum := 0
	for v, o := range d.open {
		partial := o.own || slices.ContainsFunc(o.from, func(f *ir.Value) bool { return d.delay[f] })
		if partial && !d.delay[v] {
			sum += o.bytes
		}
	}
	return sum
}

func (d *delayer) visit(n *ir.Node) {
	r := d.read(n)
	if r.err != nil {
		return // partition reports the error
	}
	layout := r.layout
	passed, open := d.passable(n, layout)
	for _, a := range n.Args {
		d.illegal = d.illegal || slices.Contains(d.forced, a) && !slices.Contains(passed, a)
	}
	if n.Op == ir.OpAccumulate {
		for _, v := range passed {
			d.commit(v)
		}
		return
	}
	for i, o := range n.Outs {
		axes := r.lacks[i]
		switch {
		case len(passed) > 0:
			d.pass(o, passed, axes, open, layout, o.Type.WithLayout(layout).LocalBytes(d.prog.Mesh))
		case len(axes) > 0 && n.Op.Monoid(i) == ir.Sum:
			bytes := o.Type.WithLayout(layout).LocalBytes(d.prog.Mesh)
			d.open[o] = &pending{own: true, axes: axes, layout: layout, bytes: bytes, cost: bytes}
		}
		if d.open[o] != nil && slices.Contains(d.forced, o) {
			d.commit(o)
			d.open[o].cost = 0
		}
	}
}

// pass opens o as a sum of the passed operands' parts, which its op may reduce over further axes. If o is partial in
// any case, passing costs nothing. Otherwise it is done only if it saves bytes, or if an accumulator takes the parts,
// in which case commit walks this tree whatever the costs are.
func (d *delayer) pass(o *ir.Value, passed []*ir.Value, own, open []ir.Axis, layout ir.Layout, bytes int) {
	before := 0
	partial := len(own) > 0
	for _, v := range passed {
		before += d.open[v].cost
		partial = partial || d.delay[v]
	}
	axes := majorFirst(d.prog.Mesh, slices.Concat(own, open))
	d.open[o] = &pending{own: len(own) > 0, axes: axes, layout: layout, bytes: bytes, cost: bytes, from: passed}
	if partial || bytes < before {
		d.commit(passed...)
	} else {
		d.open[o].cost = before
	}
}

// commit makes values pass unresolved, including the values from which they are computed.
func (d *delayer) commit(vs ...*ir.Value) {
	for _, v := range vs {
		if !d.delay[v] {
			d.delay[v] = true
			d.commit(d.open[v].from...)
		}
	}
}

// passable returns the operands of n that are open and may be passed, and the axes over which they are then partial;
// nil if not all of them may be passed.
func (d *delayer) passable(n *ir.Node, layout ir.Layout) (vs []*ir.Value, open []ir.Axis) {
	mask := uint16(0)
	for i, a := range n.Args {
		o := d.open[a]
		if o == nil || d.saved[a.Name] || d.users[a] > 1 && !slices.Contains(d.forced, a) {
			continue
		}
		axes := unscattered(a.Type, o, layout)
		if len(axes) == 0 || n.Op == ir.OpAccumulate && !sameLayout(a.Type, o.layout, layout) {
			continue
		}
		if vs != nil && !slices.Equal(axes, open) {
			return nil, nil
		}
		mask |= 1 << i
		vs, open = append(vs, a), axes
	}
	if len(vs) == 0 || !n.Op.LinearIn(mask) {
		return nil, nil
	}
	return vs, open
}

// unscattered returns the axes over which a value of type t is still partial in the layout that an op needs. That
// layout must be the value's own, or split dims by further axes over which the value is partial, which a reduce-scatter
// resolves. In this way gradients of keys and values that were gathered over cp, and are replicated over a part of tp,
// stay partial over that part.
func unscattered(t ir.Type, o *pending, layout ir.Layout) []ir.Axis {
	rest := o.axes
	for _, e := range t.Dims {
		have, want := o.layout[e.Dim], layout[e.Dim]
		if len(want) < len(have) || !slices.Equal(want[:len(have)], have) {
			return nil
		}
		extra := ir.Plain(want[len(have):])
		if !containsAll(rest, extra) {
			return nil
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(a ir.Axis) bool { return slices.Contains(extra, a) })
	}
	return rest
}

// sameLayout compares two layouts on the dims of t.
func sameLayout(t ir.Type, a, b ir.Layout) bool {
	for _, e := range t.Dims {
		if !slices.Equal(a[e.Dim], b[e.Dim]) {
			return false
		}
	}
	return true
}
