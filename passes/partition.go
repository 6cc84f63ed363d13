package passes

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// partition gives every value a sharding and makes every change of sharding a collective.
//
// Each region of the plan has one layout, a map from dims to axes. A node works in its region's layout: its operands
// are resharded to it (parameters are stored in it), and its results have it. A dim that the result lacks makes it
// partial; [delays] decides where it is resolved. The rule is the same for forward and backward functions. A saved
// value enters the backward function with the sharding that the forward function gave it.
//
// Axes are divided into their atoms first, so that a value that moves between an axis and a product of atoms that
// shares some with it moves as little as possible.
func partition(p *ir.Program) error {
	layouts, r := map[ir.Region]ir.Layout{}, &reader{p, map[*ir.Node]*read{}}
	for name, l := range p.Layouts {
		layouts[name] = ir.Layout{}
		for d, axes := range l {
			layouts[name][d] = atoms(p.Mesh, axes)
		}
	}
	p.Layouts = layouts
	for _, s := range p.Model.Segments {
		passed := map[string]bool{}
		find := func(f *ir.Func, saved map[string]bool) map[*ir.Value]bool {
			d := delays(r, f, saved)
			for v := range d {
				passed[v.Name] = true
			}
			return d
		}
		if err := partitionSegment(r, s, false, find); err != nil {
			return err
		}
		s.Passed = passed
		if err := partitionRemat(r, s.Remat, passed); err != nil {
			return err
		}
	}
	return nil
}

// partitionRemat partitions the functions of the recomputed variant of a segment. The partials that are passed are
// those of the functions without recomputation, so that the values are the same.
func partitionRemat(r *reader, s *ir.Segment, passed map[string]bool) error {
	same := func(f *ir.Func, saved map[string]bool) map[*ir.Value]bool { return named(f, passed, saved) }
	return partitionSegment(r, s, r.prog.Plan.RecomputeSplit, same)
}

// partitionSegment partitions the functions of a variant of a segment, which saves its input whole or split. find
// returns which partials pass their users.
func partitionSegment(r *reader, s *ir.Segment, split bool,
	find func(f *ir.Func, saved map[string]bool) map[*ir.Value]bool) error {
	made := map[string]*ir.Value{}
	for _, f := range s.Funcs() {
		saved := map[string]bool{}
		if f == s.Forward {
			saved = savedNames(s)
		}
		pt := &partitioner{prog: r.prog, reader: r, f: f, made: made,
			now: make(map[*ir.Value]*ir.Value, len(f.Inputs)+len(f.Nodes)), moved: map[string]*ir.Value{},
			delay: find(f, saved)}
		if err := pt.run(); err != nil {
			return fmt.Errorf("segment %s: %w", s.Name, err)
		}
		if f == s.Forward && split {
			pt.splitInput()
		}
		countRounds(r.prog, f)
	}
	return nil
}

// named returns the results in f that have one of the names, except for those that are saved.
func named(f *ir.Func, names, saved map[string]bool) map[*ir.Value]bool {
	vs := map[*ir.Value]bool{}
	for _, n := range f.Nodes {
		for _, o := range n.Outs {
			if names[o.Name] && !saved[o.Name] {
				vs[o] = true
			}
		}
	}
	return vs
}

// atoms returns the sub-axes of axes, the major one first.
func atoms(m ir.Mesh, axes []ir.Axis) []ir.Axis {
	var out []ir.Axis
	for _, a := range axes {
		if a.IsZigzag() { // it is an atom: see [ir.Plan.Layouts]
			out = append(out, a)
			continue
		}
		parts := slices.Clone(m.Expand([]ir.Axis{a}))
		slices.Reverse(parts)
		out = append(out, parts...)
	}
	return out
}

// majorFirst returns atoms in the order of the mesh, the major one first, each once, without labels.
func majorFirst(m ir.Mesh, axes []ir.Axis) []ir.Axis {
	axes = ir.Plain(axes)
	var out []ir.Axis
	for i := len(m.Atoms) - 1; i >= 0; i-- {
		if slices.Contains(axes, m.Atoms[i].Name) {
			out = append(out, m.Atoms[i].Name)
		}
	}
	return out
}

// partitioner rewrites one function.
type partitioner struct {
	prog *ir.Program
	*reader
	f     *ir.Func
	made  map[string]*ir.Value    // results of the forward function for each of its values, by original name
	now   map[*ir.Value]*ir.Value // a value's newest version: with its partial resolved, once that is done
	moved map[string]*ir.Value    // versions by name and type, so that all users share a reshard
	delay map[*ir.Value]bool      // partial values that their one user takes unresolved
	nodes []*ir.Node
	round bool // the op to which operands are resharded is one of the rounds
}

