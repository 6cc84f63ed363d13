package cpu

import (
	"slices"
	"testing"
)

// shapes are rows and cols for the tests of row-wise kernels: none, one, primes, more than a lane or block.
var shapes = [][2]int{{0, 5}, {1, 1}, {3, 7}, {5, 64}, {2, 131}, {67, 65}, {131, 3}, {211, 33}}

func TestReduce(t *testing.T) { both(t, testReduce[float32], testReduce[float64]) }

func testReduce[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	for _, z := range shapes {
		rows, cols := z[0], z[1]
		x := draw[F](1, rows*cols)
		for _, acc := range accs {
			r, c := draw[F](2, cols), draw[F](3, rows)
			wantR, wantC := start(r, acc), start(c, acc)
			square := 0.0
			for i, v := range x {
				wantR[i%cols] += float64(v)
				wantC[i/cols] += float64(v)
				square += float64(v) * float64(v)
			}
			k.SumRows(r, x, rows, cols, acc)
			near(t, name("sum rows ", z, acc), r, wantR, tol)
			k.SumCols(c, x, rows, cols, acc)
			near(t, name("sum cols ", z, acc), c, wantC, tol)
			near(t, name("sum squares ", z), []float64{k.SumSquares(x)}, []float64{square}, 1e-12)
		}
		dst := draw[F](4, len(x))
		want := wide(dst)
		for i, v := range x {
			want[i] += float64(v)
		}
		k.Add(dst, x)
		near(t, name("add ", z), dst, want, tol)
	}
}

// Column sums of few rows, and of many rows in several parts, have the same bits on any number of threads.
func TestColumnSumsOnThreads(t *testing.T) {
	each(t, func(t *testing.T) {
		defer Threads(1, 1)
		k := Table[float32]()
		for _, z := range [][2]int{{partRowsSummed, 700}, {partRowsSummed + 1, 700},
			{3*partRowsSummed + 2*bandRows + 3, 130}, {1000, 5}, {mostSums*partRowsSummed + 5*mostSums, 3}} {
			rows, cols := z[0], z[1]
			x, dy := draw[float32](1, rows*cols), draw[float32](2, rows*cols)
			var first []float32
			for threads := 1; threads < 5; threads++ {
				Threads(1, threads)
				all := draw[float32](3, 3*cols)
				k.SumRows(all[:cols], x, rows, cols, true)
				k.LayerNormDGain(all[cols:2*cols], dy, x, rows, cols, eps, false)
				k.RMSNormDGain(all[2*cols:], dy, x, rows, cols, eps, true)
				if first == nil {
					first = all
				}
				if !slices.Equal(all, first) {
					t.Errorf("%v: sums on %d threads differ from those on one", z, threads)
				}
			}
		}
	})
}

// Sums of any number of rows have few parts: a job has at most maxParts, and each part's sums need memory.
func TestColumnSumsAreFew(t *testing.T) {
	for rows := partRowsSummed + 1; rows < 1<<24; rows = rows*3/2 + 1 {
		s := summing(rows, 1, nil)
		if n := s.parts(); n > mostSums || len(s.own) != 2*rows+n {
			t.Errorf("%d rows are summed in %d parts, but there is space for %d", rows, n, len(s.own))
		}
		s.end()
	}
	const rows = 1<<22 + 1<<18 // ones, whose sums are exact, in more than maxParts times partRowsSummed rows
	x, sum := make([]float32, rows), make([]float32, 1)
	for i := range x {
		x[i] = 1
	}
	withThreads(t, 2, func(t *testing.T) {
		each(t, func(t *testing.T) {
			Table[float32]().SumRows(sum, x, rows, 1, false)
			if sum[0] != rows {
				t.Errorf("%v ones are %v", rows, sum[0])
			}
		})
	})
}
