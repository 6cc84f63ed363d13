package comm

// AllToAllShape is the shape of an all-to-all, which exchanges the split between two dims of a tensor. First and Second
// are the local sizes of the two dims, in memory order. Outer, Middle and Inner are the sizes before, between and after
// them.
type AllToAllShape struct {
	Outer, First, Middle, Second, Inner int
	Back                                bool // the second dim is gathered and the first is split; else the reverse
}

// elems returns the number of elements of a member, which stays the same.
func (t *AllToAllShape) elems(n int) int {
	return t.Outer * t.First * t.Middle * t.Second * t.Inner * n
}

// AllToAll gathers the dim that was split over the members, and splits the other. With n members, and Back false,
//
//	for o, i, a, m, b := range [Outer, n, First, Middle, Second] {
//		dst[o, i*First+a, m, b] = src_i[o, a, m, me*Second+b]
//	}
//
// where src is [Outer, First, Middle, n*Second, Inner] and dst [Outer, n*First, Middle, Second, Inner]. If Back is
// true, these are the shapes of dst and src:
//
//	dst[o, a, m, i*Second+b] = src_i[o, me*First+a, m, b]
func AllToAll[F Float](g *Group, dst, src []F, t AllToAllShape) error {
	n := g.Size()
	if n == 1 || len(src) == 0 {
		copy(dst, src)
		return nil
	}
	g.begin("all_to_all", len(src)*elemSize[F]())
	if err := open(g, "all_to_all", src); err != nil {
		return err
	}
	for k := range n {
		i := (g.me + k) % n // members start at different parts
		t.eachRun(g.me, i, n, func(to, from, width int) { copy(dst[to:to+width], peer[F](g, i)[from:]) })
	}
	return g.end("all_to_all")
}

// eachRun calls f with each run of elements that member me receives from member i: destination, source and length.
func (t *AllToAllShape) eachRun(me, i, n int, f func(to, from, width int)) {
	width := t.Second * t.Inner
	for o := range t.Outer {
		for a := range t.First {
			for m := range t.Middle {
				// offset of k's part if the first dim is whole
				first := func(k int) int { return ((o*n*t.First+k*t.First+a)*t.Middle + m) * width }
				// offset of k's part if the second dim is whole
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