func (pt *partitioner) run() error {
	for _, v := range pt.f.Inputs {
		if err := pt.input(v); err != nil {
			return err
		}
	}
	for _, n := range pt.f.Nodes {
		if err := pt.node(n); err != nil {
			return fmt.Errorf("%v: %w", n, err)
		}
	}
	pt.round = false
	for i, o := range pt.f.Outputs {
		pt.f.Outputs[i] = pt.reshard(pt.now[o], o.Type.WithLayout(pt.prog.Layouts[ir.Norm]), ir.Norm, o.Name)
	}
	for v, now := range pt.now {
		if pt.made[v.Name] == nil {
			pt.made[v.Name] = now
		}
	}
	pt.f.Nodes = pt.nodes
	return nil
}

// input lays out an input. A saved value has the layout in which it was computed, a parameter that of its first user's
// region. Inputs that the data loader fills have the layout of region vocab, in which rows are whole. All others have
// that of the residual stream.
func (pt *partitioner) input(v *ir.Value) error {
	layout := pt.prog.Layouts[ir.Norm]
	switch {
	case v.Kind == ir.Input && slices.Contains(ir.BatchNames, v.Name):
		layout = pt.prog.Layouts[ir.VocabR]
	case v.Kind == ir.Weight || v.Type.Elem == ir.I32 || !v.Type.Has(ir.Hidden):
		layout = pt.prog.Layouts[pt.firstRegion(v)]
	}
	if made := pt.made[v.Name]; made != nil {
		v.Name, v.Type = made.Name, made.Type.Clone()
	} else {
		v.Type = v.Type.WithLayout(layout)
	}
	pt.now[v] = v
	if v.Type.Monoid != ir.NoMonoid {
		return fmt.Errorf("%s is saved while it is partial", v.Name)
	}
	return pt.divides(v.Type)
}

func (pt *partitioner) firstRegion(v *ir.Value) ir.Region {
	for _, n := range pt.f.Nodes {
		if slices.Contains(n.Args, v) {
			return n.Region
		}
	}
	return ir.Norm
}

// divides fails if an axis does not divide its dim.
func (pt *partitioner) divides(t ir.Type) error {
	for _, e := range t.Dims {
		if n := pt.prog.Mesh.Ranks(e.Axes); e.Size%n != 0 && !e.Dim.Padded() {
			return fmt.Errorf("%s=%d is not divisible by %d ranks (%v)", e.Dim, e.Size, n, e.Axes)
		}
		if len(e.Axes) > 0 && e.Axes[0].IsZigzag() && e.Size%(2*pt.prog.Mesh.Ranks(e.Axes[:1])) != 0 {
			return fmt.Errorf("%s=%d is not divisible into two chunks for each of %d ranks (%v)", e.Dim, e.Size,
				pt.prog.Mesh.Ranks(e.Axes[:1]), e.Axes)
		}
	}
	return nil
}

// node reshards the operands to the region's layout and sets the types of the results.
func (pt *partitioner) node(n *ir.Node) error {
	r := pt.read(n)
	if r.err != nil {
		return r.err
	}
	layout := r.layout
	pt.round = n.Attr.Round
	var passed []ir.Axis
	for i, a := range n.Args {
		cur := pt.now[a]
		if pt.delay[a] {
			if n.Op != ir.OpAccumulate {
				cur = pt.reshard(cur, stillPartial(cur.Type, a.Type.WithLayout(layout)), n.Region, n.From)
			}
			passed = cur.Type.Axes
		} else if n.Op != ir.OpAccumulate || cur.Type.Monoid == ir.NoMonoid {
			cur = pt.reshard(cur, a.Type.WithLayout(layout), n.Region, n.From)
			if pt.now[a].Type.Monoid != ir.NoMonoid {
				pt.now[a] = cur // resolved once, for all users
			}
		}
		n.Args[i] = cur
	}
	monoid := ir.Sum
	for i, o := range n.Outs {
		logical := o.Type
		o.Type = logical.WithLayout(layout)
		axes, own := slices.Clone(r.lacks[i]), ir.NoMonoid
		if len(axes) > 0 {
			own, monoid = n.Op.Monoid(i), n.Op.Monoid(i)
		}
		axes = append(axes, passed...)
		if len(axes) > 0 {
			o.Type.Monoid, o.Type.Axes = monoid, majorFirst(pt.prog.Mesh, axes)
		}
		if own != ir.NoMonoid && own != ir.Sum && len(passed) > 0 {
			return fmt.Errorf("a %v-partial would pass over a sum-partial", own)
		}
		pt.now[o] = o
		if err := pt.divides(o.Type); err != nil {
			return err
		}
	}
	if goesRound(n, layout) {
		pt.ring(n)
	} else {
		pt.nodes = append(pt.nodes, n)
	}
	return nil
}

