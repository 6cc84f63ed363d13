package gemm

import (
	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/team"
)

// MatMulEach computes
//
//	for g := range groups { MatMul(c[g], a[g], b[g], m, n, k, ta, tb, acc) }
//
// Rows of a that are 0, such as empty slots of experts, cost next to nothing: they add nothing to a sum,
// and their results are 0, even if b is not finite.
func MatMulEach[F elem.Float](c, a, b []F, groups, m, n, k int, ta, tb, acc bool) {
	g := groupedOf[F]().Get()
	*g = grouped[F]{c: c, a: a, b: b, m: m, n: n, k: k, ta: ta, tb: tb, acc: acc}
	if team.Size() > 1 && g.even(groups, team.Size()) {
		g.alone = true
		team.RunInTurn(g, groups)
	} else {
		for i := range groups {
			g.Part(i)
		}
	}
	*g = grouped[F]{}
	groupedOf[F]().Put(g)
}

// grouped is a set of matmuls of one size as one job, with a matmul as each part: threads then synchronize
// once rather than once per matmul, and none reads what another has packed. The bits of an element depend
// only on its row and its column, so this does not change them.
type grouped[F elem.Float] struct {
	c, a, b     []F
	m, n, k     int
	ta, tb, acc bool
	alone       bool // a thread computes a whole matmul
}

func (g *grouped[F]) multiply(c, a, b []F, m, n, k int, ta, tb, acc bool) {
	if g.alone {
		matMulAlone(c, a, b, m, n, k, ta, tb, acc)
	} else {
		MatMul(c, a, b, m, n, k, ta, tb, acc)
	}
}

var (
	grouped32 team.Pool[grouped[float32]]
	grouped64 team.Pool[grouped[float64]]
)

func groupedOf[F elem.Float]() *team.Pool[grouped[F]] {
	if p, ok := any(&grouped32).(*team.Pool[grouped[F]]); ok {
		return p
	}
	return any(&grouped64).(*team.Pool[grouped[F]])
}

// mostEven is the maximum number of threads for which even compares the work.
const mostEven = 64

// even reports whether the threads should compute whole matmuls: if these are too small to be split, or if
// taking one after another balances the threads. The work of a matmul is the number of rows of a that are
// not 0 at their beginnings.
func (g *grouped[F]) even(groups, threads int) bool {
	if g.m*g.n*g.k < smallWork {
		return true
	}
	if threads > mostEven || groups < threads {
		return false
	}
	var work [mostEven]int
	all, largest := 0, 0
	for i := range groups {
		free := 0
		for t := range threads {
			if work[t] < work[free] {
				free = t
			}
		}
		n := g.work(i)
		work[free] += n
		all, largest = all+n, max(largest, work[free])
	}
	return largest*threads*1000 <= all*(1000+mostLost)
}

// work returns the number of rows of matmul i's a that are not 0 at their beginnings.
func (g *grouped[F]) work(i int) (n int) {
	rows, cols := g.m, g.k
	if g.ta {
		rows, cols = g.k, g.m
	}
	const beginning = 16
	a := g.a[i*rows*cols:][:rows*cols]
	for r := range rows {
		if !zeroes(a[r*cols:][:min(beginning, cols)]) {
			n++
		}
	}
	return n
}

// Part computes matmul i.
func (g *grouped[F]) Part(i int) {
	m, n, k := g.m, g.n, g.k
	c, a, b := g.c[i*m*n:][:m*n], g.a[i*m*k:][:m*k], g.b[i*k*n:][:k*n]
	switch {
	case !g.ta:
		g.rows(c, a, b)
	case !g.tb:
		g.sums(c, a, b)
	default:
		g.multiply(c, a, b, m, n, k, g.ta, g.tb, g.acc)
	}
}

// rows multiplies the runs of nonzero rows of a.
func (g *grouped[F]) rows(c, a, b []F) {
	m, n, k, end := g.m, g.n, g.k, 0
	for from, to := nextRun(a, 0, m, k); from < to; from, to = nextRun(a, to, m, k) {
		if !g.acc {
			clear(c[end*n : from*n])
		}
		g.multiply(c[from*n:to*n], a[from*k:to*k], b, to-from, n, k, false, g.tb, g.acc)
		end = to
	}
	if !g.acc {
		clear(c[end*n:])
	}
}

// sums sums over the runs of nonzero rows of a, which is stored as k by m.
func (g *grouped[F]) sums(c, a, b []F) {
	m, n, k, acc := g.m, g.n, g.k, g.acc
	for from, to := nextRun(a, 0, k, m); from < to; from, to = nextRun(a, to, k, m) {
		g.multiply(c, a[from*m:to*m], b[from*n:to*n], m, n, to-from, true, false, acc)
		acc = true
	}
	if !acc {
		clear(c)
	}
}

// matMulAlone computes MatMul on the caller's thread.
func matMulAlone[F elem.Float](c, a, b []F, m, n, k int, ta, tb, acc bool) {
	switch {
	case engineOf[F]() == nil:
		plainMatMul(c, a, b, m, n, k, ta, tb, acc)
	case m > 0 && n > 0:
		g := newMatmul(c, a, b, m, n, k, ta, tb)
		g.acc = acc
		g.multiply(false)
		g.giveBack()
	}
}
