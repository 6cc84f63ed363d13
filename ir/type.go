package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Elem is the element type of a tensor.
type Elem uint8

const (
	F32 Elem = iota
	F64
	I32
	BF16
	F16
)

var elems = [...]struct {
	name string
	size int
}{F32: {"f32", 4}, F64: {"f64", 8}, I32: {"i32", 4}, BF16: {"bf16", 2}, F16: {"f16", 2}}

func (e Elem) String() string { return elems[e].name }

// Size returns the number of bytes of one element.
func (e Elem) Size() int { return elems[e].size }

// Statistic returns the type of losses, log-sum-exps and similar values in a program that computes in e: at least f32.
func (e Elem) Statistic() Elem {
	if e.Narrow() {
		return F32
	}
	return e
}

// Narrow reports whether the type has 16 bits.
func (e Elem) Narrow() bool { return e == BF16 || e == F16 }

// ParseElem returns the element type of that name.
func ParseElem(s string) (Elem, bool) {
	for e := range elems {
		if elems[e].name == s {
			return Elem(e), true
		}
	}
	return 0, false
}

// Extent is a dim of a tensor: its logical size and the axes that split it, the major one first.
type Extent struct {
	Dim  Dim
	Size int
	Axes []Axis // only the first may be labelled zigzag
}

// Type is an element type, the extents in memory order (row-major), and the partial state: if Monoid is set, each rank
// of Axes has a part, and Monoid combines the parts.
//
// It prints as f32[batch=8@dp,seq=64,hidden=32] sum@tp.
type Type struct {
	Elem   Elem
	Dims   []Extent
	Monoid Monoid
	Axes   []Axis // axes over which the value is partial
}

func (t Type) String() string {
	var b strings.Builder
	b.WriteString(t.Elem.String() + "[")
	for i, d := range t.Dims {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s=%d", d.Dim, d.Size)
		for _, a := range d.Axes {
			b.WriteString("@" + string(a))
		}
	}
	b.WriteByte(']')
	if t.Monoid != NoMonoid {
		b.WriteString(" " + t.Monoid.String() + "@" + joinAxes(t.Axes, "@"))
	}
	return b.String()
}

// ParseType reads the text that Type.String prints.
func ParseType(s string) (Type, error) {
	var t Type
	elem, rest, ok := strings.Cut(s, "[")
	if !ok {
		return t, fmt.Errorf("type %q must be elem[dim=size,...]", s)
	}
	t.Elem, ok = ParseElem(elem)
	if !ok {
		return t, fmt.Errorf("type %q: unknown element type %q", s, elem)
	}
	dims, partial, ok := strings.Cut(rest, "]")
	if !ok {
		return t, fmt.Errorf("type %q: no closing bracket", s)
	}
	if dims != "" {
		for _, d := range strings.Split(dims, ",") {
			e, err := parseExtent(d)
			if err != nil {
				return t, fmt.Errorf("type %q: %w", s, err)
			}
			if _, twice := t.Extent(e.Dim); twice {
				return t, fmt.Errorf("type %q: dim %s occurs twice", s, e.Dim)
			}
			t.Dims = append(t.Dims, e)
		}
	}
	return t, t.parsePartial(partial)
}

func (t *Type) parsePartial(s string) error {
	if s == "" {
		return nil
	}
	monoid, axes, ok := strings.Cut(strings.TrimPrefix(s, " "), "@")
	m, known := parseMonoid(monoid)
	if !ok || !known || s[0] != ' ' {
		return fmt.Errorf("partial %q must be monoid@axis", s)
	}
	t.Monoid, t.Axes = m, splitAxes(axes, "@")
	if t.Axes[0].IsZigzag() {
		return fmt.Errorf("partial %q: a sum has no order, so its axes must be plain", s)
	}
	return checkAxes(t.Axes)
}