// stillPartial returns want as the type of a partial value that is passed: partial over the axes that do not split it
// there.
func stillPartial(have, want ir.Type) ir.Type {
	want.Monoid = have.Monoid
	for _, a := range have.Axes {
		split := slices.ContainsFunc(want.Dims, func(e ir.Extent) bool { return slices.Contains(ir.Plain(e.Axes), a) })
		if !split {
			want.Axes = append(want.Axes, a)
		}
	}
	return want
}

// goesRound reports whether a ring moves keys and values to the node's queries: whether its layout splits keys.
func goesRound(n *ir.Node, layout ir.Layout) bool { return n.Op.Attends() && len(layout[ir.KSeq]) > 0 }

// read is what the rule says about a node on the mesh: the layout in which it works, and the axes over which each of
// its results is partial.
type read struct {
	layout ir.Layout
	lacks  [][]ir.Axis
	err    error
}

// reader reads each node once. Only the dims of its types matter, which do not change.
type reader struct {
	prog  *ir.Program
	known map[*ir.Node]*read
}

func (r *reader) read(n *ir.Node) *read {
	if result := r.known[n]; result != nil {
		return result
	}
	result := &read{}
	r.known[n] = result
	uses, err := n.Uses()
	if err != nil {
		result.err = err
		return result
	}
	result.layout = nodeLayout(r.prog, n, uses)
	for i := range n.Outs {
		result.lacks = append(result.lacks, lacking(r.prog.Mesh, n, uses, i, result.layout))
	}
	return result
}

// nodeLayout returns the region's layout restricted to the dims that the node's rule allows to be split. A merged dim
// has the axes of the dims that it merges, without labels, because its order is data.
func nodeLayout(p *ir.Program, n *ir.Node, uses []ir.Use) ir.Layout {
	region := p.Layouts[n.Region]
	if core, ok := p.Layouts[ir.Core]; ok && n.Op.Attends() {
		region = core
	}
	layout := ir.Layout{}
	for _, u := range uses {
		if !u.Whole {
			layout[u.Dim] = region[u.Dim]
		}
		if u.To != "" { // one dim with two names: the region may have either
			if len(layout[u.Dim]) == 0 {
				layout[u.Dim] = region[u.To]
			}
			layout[u.To] = layout[u.Dim]
		}
	}
	for _, u := range uses {
		if u.Merged == nil {
			continue
		}
		layout[u.Dim] = nil
		for _, d := range u.Merged {
			layout[u.Dim] = append(layout[u.Dim], ir.Plain(layout[d])...)
		}
		layout[u.Dim] = lastExperts(p, majorFirst(p.Mesh, layout[u.Dim]))
	}
	return layout
}

// lastExperts moves the axes that split experts to the end. The order of slots does not matter, and in this order one
// all-to-all moves them to their experts.
func lastExperts(p *ir.Program, axes []ir.Axis) []ir.Axis {
	var first, last []ir.Axis
	experts := p.Layouts[ir.Experts][ir.Expert]
	for _, a := range axes {
		if !slices.Contains(experts, a) {
			first = append(first, a)
		}
	}
	for _, a := range experts {
		if slices.Contains(axes, a) {
			last = append(last, a)
		}
	}
	return append(first, last...)
}

// lacking returns the axes over which result i is partial because of the node's own reduction. A ring leaves none.
func lacking(m ir.Mesh, n *ir.Node, uses []ir.Use, i int, layout ir.Layout) []ir.Axis {
	var axes []ir.Axis
	for _, u := range uses {
		if goesRound(n, layout) && slices.Equal(layout[u.Dim], layout[ir.KSeq]) {
			continue
		}
		merged := slices.ContainsFunc(uses, func(o ir.Use) bool { return slices.Contains(o.Merged, u.Dim) })
		if u.Lacks(i) && u.Merged == nil && !merged {
			axes = append(axes, layout[u.Dim]...)
		}
	}
	return majorFirst(m, axes)
}
