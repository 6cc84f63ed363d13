package cu

import "slices"

// Chain is a group of fused ops.
type Chain struct {
	Name     string // of its kernel
	Operands []Operand
	Links    []Link
}

// Operand describes the position and the storage type of an operand: names of package runtime/cpu's At (Whole, PerCol,
// PerRow, One, Temp) and of package runtime/num's Elem (BF16, F16; "" is the type of the arithmetic). If it is one of
// several sides of a value, its rows are that many rows apart.
type Operand struct {
	At, Elem string
	Sides    int // 0: it is none
}

// Link computes operand To with Do, a name of package runtime/cpu's Do, from operands A, B and More and numbers C and
// Base, rounded to Round.
type Link struct {
	Do       string
	To, A, B int
	More     []int
	C, Base  float64
	Round    string
}

// Reduces reports whether the chain sums over rows.
func (c *Chain) Reduces() bool {
	return slices.ContainsFunc(c.Links, func(l Link) bool { return norms[l.Do].sums })
}

// isIndex reports whether an operand is the ids of a pick, and isLimit whether it limits the valid part of a row.
func (c *Chain) isIndex(i int) bool {
	return slices.ContainsFunc(c.Links, func(l Link) bool {
		return (l.Do == "PickGrad" || l.Do == "AddPick") && l.More[0] == i
	})
}

func (c *Chain) isLimit(i int) bool {
	return slices.ContainsFunc(c.Links, func(l Link) bool { return l.Do == "ExpGrad" && l.More[1] == i })
}

// result reports whether the chain stores an operand in memory.
func (c *Chain) result(i int) bool {
	return c.Operands[i].At == "Whole" && slices.ContainsFunc(c.Links, func(l Link) bool { return l.To == i })
}

// maker returns the link before link k that computed operand i last, -1 if the chain did not compute it.
func (c *Chain) maker(i, k int) int {
	for k--; k >= 0 && c.Links[k].To != i; k-- {
	}
	return k
}

// operands returns the numbers of the operands whose elements a link reads.
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

// needs returns the links that compute operand i as link k reads it, in order.
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
