package ir

import (
	"errors"
	"fmt"
	"slices"
)

// invariants are the properties that a program must have after the pass since ("" means always). Each pass adds
// properties, so Check requires more after it. A check may rely on the ones above it.
var invariants = []struct {
	since string
	name  string
	holds func(*checker, *Func) error
}{
	{"", "values are defined once, before they are used", definedOnce},
	{"", "operands and results match the op's rule", rulesFit},
	{"", "the logical sizes of a dim agree", sizesAgree},
	{"", "attributes have valid values", attrsMean},
	{"", "indices are integers, and statistics are wide", elemsFit},
	{"", "only attention and element-wise ops read a side of a value", sidesRead},
	{"grad", "every parameter has one gradient", gradients},
	{"precision", "element types are the plan's", elemsPlanned},
	{"partition", "axes belong to the mesh", axesKnown},
	{"partition", "operands, results and partials agree on the axes", shardingAgrees},
	{"partition", "axes divide dims", axesDivide},
	{"partition", "a ring visits every key once", ringsMeet},
	{"memory", "every value has a location inside its region", placed},
}

// checker holds the program and the segment under check. A segment without functions represents the start and end of
// the step.
type checker struct {
	prog *Program
	seg  *Segment
}

// Check verifies the invariants that hold after the named passes have run. It reports the first violation in each
// function.
func (p *Program) Check(done []string) error {
	var errs []error
	check := func(c *checker, f *Func) {
		for _, inv := range invariants {
			if inv.since != "" && !slices.Contains(done, inv.since) {
				continue
			}
			if err := inv.holds(c, f); err != nil {
				errs = append(errs, fmt.Errorf("func %s: %s: %w", f.Name, inv.name, err))
				return
			}
		}
	}
	for _, s := range p.Model.Variants() {
		for _, f := range s.Funcs() {
			check(&checker{p, s}, f)
		}
	}
	ends := []*Func{p.Begin}
	for i := range p.Stages {
		ends = append(ends, p.Stages[i].Funcs()...)
	}
	for _, f := range ends {
		if f != nil {
			check(&checker{p, &Segment{Name: f.Name}}, f)
		}
	}
	if slices.Contains(done, "schedule") {
		if err := p.checkSchedules(); err != nil {
			errs = append(errs, fmt.Errorf("schedule: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Check verifies the invariants of a logical model.
func (m *Model) Check() error {
	p := Program{Name: m.Name, Model: m}
	return p.Check(nil)
}

func definedOnce(_ *checker, f *Func) error {
	defined := map[*Value]bool{}
	names := map[string]bool{}
	define := func(v *Value) error {
		if defined[v] || names[v.Name] {
			return fmt.Errorf("%s is defined twice", v.Name)
		}
		defined[v], names[v.Name] = true, true
		return nil
	}
	for _, v := range f.Inputs {
		if err := define(v); err != nil {
			return err
		}
	}
	for _, n := range f.Nodes {
		if err := defineNode(n, defined, define); err != nil {
			return err
		}
	}
	for _, o := range f.Outputs {
		if !defined[o] {
			return fmt.Errorf("returned value %s is not defined", o.Name)
		}
	}
	return nil
}

func defineNode(n *Node, defined map[*Value]bool, define func(*Value) error) error {
	for _, a := range n.Args {
		if !defined[a] {
			return fmt.Errorf("%s uses %s before it is defined", n.Op, a.Name)
		}
	}
	for _, b := range n.Body {
		if err := defineNode(b, defined, define); err != nil {
			return err
		}
	}
	for _, o := range n.Outs {
		if n.Op == OpFused {
			if !defined[o] {
				return fmt.Errorf("no op of the body defines %s", o.Name)
			}
			continue
		}
		if err := define(o); err != nil {
			return err
		}
	}
	return nil
}

// each visits the nodes of a function. It visits the nodes of a fused node's body instead of the fused node.
func (f *Func) each(visit func(*Node) error) error {
	for _, n := range f.Nodes {
		nodes := []*Node{n}
		if n.Op == OpFused {
			nodes = n.Body
		}
		for _, b := range nodes {
			if err := visit(b); err != nil {
				return fmt.Errorf("%v: %w", b, err)
			}
		}
	}
	return nil
}

func rulesFit(_ *checker, f *Func) error {
	return f.each(func(n *Node) error {
		_, err := n.Uses()
		return err
	})
}

func sizesAgree(_ *checker, f *Func) error {
	return f.each(func(n *Node) error {
		size := map[Dim]int{}
		for _, v := range slices.Concat(n.Args, n.Outs) {
			for _, e := range v.Type.Dims {
				if old, ok := size[e.Dim]; ok && old != e.Size {
					return fmt.Errorf("dim %s is %d and %d", e.Dim, old, e.Size)
				}
				size[e.Dim] = e.Size
			}
		}
		if n.Attr.To != "" && n.Op.Info().renames() && size[n.Attr.Dim] != size[n.Attr.To] {
			return fmt.Errorf("dim %s is %d, but it is renamed to one of %d", n.Attr.Dim, size[n.Attr.Dim],
				size[n.Attr.To])
		}
		return nil
	})
}

// gradients checks that the backward function accumulates each used parameter exactly once.
func gradients(c *checker, f *Func) error {
	if f != c.seg.Forward {
		return nil
	}
	if c.seg.Backward == nil {
		return fmt.Errorf("no backward function")
	}
	into := map[string]int{}
	for _, n := range c.seg.Accumulates() {
		into[n.Attr.Into]++
	}
	for _, w := range f.Weights() {
		if into[w.Name] != 1 {
			return fmt.Errorf("%s has %d gradients, not one", w.Name, into[w.Name])
		}
	}
	return nil
}

// values returns the values that the function defines.
func (f *Func) values() []*Value {
	vs := slices.Clone(f.Inputs)
	for _, n := range f.Nodes {
		vs = append(vs, n.Outs...)
		for _, b := range n.Body {
			vs = append(vs, b.Outs...)
		}
	}
	return vs
}

func axesKnown(c *checker, f *Func) error {
	for _, v := range f.values() {
		axes := slices.Clone(v.Type.Axes)
		for _, e := range v.Type.Dims {
			axes = append(axes, e.Axes...)
		}
		for _, a := range axes {
			if !c.prog.Mesh.Has(a) {
				return fmt.Errorf("%s: the mesh %v has no axis %s", v.Name, c.prog.Mesh, a)
			}
		}
	}
	return nil
}

func axesDivide(c *checker, f *Func) error {
	for _, v := range f.values() {
		var seen []Axis
		for _, e := range v.Type.Dims {
			if n := c.prog.Mesh.Ranks(e.Axes); e.Size%n != 0 && !e.Dim.Padded() {
				return fmt.Errorf("%s: %s=%d is not divisible by %d", v.Name, e.Dim, e.Size, n)
			}
			seen = append(seen, c.prog.Mesh.Expand(e.Axes)...)
		}
		seen = append(seen, c.prog.Mesh.Expand(v.Type.Axes)...)
		slices.Sort(seen)
		if len(slices.Compact(seen)) < len(seen) {
			return fmt.Errorf("%s: %v uses an axis twice", v.Name, v.Type)
		}
	}
	return nil
}

func placed(c *checker, f *Func) error {
	// the step's start and end work on whole regions; a segment that no stage runs has no layout
	if c.seg.Forward == nil || !c.prog.Uses(c.seg) {
		return nil
	}
	for _, n := range f.Nodes {
		for _, o := range n.Outs {
			size := c.prog.PlaceSize(c.seg.Name, o.Place.Region)
			if end := o.Place.Offset + o.Type.LocalBytes(c.prog.Mesh); end > size {
				return fmt.Errorf("%s ends at byte %d of %q, which has %d bytes", o.Name, end, o.Place.Region, size)
			}
		}
	}
	return nil
}
