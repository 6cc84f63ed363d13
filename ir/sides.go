package ir

import (
	"fmt"
	"slices"
)

// Parameters that multiply the same value can lie side by side: they are one parameter with a dim side, so that one
// GEMM computes all results, one the gradient of the value, and one the gradients of the parameters. The results are
// views of one value. Rows of a view are not adjacent in memory, so only attention and element-wise ops read them.
// Element-wise ops also write the gradients of two results side by side: [OpSides] says so.
//
// Queries that share keys and values are wider than these by the size of their dim group: they take that many sides,
// the first ones. In these sides their elements have the order of [head, group, head_dim].

// sideOf returns the node of which v is the result, seen through views, if it selects a side; nil if it does not.
func sideOf(v *Value) *Node {
	for v.Def != nil && v.Def.Op.View() {
		if v.Def.Op == OpSide {
			return v.Def
		}
		v = v.Def.Args[0]
	}
	return nil
}

// GroupSize returns the number of queries that share keys and values, 1 if a type has no group.
func GroupSize(t Type) int {
	if e, ok := t.Extent(Group); ok {
		return e.Size
	}
	return 1
}

// SideParam is one of the model's parameters that lie side by side: its first side, and its type.
type SideParam struct {
	Name  string
	First int
	Type  Type
}

// SideParams returns the model's parameters of which a parameter consists.
func SideParams(w *Value) (out []SideParam) {
	at := slices.IndexFunc(w.Type.Dims, func(e Extent) bool { return e.Dim == Side })
	first := 0
	for i, name := range w.Param.Sides {
		t, n := w.Type.Clone(), 1
		t.Dims = slices.Delete(t.Dims, at, at+1)
		if i == 0 {
			n = w.Type.Dims[at].Size - len(w.Param.Sides) + 1
		}
		if n > 1 {
			t.Dims = slices.Insert(t.Dims, at+1, Extent{Dim: Group, Size: n})
		}
		out = append(out, SideParam{name, first, t})
		first += n
	}
	return out
}

// SideSizes returns one rank's elements of a side in a row of a value with sides, and of the row.
func (t Type) SideSizes(m Mesh) (side, row int) {
	side = 1
	for i := len(t.Dims) - 1; t.Dims[i].Dim != Side; i-- {
		side *= m.Width(&t.Dims[i])
	}
	e, _ := t.Extent(Side)
	return side, side * e.Size
}

// queriesKeysValues returns the queries, keys and values that attention or its gradient reads.
func queriesKeysValues(n *Node) []*Value {
	if n.Op == OpAttention {
		return n.Args[:3]
	}
	return n.Args[1:4]
}

// WholeOf returns the value of which the queries, keys and values of attention or of its gradient are the sides; nil if
// each is a value of its own.
func WholeOf(n *Node) *Value {
	if !n.Op.Attends() {
		return nil
	}
	if s := sideOf(queriesKeysValues(n)[0]); s != nil {
		return s.Args[0]
	}
	return nil
}

// wrongSide checks that the sides that are selected exist.
func wrongSide(n *Node) string {
	e, ok := n.Args[0].Type.Extent(Side)
	last := n.Attr.Offset + GroupSize(n.Outs[0].Type) - 1
	if !ok || n.Attr.Offset < 0 || last >= e.Size {
		return fmt.Sprintf("%s has no side %d", n.Args[0].Name, max(last, n.Attr.Offset))
	}
	return ""
}

