package ir

import (
	"fmt"
	"slices"
)

// accumulates checks that a gradient has the layout of its parameter.
func (c *checker) accumulates(n *Node) error {
	if c.seg.Forward == nil {
		return nil
	}
	w := c.seg.Forward.Value(n.Attr.Into)
	if w == nil || w.Kind != Weight {
		return nil // the loss
	}
	got, want := n.Args[0].Type.Resolved(), w.Type.Clone()
	want.Elem = got.Elem
	if !got.Equal(want) {
		return fmt.Errorf("a gradient with layout %v is added to a parameter with layout %v", got, want)
	}
	return nil
}

// collective checks that the collective is allowed for its operand and has the right result type.
func (c *checker) collective(n *Node) error {
	t, a := n.Args[0].Type, n.Attr
	if len(a.Axes) == 0 {
		return fmt.Errorf("%s has no axes", n.Op)
	}
	if err := allowed[n.Op](t, a); err != nil {
		return fmt.Errorf("%s of %v: %w", n.Op, t, err)
	}
	if e, moved := t.away(); moved && n.Op != OpShift {
		return fmt.Errorf("%s of %v: the parts of %s are not at their home ranks", n.Op, t, e.Dim)
	}
	if got := CollectiveResult(t, n.Op, a); !got.Equal(n.Outs[0].Type) {
		return fmt.Errorf("%s turns %[3]v into %[2]v, not %[4]v", n.Op, got, t, n.Outs[0].Type)
	}
	return nil
}

// allowed maps each collective to a function that returns why it must not be applied to a type. A reduction of a value
// that is not partial would count it once per rank. A gather over an axis that is not the innermost of a dim would
// permute its elements.
var allowed = map[Op]func(t Type, a Attr) error{
	OpAllReduce: combines,
	OpReduceScatter: func(t Type, a Attr) error {
		if !t.Has(a.Dim) {
			return fmt.Errorf("it has no dim %s", a.Dim)
		}
		return combines(t, a)
	},
	OpAllGather: innermost,
	OpAllToAll: func(t Type, a Attr) error {
		if !t.Has(a.To) || a.To == a.Dim {
			return fmt.Errorf("it has no other dim %s", a.To)
		}
		return innermost(t, a)
	},
	OpShift: func(t Type, a Attr) error {
		e, _ := t.Extent(a.Dim)
		switch {
		case len(a.Axes) != 1 || len(e.Axes) == 0 || e.Axes[0].Plain() != a.Axes[0].Plain() || !a.Axes[0].IsZigzag():
			return fmt.Errorf("%s must be the zigzag axis that splits %s first", joinAxes(a.Axes, "@"), a.Dim)
		case e.Axes[0] == a.Axes[0]:
			return fmt.Errorf("its parts are at that position already")
		}
		return nil
	},
	OpSlice: func(t Type, a Attr) error {
		if !t.Has(a.Dim) {
			return fmt.Errorf("it has no dim %s", a.Dim)
		}
		return nil // the result's check covers that the axes split nothing else
	},
}

// combines checks that the operand is partial over the axes with the same monoid.
func combines(t Type, a Attr) error {
	if t.Monoid == NoMonoid || a.Monoid != t.Monoid {
		return fmt.Errorf("it combines by %q, but the operand's parts by %q", a.Monoid, t.Monoid)
	}
	for _, x := range a.Axes {
		if !slices.Contains(t.Axes, x.Plain()) {
			return fmt.Errorf("the operand is not partial over %s", x)
		}
	}
	return nil
}

// innermost checks that the axes are the last of those that split dim.
func innermost(t Type, a Attr) error {
	e, _ := t.Extent(a.Dim)
	if n := len(e.Axes) - len(a.Axes); n < 0 || !slices.Equal(e.Axes[n:], a.Axes) {
		return fmt.Errorf("%v are not the last axes that split %s", a.Axes, a.Dim)
	}
	return nil
}

// CollectiveResult returns the type that a collective makes of t. It removes the axes from the partial or from dim, and
// adds them to dim or to To. A shift changes the label of dim's axis.
func CollectiveResult(t Type, op Op, a Attr) Type {
	t = t.Clone()
	if op == OpAllReduce || op == OpReduceScatter {
		plain := Plain(a.Axes)
		t.Axes = slices.DeleteFunc(t.Axes, func(x Axis) bool { return slices.Contains(plain, x) })
		if len(t.Axes) == 0 {
			t.Monoid, t.Axes = NoMonoid, nil
		}
	}
	for i := range t.Dims {
		d := &t.Dims[i]
		from := d.Dim == a.Dim && (op == OpAllGather || op == OpAllToAll)
		to := d.Dim == a.Dim && (op == OpReduceScatter || op == OpSlice) || d.Dim == a.To && op == OpAllToAll
		if op == OpShift && d.Dim == a.Dim {
			d.Axes[0] = a.Axes[0]
		}
		if from {
			d.Axes = slices.DeleteFunc(d.Axes, func(x Axis) bool { return slices.Contains(a.Axes, x) })
		}
		if to {
			d.Axes = append(d.Axes, a.Axes...)
		}
	}
	return t
}
