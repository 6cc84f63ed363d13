package tokenizer

// A long text is encoded in parts. They are cut between an ASCII letter or digit and a space or line end after it. That
// changes no token if the tokenizer always has a boundary there, whatever the rest of the text is.
const (
	cutAfter  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	cutBefore = " \n"
)

// isCut reports whether text may be cut before position i, which is neither its beginning nor its end.
func isCut(text []byte, i int) bool {
	after, before := text[i-1], text[i]
	return (before == ' ' || before == '\n') && (after|0x20 >= 'a' && after|0x20 <= 'z' || after >= '0' && after <= '9')
}

// lastCut returns the last position at which text may be cut, or 0.
func lastCut(text []byte) int {
	for i := len(text) - 1; i > 0; i-- {
		if isCut(text, i) {
			return i
		}
	}
	return 0
}

// canCut reports whether no match has a letter or digit that is followed by a space or line end, and no assertion
// looks at what follows a letter or digit. So a match ends at each cut, and the text after it does not matter.
func (p *pattern) canCut(tree *node) bool {
	g := glushkov{}
	g.visit(tree)
	return !g.crosses
}

// matchesEach reports whether each character of a cut matches alone, so that no text between matches contains one.
func (p *pattern) matchesEach() bool {
	for _, c := range []byte(cutAfter + cutBefore) {
		if p.match([]byte{c}, 0) != 1 {
			return false
		}
	}
	return true
}

// glushkov finds out which sets of a pattern can match adjacent runes.
type glushkov struct{ crosses bool }

// edges are the sets that can match first and last in a part, and whether it can match nothing. An assertion is a set
// that is nil.
type edges struct {
	first, last []*runeSet
	isNullable  bool
}

// join notes that each of the sets after can follow each of the sets before.
func (g *glushkov) join(before, after []*runeSet) {
	for _, x := range before {
		for _, y := range after {
			if x != nil && x.hasAny(cutAfter) && (y == nil || y.hasAny(cutBefore)) {
				g.crosses = true
			}
		}
	}
}

func (g *glushkov) visit(n *node) edges {
	switch n.kind {
	case setNode:
		return edges{[]*runeSet{n.set}, []*runeSet{n.set}, false}
	case lookNode, endNode:
		return edges{[]*runeSet{nil}, nil, true}
	case repeatNode:
		e := g.visit(n.parts[0])
		if n.max != 1 {
			g.join(e.last, e.first)
		}
		e.isNullable = e.isNullable || n.min == 0
		return e
	case altNode:
		var all edges
		for _, part := range n.parts {
			e := g.visit(part)
			all.first = append(all.first, e.first...)
			all.last = append(all.last, e.last...)
			all.isNullable = all.isNullable || e.isNullable
		}
		return all
	}
	all := edges{isNullable: true}
	for _, part := range n.parts {
		e := g.visit(part)
		g.join(all.last, e.first)
		if all.isNullable {
			all.first = append(all.first, e.first...)
		}
		if e.isNullable {
			e.last = append(e.last, all.last...)
		}
		all.last = e.last
		all.isNullable = all.isNullable && e.isNullable
	}
	return all
}
