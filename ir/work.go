package ir

import "slices"

// Sizes are dims with one rank's sizes.
type Sizes []Sized

// Sized is a dim with its size.
type Sized struct {
	Dim  Dim
	Size float64
}

// ModelChunk returns a dim's size, 0 if it is absent.
func (s Sizes) Get(d Dim) float64 {
	for i := range s {
		if s[i].Dim == d {
			return s[i].Size
		}
	}
	return 0
}

// Locals returns the dims of a node with one rank's sizes, the largest if operands differ, in order of first
// occurrence.
func (n *Node) Locals(m Mesh) Sizes { return n.locals(m, make(Sizes, 0, usualDims)) }

// locals is Locals, appending to local, whose capacity it reuses.
func (n *Node) locals(m Mesh, local Sizes) Sizes {
	add := func(t *Type) {
		for i := range t.Dims {
			d := &t.Dims[i]
			size := float64(m.Width(d))
			if at := slices.IndexFunc(local, func(s Sized) bool { return s.Dim == d.Dim }); at >= 0 {
				local[at].Size = max(local[at].Size, size)
			} else {
				local = append(local, Sized{d.Dim, size})
			}
		}
	}
	for _, a := range n.Args {
		add(&a.Type)
	}
	for _, o := range n.Outs {
		add(&o.Type)
	}
	return local
}

// Flops returns the arithmetic of one rank: the row's flops per point of the iteration space.
func (n *Node) Flops(m Mesh) float64 {
	row := n.Op.Info()
	if row.comm {
		return 0
	}
	if n.Op == OpFused {
		sum := 0.0
		for _, b := range n.Body {
			sum += b.Flops(m)
		}
		return sum
	}
	if row.work != nil {
		return row.work(n, n.Locals(m)) // the compiler cannot know that it does not retain the list
	}
	var here [usualDims]Sized
	local := n.locals(m, here[:0])
	f := row.flops
	var room [usualDims]Use
	for _, u := range n.occurrences(room[:0]) {
		f *= local.Get(u.Dim)
	}
	return f
}

// Bytes returns the memory traffic of one rank: operands read and results written once.
func (n *Node) Bytes(m Mesh) float64 {
	row := n.Op.Info()
	if n.Op.NoWork() || row.comm {
		return 0
	}
	if n.Op == OpRope && n.Args[0].Place.Region != "" && n.Args[0].Place == n.Outs[0].Place { // the last side stays
		side, row := n.Args[0].Type.SideSizes(m)
		return 2 * float64(n.Args[0].Type.LocalBytes(m)) * float64(row-side) / float64(row)
	}
	b := 0
	for i, a := range n.Args {
		if !row.gathers || i > 0 {
			b += a.Type.LocalBytes(m)
		}
	}
	for i, o := range n.Outs {
		switch {
		case row.gathers:
			b += 2 * o.Type.LocalBytes(m)
		case row.scatters && i == 0:
			b += 2 * n.Args[0].Type.LocalBytes(m)
		default:
			b += o.Type.LocalBytes(m)
		}
	}
	if n.Op == OpAccumulate {
		b += 2 * n.Args[0].Type.LocalBytes(m)
	}
	return float64(b)
}

// operandFlops counts one flop per element of the first operand: an index selects one element of the dim that it points
// into.
func operandFlops(n *Node, local Sizes) float64 {
	f := 1.0
	for _, e := range n.Args[0].Type.Dims {
		f *= local.Get(e.Dim)
	}
	return f
}

// attentionFlops counts two contractions over the pairs of positions that the mask leaves, times factor. The backward
// pass has five.
func attentionFlops(factor float64) func(*Node, Sizes) float64 {
	return func(n *Node, local Sizes) float64 {
		pairs := n.ringPairs(local)
		if pairs < 0 {
			pairs = local.Get(Seq) * meanKeys(&n.Attr, local.Get(KSeq))
		}
		heads := 1.0
		for _, l := range local {
			switch l.Dim {
			case Seq, KSeq, HeadDim, VDim, Side:
			default:
				heads *= l.Size
			}
		}
		return factor * 2 * heads * pairs * (local.Get(HeadDim) + local.Get(VDim))
	}
}

// meanKeys returns the mean number of t keys that a query sees, over all queries and, if only some layers have a
// window, over one period of the layers.
func meanKeys(a *Attr, t float64) float64 {
	full, w := t, float64(a.Window)
	if a.Causal {
		full = (t + 1) / 2
	}
	if w == 0 || w >= t {
		return full
	}
	local := w * (t - (w-1)/2) / t // the first w-1 queries see fewer
	part := a.Layers.LocalPart()
	return part*local + (1-part)*full
}
