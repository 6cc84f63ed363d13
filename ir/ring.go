package ir

import "slices"

// Ring attention (Liu, Zaharia, Abbeel 2023): each rank keeps its queries, and keys and values travel around the ranks
// of cp. In turn t a rank has the keys of the rank t before it. It attends to them and merges the result into that of
// the previous turns by their log-sum-exps. In backward the gradients of keys and values travel with them. A node of
// attention computes one turn. The turn follows from its operands' types. Its attribute axes says that its reductions
// over these axes are merged this way.

// GoesRound reports whether the node is one turn of a ring over the axes, so that its results are not partial over
// them.
func (n *Node) GoesRound(axes []Axis) bool {
	return n.Op.Attends() && len(n.Attr.Axes) > 0 && slices.Equal(Plain(axes), Plain(n.Attr.Axes))
}

// Keys returns the operand of attention or of its gradient that contains the keys.
func (n *Node) Keys() *Value {
	if n.Op == OpAttention {
		return n.Args[1]
	}
	return n.Args[2]
}

// Joins returns the results so far into which the node merges: its first results are these combined with its own part.
func (n *Node) Joins() []*Value {
	if !n.Op.Attends() {
		return nil
	}
	return n.Args[n.Op.own():]
}

// turn returns the turn of a node in a ring, and the number of ranks and positions of the ring.
func (n *Node) turn(local Sizes) (turn, ranks, size int, ok bool) {
	if !n.Op.Attends() || len(n.Attr.Axes) == 0 {
		return 0, 0, 0, false
	}
	e, _ := n.Keys().Type.Extent(KSeq)
	return e.Axes[0].Turn(), int(float64(e.Size) / local.Get(KSeq)), e.Size, true
}

// ringPairs returns the largest number, over the ranks, of pairs of a query and a visible key in the node's turn of its
// ring; -1 if it is not in a ring.
func (n *Node) ringPairs(local Sizes) float64 {
	turn, ranks, size, ok := n.turn(local)
	if !ok {
		return -1
	}
	return turnPairs(&n.Attr, size, ranks, turn)
}

// Turns returns the turns of a ring over a number of ranks in which some rank sees keys. With a window, most turns have
// none.
func Turns(a *Attr, size, ranks int) []int {
	var out []int
	for t := range ranks {
		if turnPairs(a, size, ranks, t) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// turnPairs returns the largest number, over the ranks, of pairs of a query and a visible key in a turn. If only some
// layers have a window, it is the mean over the layers.
func turnPairs(a *Attr, size, ranks, turn int) float64 {
	largest := 0.0
	for i := range ranks {
		full := float64(zigzagPairs(size, ranks, i, turn, 0, a.Causal))
		if a.Window > 0 {
			part := a.Layers.LocalPart()
			full = part*float64(zigzagPairs(size, ranks, i, turn, a.Window, a.Causal)) + (1-part)*full
		}
		largest = max(largest, full)
	}
	return largest
}

// zigzagPairs returns the number of pairs of rank i, whose queries are in chunks i and 2n-1-i, with the keys of the
// rank that is turn ranks before it.
func zigzagPairs(size, n, i, turn, window int, causal bool) int {
	chunk, j, sum := size/(2*n), (i-turn+n)%n, 0
	for _, q := range []int{i, 2*n - 1 - i} {
		for _, k := range []int{j, 2*n - 1 - j} {
			if !causal {
				sum += chunk * chunk
				continue
			}
			from := (q - k) * chunk // a pair is from+r positions apart, with r between -chunk and chunk
			hi := chunk - 1
			if window > 0 {
				hi = min(hi, window-1-from)
			}
			sum += max(0, upTo(hi, chunk)-upTo(-from-1, chunk))
		}
	}
	return sum
}

// upTo returns the number of pairs of two chunks whose positions in the chunk differ by at most r.
func upTo(r, chunk int) int {
	switch {
	case r <= -chunk:
		return 0
	case r < 0:
		return (r + chunk) * (r + chunk + 1) / 2
	}
	r = min(r, chunk-1)
	return chunk*(chunk-1)/2 + (r+1)*chunk - r*(r+1)/2
}

// own returns the number of operands of attention or of its gradient without the merged result.
func (o Op) own() int {
	if o == OpAttention {
		return 3
	}
	return 6
}
