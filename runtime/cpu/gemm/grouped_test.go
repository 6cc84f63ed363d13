package gemm

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/cpu/team"
)

func TestGroupedProducts(t *testing.T) {
	each(t, func(t *testing.T) {
		testGrouped[float32](t)
		testGrouped[float64](t)
	})
}

// Each group's matmul has the bits that it has alone, on one thread and several, with balanced and
// unbalanced groups: sizes that are split among threads, smaller ones, and one group with all tokens.
func testGrouped[F elem.Float](t *testing.T) {
	defer team.Threads(1, 1)
	for _, z := range [][4]int{{1, 5, 7, 3}, {4, 17, 33, 40}, {3, 128, 96, 128}, {4, 128, 96, 128}, {5, 3, 4, 0},
		{2, 0, 4, 3}, {0, 2, 2, 2}} {
		groups, m, n, k := z[0], z[1], z[2], z[3]
		a, b, before := draw[F](1, groups*m*k), draw[F](2, groups*k*n), draw[F](3, groups*m*n)
		for i := range 16 {
			ta, tb, acc := i&1 > 0, i&2 > 0, i&4 > 0
			if i == 8 {
				clear(a[min(len(a), m*k):])
			}
			want := slices.Clone(before)
			team.Threads(1, 1)
			for g := range groups {
				MatMul(want[g*m*n:][:m*n], a[g*m*k:][:m*k], b[g*k*n:][:k*n], m, n, k, ta, tb, acc)
			}
			for threads := 1; threads < 4; threads++ {
				team.Threads(1, threads)
				got := slices.Clone(before)
				MatMulEach(got, a, b, groups, m, n, k, ta, tb, acc)
				if !slices.Equal(got, want) {
					t.Errorf("matmuls %v, %v %v %v, on %d threads differ from separate matmuls", z, ta, tb,
						acc, threads)
				}
			}
		}
	}
}

// Threads compute whole matmuls if this balances the work, or if matmuls are too small to be split.
func TestEven(t *testing.T) {
	const m, n, k = 128, 96, 128
	for _, c := range []struct {
		groups, threads, rows, full int // rows of each group with a token, and groups in which all rows have one
		want                        bool
	}{{8, 2, 50, 0, true}, {3, 2, 50, 0, false}, {3, 3, 50, 0, true}, {2, 3, 50, 0, false}, {8, 2, 10, 1, false},
		{8, 2, 10, 2, true}, {16, 2, 128, 0, true}, {4, mostEven + 1, 50, 0, false}} {
		g := grouped[float32]{m: m, n: n, k: k, a: make([]float32, c.groups*m*k)}
		for i := range c.groups {
			rows := c.rows
			if i < c.full {
				rows = m
			}
			for r := range rows {
				g.a[(i*m+r)*k+3] = 1
			}
		}
		if got := g.even(c.groups, c.threads); got != c.want {
			t.Errorf("%+v: even is %v", c, got)
		}
		if small := (grouped[float32]{m: 8, n: n, k: k}); !small.even(c.groups, c.threads) {
			t.Errorf("%+v: small matmuls are split", c)
		}
	}
}

// Compares experts' matmuls on two threads in one call and in successive calls.
func BenchmarkGroupedProducts(b *testing.B) {
	defer team.Threads(1, 1)
	team.Threads(1, 2)
	for _, z := range [][4]int{{8, 96, 128, 64}, {8, 192, 512, 128}, {8, 512, 1024, 256}, {8, 1024, 1536, 384}} {
		groups, m, n, k := z[0], z[1], z[2], z[3]
		x, y, c := draw[float32](1, groups*m*k), draw[float32](2, groups*k*n), make([]float32, groups*m*n)

		rate := func(b *testing.B) {
			b.ReportMetric(2*float64(groups*m*n*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		}
		b.Run(name("together ", z), func(b *testing.B) {
			for b.Loop() {
				MatMulEach(c, x, y, groups, m, n, k, false, false, false)
			}
			rate(b)
		})
		b.Run(name("apart ", z), func(b *testing.B) {
			for b.Loop() {
				for g := range groups {
					MatMul(c[g*m*n:][:m*n], x[g*m*k:][:m*k], y[g*k*n:][:k*n], m, n, k, false, false, false)
				}
			}
			rate(b)
		})
	}
}
