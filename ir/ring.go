package ir

import "slices"

// Ring attention (Liu, Zaharia, Abbeel 2023): each rank keeps its queries, and keys and values go round the ranks of
// cp. At turn t a rank has those of the rank t before it, attends to them and joins the result to that of the turns
// before by their log-sum-exps. In backward the gradients of keys and values go round with them. A node of attention
// works for one turn; its operands' types say for which, and its attribute axes that what its rule sums over them is
// joined so.

// GoesRound tells whether the node is one turn of a ring over the axes, so that its results are no partials over them.
func (n *Node) GoesRound(axes []Axis) bool {
	return n.Op.Attends() && len(n.Attr.Axes) > 0 && slices.Equal(Plain(axes), Plain(n.Attr.Axes))
}

// Keys is the operand of attention or its gradient that has the keys.
func (n *Node) Keys() *Value {
	if n.Op == OpAttention {
		return n.Args[1]
	}
	return n.Args[2]
}

// Joins are the results so far that the node joins in: its first results are these with its own part.
func (n *Node) Joins() []*Value {
	if !n.Op.Attends() {
		return nil
	}
	return n.Args[n.Op.own():]
}

// turn says of a node in a ring which turn it is, of how many ranks and positions.
func (n *Node) turn(local Sizes) (turn, ranks, size int, ok bool) {
	if !n.Op.Attends() || len(n.Attr.Axes) == 0 {
		return 0, 0, 0, false
	}
	e, _ := n.Keys().Type.Extent(KSeq)
	return e.Axes[0].Turn(), int(float64(e.Size) / local.Of(KSeq)), e.Size, true
}

// ringPairs is how many pairs of a query and a key that it sees a rank has, at most, in the node's turn of its ring; -1
// where it is in none.
func (n *Node) ringPairs(local Sizes) float64 {
	turn, ranks, size, ok := n.turn(local)
	if !ok {
		return -1
	}
	return turnPairs(&n.Attr, size, ranks, turn)
}

// Turns are the turns of a ring over so many ranks in which some rank sees keys: with a window most see none.
func Turns(a *Attr, size, ranks int) []int {
	var out []int
	for t := range ranks {
		if turnPairs(a, size, ranks, t) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// turnPairs is how many pairs of a query and a key that it sees the rank has that has most, at a turn; where only some
// layers have a window, in the mean over these.
func turnPairs(a *Attr, size, ranks, turn int) float64 {
	most := 0.0
	for i := range ranks {
		full := float64(zigzagPairs(size, ranks, i, turn, 0, a.Causal))
		if a.Window > 0 {
			part := a.Layers.LocalPart()
			full = part*float64(zigzagPairs(size, ranks, i, turn, a.Window, a.Causal)) + (1-part)*full
		}
		most = max(most, full)
	}
	return most
}

// zigzagPairs counts the pairs of rank i, whose queries are those of chunks i and 2n-1-i, with the keys of the rank so
// many turns before it.
func zigzagPairs(size, n, i, turn, window int, causal bool) int {
	chunk, j, sum := size/(2*n), (i-turn+n)%n, 0
	for _, q := range []int{i, 2*n - 1 - i} {
		for _, k := range []int{j, 2*n - 1 - j} {
			if !causal {
				sum += chunk * chunk
				continue
			}
			from := (q - k) * chunk // a pair is from+r positions apart, r between -chunk and chunk
			hi := chunk - 1
			if window > 0 {
				hi = min(hi, window-1-from)
			}
			sum += max(0, upTo(hi, chunk)-upTo(-from-1, chunk))
		}
	}
	return sum
}

// upTo counts the pairs of two chunks whose places differ by at most r.
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

// own is how many operands attention or its gradient has where nothing is joined in.
func (o Op) own() int {
	if o == OpAttention {
		return 3
	}
	return 6
}
