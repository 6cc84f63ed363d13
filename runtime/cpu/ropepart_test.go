package cpu

import (
	"math"
	"math/cmplx"
	"slices"
	"testing"
)

func TestRoPEPart(t *testing.T) { both(t, testRoPEPart[float32], testRoPEPart[float64]) }

func testRoPEPart[F Float](t *testing.T, tol float64) {
	scale := RopeScale{Kind: "linear", Factor: 4}
	for _, r := range []RopeRows{{1, 3, 2, 10, 6, 4, true, 0}, {2, 5, 3, 9, 2, 6, false, 0},
		{1, 2, 1, 4, 0, 4, true, 0}, {2, 3, 4, 192, 128, 64, true, 0}, {2, 5, 3, 8, 0, 8, false, 40},
		{1, 2, 2, 6, 0, 4, true, 15}} {
		n := r.Batch * r.Seq * r.Size()
		x := draw[F](1, n)
		y, back, want := make([]F, n), make([]F, n), wide(x)
		for i := range want {
			s, in := i/r.Size()%r.Seq, i%r.Size()
			at, j := i-in%r.Dim, in%r.Dim-r.From
			if in >= r.Heads*r.Dim {
				continue
			}
			pair, other := j, r.Turn/2
			if r.Pairs {
				pair, other = j/2, 1
			}
			if j < 0 || j >= r.Turn || r.Pairs && j%2 == 1 || !r.Pairs && j >= r.Turn/2 {
				continue
			}
			k := at + r.From + j
			turn := cmplx.Exp(complex(0, float64(7+s)*math.Pow(1e4, -2*float64(pair)/float64(r.Turn))/4))
			z := complex(float64(x[k]), float64(x[k+other])) * turn
			want[k], want[k+other] = real(z), imag(z)
		}
		Table[F]().RoPEPart(y, x, r, Where{At: 7}, 1e4, scale, false)
		near(t, name("part of a rope ", r), y, want, tol)
		in := slices.Clone(x)
		Table[F]().RoPEPart(in, in, r, Where{At: 7}, 1e4, scale, false)
		near(t, name("part of a rope in place ", r), in, want, tol)
		Table[F]().RoPEPart(back, y, r, Where{At: 7}, 1e4, scale, true)
		near(t, name("part of a rope and back ", r), back, wide(x), tol)
	}
}

func TestSumRowsEach(t *testing.T) {
	x, out := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, []float64{1, 1, 1, 1}
	Table[float64]().SumRowsEach(out, x, 2, 3, 2, false)
	near(t, "sums in the middle", out, []float64{9, 12, 27, 30}, 0)
	Table[float64]().SumRowsEach(out, x, 2, 3, 2, true)
	near(t, "sums added", out, []float64{18, 24, 54, 60}, 0)
}
