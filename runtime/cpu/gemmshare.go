package cpu

// Few threads do best each on a product of its own, which packs what it needs, though what all need is packed by each:
// what another core packed is in that core's cache, from where it comes slower than it is packed.
const (
	fewThreads = 4
	mostLost   = 100 // thousandths that the largest share may exceed its part by
)

// share decides whether n threads do shares of the product, and of what: of the columns, unless the rows come out more
// even, or more would be packed twice.
func (g *gemm[F]) share(n int) bool {
	if n < 2 || n > fewThreads {
		return false
	}
	aPanels, bPanels := (g.m+g.e.rows-1)/g.e.rows, (g.n+g.e.cols-1)/g.e.cols
	rows, cols := lost(aPanels, n), lost(bPanels, n)
	if aPanels < n {
		rows = 1000
	}
	if bPanels < n {
		cols = 1000
	}
	if min(rows, cols) > mostLost {
		return false
	}
	g.shares, g.rowShares, g.colShares = n, 1, n
	if rows+mostLost/5 < cols || g.a.t && g.m > g.n && rows <= mostLost {
		g.rowShares, g.colShares = n, 1
	}
	return true
}

// multiplyShare does share i of the product.
func multiplyShare[F Float](g *gemm[F], i int) {
	s := borrowGemm(g.e)
	s.c, s.a, s.b, s.from, s.then = g.c, g.a, g.b, g.from, g.then
	s.m, s.n, s.k, s.acc, s.lone = g.m, g.n, g.k, g.acc, g.lone
	if g.rowShares > 1 {
		lo, hi := shareOf(g.m, g.e.rows, i/g.colShares, g.rowShares)
		s.m, s.c, s.a = hi-lo, s.c.rows(lo), s.a.from(lo)
		s.then = s.then.on(func(x mat[F]) mat[F] { return x.rows(lo) })
		if s.from.d != nil {
			s.from = s.from.rows(lo)
		}
	}
	if g.colShares > 1 {
		lo, hi := shareOf(g.n, g.e.cols, i%g.colShares, g.colShares)
		s.n, s.c, s.b = hi-lo, s.c.to(lo), s.b.to(lo)
		s.then = s.then.on(func(x mat[F]) mat[F] { return x.to(lo) })
		if s.from.d != nil {
			s.from = s.from.to(lo)
		}
	}
	s.multiply(false)
	s.lone = false
	s.giveBack()
}

// shareOf is where share i of n elements, in panels of w, begins and ends.
func shareOf(n, w, i, shares int) (lo, hi int) {
	panels := (n + w - 1) / w
	return i * panels / shares * w, min((i+1)*panels/shares*w, n)
}

// from is the matrix from row i on.
func (x mat[F]) from(i int) mat[F] {
	switch {
	case !x.t:
		return x.rows(i)
	case x.h != nil:
		x.h = x.h[i:]
	default:
		x.d = x.d[i:]
	}
	return x
}

// to is the matrix from column j on.
func (x mat[F]) to(j int) mat[F] {
	x.t = !x.t
	x = x.from(j)
	x.t = !x.t
	return x
}
