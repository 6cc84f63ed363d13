package cpu

import "testing"

// shapes are rows and cols of the tests of row-wise kernels: none, one, primes, more than a lane or block.
var shapes = [][2]int{{0, 5}, {1, 1}, {3, 7}, {5, 64}, {2, 131}, {67, 65}, {131, 3}}

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
