package comm

// The zigzag order splits a dim into balanced causal parts: the dim is cut into 2n equal chunks, and the i-th of n
// parts is chunks i and 2n-1-i. The concatenated parts are the dim in zigzag order.

// zigzagRuns calls f with the pieces of columns [lo, hi) of the zigzag order that are contiguous in the dim's own
// order: the piece's offset there, its offset in the zigzag order, and its length. The dim has total elements.
func zigzagRuns(lo, hi, n, total int, f func(own, zigzag, width int)) {
	chunk := total / (2 * n)
	for lo < hi {
		k := lo / chunk
		end := min(hi, (k+1)*chunk)
		own := k / 2
		if k%2 == 1 {
			own = 2*n - 1 - k/2
		}
		f(own*chunk+lo-k*chunk, lo, end-lo)
		lo = end
	}
}

// AllGatherZigzag is AllGather of a dim in the zigzag order of n parts, which the members' concatenated parts form. dst
// has the dim's own order. 2n must divide total, and Size×inner must be total.
func AllGatherZigzag[F Elem](g *Group, dst, src []F, outer, inner, total, n int) error {
	g.begin("all_gather", outer*total*elemSize[F]())
	if err := open(g, "all_gather(zigzag)", src); err != nil {
		return err
	}
	for k := range g.Size() {
		i := (g.me + k) % g.Size()
		from := peer[F](g, i)
		zigzagRuns(i*inner, (i+1)*inner, n, total, func(own, zigzag, width int) {
			for o := range outer {
				copy(dst[o*total+own:][:width], from[o*inner+zigzag-i*inner:])
			}
		})
	}
	return g.end("all_gather(zigzag)")
}

// ReduceScatterZigzag is ReduceScatter onto the parts of the zigzag order of n parts. src has the dim's own order. 2n
// must divide Size×inner.
func ReduceScatterZigzag[F Float](g *Group, dst, src []F, outer, inner, n int) error {
	g.begin("reduce_scatter", g.Size()*outer*inner*elemSize[F]())
	if err := open(g, "reduce_scatter(zigzag)", src); err != nil {
		return err
	}
	total := g.Size() * inner
	zigzagRuns(g.me*inner, (g.me+1)*inner, n, total, func(own, zigzag, width int) {
		var block [blockLen]F
		for o := range outer {
			for lo := 0; lo < width; lo += blockLen {
				out := block[:min(blockLen, width-lo)]
				reduceBlock(g, out, o*total+own+lo, Sum)
				copy(dst[o*inner+zigzag-g.me*inner+lo:], out)
			}
		}
	})
	return g.end("reduce_scatter(zigzag)")
}

// SliceZigzag is Slice in the zigzag order of n parts. src has the dim's own order.
func SliceZigzag[T any](g *Group, dst, src []T, outer, inner, n int) {
	total := g.Size() * inner
	zigzagRuns(g.me*inner, (g.me+1)*inner, n, total, func(own, zigzag, width int) {
		for o := range outer {
			copy(dst[o*inner+zigzag-g.me*inner:][:width], src[o*total+own:])
		}
	})
}

// Parts calls f with the contiguous runs in the dim's own order that make up part i of parts: offset and length. zigzag
// is the n of the zigzag order, 0 for contiguous parts.
func Parts(i, parts, total, zigzag int, f func(at, width int)) {
	width := total / parts
	if zigzag == 0 {
		f(i*width, width)
		return
	}
	zigzagRuns(i*width, (i+1)*width, zigzag, total, func(own, _, n int) { f(own, n) })
}