// wrongSides checks that queries, keys and values are the sides of one value, in this order, or none is a side. The
// gradient of that value has its dims.
func wrongSides(n *Node) string {
	whole, first := WholeOf(n), 0
	for _, v := range queriesKeysValues(n) {
		s := sideOf(v)
		if (s == nil) != (whole == nil) || s != nil && (s.Args[0] != whole || s.Attr.Offset != first) {
			return fmt.Sprintf("%s must be side %d of the value of which the queries are a side", v.Name, first)
		}
		first += GroupSize(v.Type)
	}
	if whole != nil {
		if e, _ := whole.Type.Extent(Side); e.Size != first {
			return fmt.Sprintf("%s has %d sides, and its queries, keys and values take %d", whole.Name, e.Size, first)
		}
	}
	if n.Op == OpAttentionGradSides && (whole == nil || !sameDims(n.Outs[0].Type, whole.Type)) {
		return "its queries, keys and values must be the sides of a value with the dims of the result"
	}
	return ""
}

// SideWriters returns, for each value that is an operand of [OpSides], the node of that op.
func (f *Func) SideWriters() map[*Value]*Node {
	var out map[*Value]*Node
	for _, n := range f.Nodes {
		if n.Op == OpSides {
			for _, a := range n.Args {
				if out == nil {
					out = map[*Value]*Node{}
				}
				out[a] = n
			}
		}
	}
	return out
}

// WholeOfSide returns the value of which v is a side, because it is a view of it or is written there; nil if there is
// none. writers are the function's.
func WholeOfSide(v *Value, writers map[*Value]*Node) *Value {
	if n := writers[v]; n != nil {
		return n.Outs[0]
	}
	if n := sideOf(v); n != nil {
		return n.Args[0]
	}
	return nil
}

// sidesRead checks that only attention and element-wise ops read sides, because only their kernels know how far apart
// rows are; and that only element-wise ops write sides, which nothing else reads.
func sidesRead(_ *checker, f *Func) error {
	side := func(v *Value) bool { return sideOf(v) != nil }
	if i := slices.IndexFunc(f.Outputs, side); i >= 0 {
		return fmt.Errorf("%s is a side of a value, but it is returned", f.Outputs[i].Name)
	}
	users := f.Users()
	return f.each(func(n *Node) error {
		for _, a := range n.Args {
			if side(a) && !n.Op.View() && !n.Op.Attends() && !readsElements(n, a) {
				return fmt.Errorf("%s is a side of a value, which only attention and element-wise ops can read", a.Name)
			}
			if n.Op == OpSides && (a.Def == nil || !a.Def.Op.Element() || users[a] > 1) {
				return fmt.Errorf("%s must be computed by an element-wise op, and nothing else may read it", a.Name)
			}
		}
		return nil
	})
}

// readsElements reports whether a node reads a value only element by element.
func readsElements(n *Node, v *Value) bool {
	for _, m := range n.Body {
		if slices.Contains(m.Args, v) && !m.Op.Element() {
			return false
		}
	}
	return n.Op.Element()
}

// LibraryAttention is attention that a library for GPUs may compute. Sizes are per rank.
type LibraryAttention struct{ Batch, Seq, KSeq, Heads, Group, Dim int }

// LibraryAttentionOf returns what a node of attention, or of its gradient, computes, if a library may compute it: in 16
// bits, over all keys at once in order, and with no change of the scores except the mask.
func LibraryAttentionOf(n *Node, m Mesh) (a LibraryAttention, ok bool) {
	if !n.Op.Attends() || n.Attr.Drop > 0 || n.Attr.Softcap > 0 || n.Attr.Alibi || n.Attr.Documents ||
		len(n.Joins()) > 0 {
		return a, false
	}
	operands := queriesKeysValues(n)
	q, k, v := operands[0].Type, operands[1].Type, operands[2].Type
	seq, _ := q.Extent(Seq)
	keys, _ := k.Extent(KSeq)
	width := func(t Type, d Dim) int {
		e, found := t.Extent(d)
		if !found {
			return 1
		}
		return m.Width(&e)
	}
	a = LibraryAttention{width(q, Batch), width(q, Seq), width(k, KSeq), width(q, Head), width(q, Group),
		width(q, HeadDim)}
	return a, q.Elem.Narrow() && len(seq.Axes)+len(keys.Axes) == 0 && a.Dim == width(v, VDim)
}
