package cu

import "slices"

// Chain is a fused group.
type Chain struct {
	Name     string // of its kernel
	Operands []Operand
	Links    []Link
}

// Operand says where an operand's elements are and how they are stored: names of package runtime/cpu's At (Whole,
// PerCol, PerRow, One, Temp) and package runtime/num's Elem (BF16, F16; "" as they are computed with).
type Operand struct{ At, Elem string }

// Link sets operand To to Do, a name of package runtime/cpu's Do, of operands A, B and More and of numbers C and Base,
// rounded to Round.
type Link struct {
	Do       string
	To, A, B int
	More     []int
	C, Base  float64
	Round    string
}

// Reduces tells whether the chain sums over rows.
func (c *Chain) Reduces() bool {
	return slices.ContainsFunc(c.Links, func(l Link) bool { return norms[l.Do].sums })
}

// isIndex tells whether an operand is the ids of a pick, and isLimit whether it says how much of a row is there.
func (c *Chain) isIndex(i int) bool {
	return slices.ContainsFunc(c.Links, func(l Link) bool {
		return (l.Do == "PickGrad" || l.Do == "AddPick") && l.More[0] == i
	})
}

func (c *Chain) isLimit(i int) bool {
	return slices.ContainsFunc(c.Links, func(l Link) bool { return l.Do == "ExpGrad" && l.More[1] == i })
}

// result tells whether the chain leaves an operand in memory.
func (c *Chain) result(i int) bool {
	return c.Operands[i].At == "Whole" && slices.ContainsFunc(c.Links, func(l Link) bool { return l.To == i })
}

// maker is the link before link k that set operand i last, -1 if that is not the chain's.
func (c *Chain) maker(i, k int) int {
	for k--; k >= 0 && c.Links[k].To != i; k-- {
	}
	return k
}

// operands are a link's, as numbers of operands of which it reads elements.
func (l *Link) operands() []int {
	switch n := norms[l.Do]; {
	case n.sums && n.grad:
		return []int{l.A, l.B, l.More[0]}
	case n.sums:
		return append([]int{l.A, l.B}, l.More...)
	}
	switch l.Do {
	case "ExpGrad":
		return []int{l.A, l.B, l.More[0]}
	case "PickGrad":
		return []int{l.A}
	case "AddPick":
		return []int{l.A, l.B}
	}
	if elements[l.Do].two {
		return []int{l.A, l.B}
	}
	return []int{l.A}
}

// needs are the links that operand i, as link k reads it, is made by, in order.
func (c *Chain) needs(k int, operands ...int) (links []int) {
	for _, i := range operands {
		if m := c.maker(i, k); m >= 0 {
			links = append(links, m)
			links = append(links, c.needs(m, c.Links[m].operands()...)...)
		}
	}
	slices.Sort(links)
	return slices.Compact(links)
}
