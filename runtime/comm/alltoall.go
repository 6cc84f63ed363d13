package comm

// AllToAllShape is the shape of an all-to-all: two dims of a tensor trade what splits them. First and Second are what
// one member has of each where it is split, the first in memory order coming first; Outer, Middle and Inner are the
// elements before, between and behind them.
type AllToAllShape struct {
	Outer, First, Middle, Second, Inner int
	Back                                bool // the second dim was split and becomes whole; else the first
}

// elems is how many elements a member has, before and after.
func (t *AllToAllShape) elems(n int) int {
	return t.Outer * t.First * t.Middle * t.Second * t.Inner * n
}

// AllToAll makes the dim that was split over the members whole, and splits the other. With n members, and Back false,
//
//	for o, i, a, m, b := range [Outer, n, First, Middle, Second] {
//		dst[o, i*First+a, m, b] = src_i[o, a, m, me*Second+b]
//	}
//
// where src is [Outer, First, Middle, n*Second, Inner] and dst [Outer, n*First, Middle, Second, Inner]; with Back these
// are dst and src:
//
//	dst[o, a, m, i*Second+b] = src_i[o, me*First+a, m, b]
func AllToAll[F Float](g *Group, dst, src []F, t AllToAllShape) error {
	n := g.Size()
	if n == 1 || len(src) == 0 {
		copy(dst, src)
		return nil
	}
	g.note("all_to_all", len(src)*elemSize[F]())
	if err := open(g, "all_to_all", src); err != nil {
		return err
	}
	for k := range n {
		i := (g.me + k) % n // members start apart
		t.take(g.me, i, n, func(to, from, width int) { copy(dst[to:to+width], peer[F](g, i)[from:]) })
	}
	return g.ch.meet(g.me, "all_to_all")
}

// take calls f with the runs of elements that member me takes of member i: where they go, where they are, how many.
func (t *AllToAllShape) take(me, i, n int, f func(to, from, width int)) {
	width := t.Second * t.Inner
	for o := range t.Outer {
		for a := range t.First {
			for m := range t.Middle {
				// where the first dim is whole: k's part of it
				first := func(k int) int { return ((o*n*t.First+k*t.First+a)*t.Middle + m) * width }
				// likewise the second
				second := func(k int) int { return (((o*t.First+a)*t.Middle+m)*n + k) * width }
				if t.Back {
					f(second(i), first(me), width)
				} else {
					f(first(i), second(me), width)
				}
			}
		}
	}
}