func parseExtent(s string) (Extent, error) {
	var e Extent
	name, rest, ok := strings.Cut(s, "=")
	if !ok {
		return e, fmt.Errorf("dim %q must be name=size", s)
	}
	size, axes, split := strings.Cut(rest, "@")
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || size[0] == '0' || size[0] == '+' {
		return e, fmt.Errorf("dim %q: size %q must be a positive number", s, size)
	}
	e = Extent{Dim: Dim(name), Size: n}
	if split {
		e.Axes = splitAxes(axes, "@")
	}
	if err := checkName(name); err != nil {
		return e, err
	}
	return e, checkAxes(e.Axes)
}

func checkAxes(axes []Axis) error {
	plain := Plain(axes)
	for i, a := range plain {
		if err := checkName(string(a)); err != nil {
			return err
		}
		if slices.Contains(plain[:i], a) {
			return fmt.Errorf("axis %s occurs twice", a)
		}
		if i > 0 && axes[i].IsZigzag() {
			return fmt.Errorf("axis %s: only the first axis that splits a dim may be zigzag", axes[i])
		}
		if n := axes[i].Turn(); n < 0 || axes[i] != axes[i].Turned(n) || n > 0 && !axes[i].IsZigzag() {
			return fmt.Errorf("axis %s must be zigzag:%s+N if parts have moved by N ranks", axes[i], a)
		}
	}
	return nil
}

// Extent returns the extent of a dim.
func (t Type) Extent(d Dim) (Extent, bool) {
	for _, e := range t.Dims {
		if e.Dim == d {
			return e, true
		}
	}
	return Extent{}, false
}

// Has reports whether the type has the dim.
func (t Type) Has(d Dim) bool { _, ok := t.Extent(d); return ok }

// Clone copies the type deeply.
func (t Type) Clone() Type {
	t.Dims = slices.Clone(t.Dims)
	for i := range t.Dims {
		t.Dims[i].Axes = slices.Clone(t.Dims[i].Axes)
	}
	t.Axes = slices.Clone(t.Axes)
	return t
}

// Logical returns the type without sharding and partials.
func (t Type) Logical() Type {
	out := Type{Elem: t.Elem, Dims: make([]Extent, len(t.Dims))}
	for i, d := range t.Dims {
		out.Dims[i] = Extent{Dim: d.Dim, Size: d.Size}
	}
	return out
}

// Resolved returns the type without its partial, with the same sharding.
func (t Type) Resolved() Type {
	t.Monoid, t.Axes = NoMonoid, nil
	return t
}

// WithLayout returns the logical type with layout l.
func (t Type) WithLayout(l Layout) Type {
	out := t.Logical()
	for i, d := range out.Dims {
		out.Dims[i].Axes = slices.Clone(l[d.Dim])
	}
	return out
}

// Equal reports whether the types are the same in every respect.
func (t Type) Equal(u Type) bool {
	return t.Elem == u.Elem && t.Monoid == u.Monoid && slices.EqualFunc(t.Dims, u.Dims, func(a, b Extent) bool {
		return a.Dim == b.Dim && a.Size == b.Size && slices.Equal(a.Axes, b.Axes)
	}) && (t.Monoid == NoMonoid || slices.Equal(t.Axes, u.Axes))
}

// Elems returns the number of logical elements.
func (t Type) Elems() int {
	n := 1
	for _, d := range t.Dims {
		n *= d.Size
	}
	return n
}

// Local returns one rank's width of each dim.
func (t Type) Local(m Mesh) []int {
	out := make([]int, len(t.Dims))
	for i := range t.Dims {
		out[i] = m.Width(&t.Dims[i])
	}
	return out
}

// LocalElems returns the number of elements that one rank holds, including padding.
func (t Type) LocalElems(m Mesh) int {
	n := 1
	for i := range t.Dims {
		n *= m.Width(&t.Dims[i])
	}
	return n
}

// LocalBytes returns the number of bytes that one rank holds.
func (t Type) LocalBytes(m Mesh) int { return t.LocalElems(m) * t.Elem.Size() }
