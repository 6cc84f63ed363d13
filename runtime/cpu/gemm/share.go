package gemm

import "github.com/planc-dev/planc/runtime/cpu/elem"

// A few threads are fastest if each computes its own share and packs what it needs, even if others pack the
// same: data that another core has packed is in that core's cache, and reading it from there is slower than
// packing it.
const (
	fewThreads = 4
	mostLost   = 100 // thousandths by which the largest share may exceed the average
)

// share decides whether n threads compute shares of the matmul. Shares divide the columns, unless the rows
// are divided more evenly or dividing the columns would pack more twice.
func (g *matmul[F]) share(n int) bool {
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
	if rows+mostLost/5 < cols || g.a.T && g.m > g.n && rows <= mostLost {
		g.rowShares, g.colShares = n, 1
	}
	return true
}

// multiplyShare computes share i of the matmul.
func multiplyShare[F elem.Float](g *matmul[F], i int) {
	s := borrowGemm(g.e)
	s.c, s.a, s.b, s.from, s.epilogue = g.c, g.a, g.b, g.from, g.epilogue
	s.m, s.n, s.k, s.acc, s.lone = g.m, g.n, g.k, g.acc, g.lone
	if g.rowShares > 1 {
		lo, hi := shareOf(g.m, g.e.rows, i/g.colShares, g.rowShares)
		s.m, s.c, s.a = hi-lo, s.c.Rows(lo), s.a.from(lo)
		s.epilogue = s.epilogue.on(func(x Mat[F]) Mat[F] { return x.Rows(lo) })
		if s.from.D != nil {
			s.from = s.from.Rows(lo)
		}
	}
	if g.colShares > 1 {
		lo, hi := shareOf(g.n, g.e.cols, i%g.colShares, g.colShares)
		s.n, s.c, s.b = hi-lo, s.c.to(lo), s.b.to(lo)
		s.epilogue = s.epilogue.on(func(x Mat[F]) Mat[F] { return x.to(lo) })
		if s.from.D != nil {
			s.from = s.from.to(lo)
		}
	}
	s.multiply(false)
	s.lone = false
	s.giveBack()
}

// shareOf returns the range of share i of n elements, in panels of w.
func shareOf(n, w, i, shares int) (lo, hi int) {
	panels := (n + w - 1) / w
	return i * panels / shares * w, min((i+1)*panels/shares*w, n)
}
