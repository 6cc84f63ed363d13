package vec_test

import (
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/vec"
)

// The loops over a row of scores equal float64: all lengths, at any alignment.
func TestScores(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		const scale, shift, d, factor = 0.25, 1.5, -0.75, 0.125
		for i, n := range lengths {
			a, g := draw(8, n, false), draw(9, n, false)
			all, y := fenced(n, i%5)
			var sum, size float64
			for j := range a {
				e := math.Exp(scale*float64(a[j]) - shift)
				sum, size = sum+e, size+e
			}
			same(t, "ExpSum", n, k.ExpSum(y, a, scale, shift), sum, size, 1.2e-7)
			intact(t, "ExpSum", all, n, i%5)
			p, dp := append([]float32(nil), a...), append([]float32(nil), g...)
			k.ExpGrad(p, dp, scale, shift, d, factor)
			for j := range a {
				e := math.Exp(scale*float64(a[j]) - shift)
				if !near(y[j], e, 2, 0) || y[j] != p[j] {
					t.Fatalf("ExpSum and ExpGrad of %v are %v and %v, want %v (element %d of %d)", a[j], y[j],
						p[j], e, j, n)
				}
				if want := e * (float64(g[j]) - d) * factor; !near(dp[j], want, 5, 1e-7) {
					t.Fatalf("ExpGrad's gradient at %v, %v is %v, want %v (element %d of %d)", a[j], g[j],
						dp[j], want, j, n)
				}
			}
		}
	})
}

// A part of a row of logits: all lengths, at any alignment; as far below the shift as exponentials reach;
// with -Inf and NaN.
func TestExpPart(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for i, n := range lengths {
			a, shift := draw(8, n, false), k.Largest(draw(8, n, false), float32(math.Inf(-1)))
			for j := range a {
				if j%7 == 3 {
					a[j] = shift - 10*float32(j%13)
				}
			}
			all, y := fenced(n, i%5)
			var sum float64
			for _, v := range a {
				sum += math.Exp(float64(v) - float64(shift))
			}
			same(t, "ExpPart", n, k.ExpPart(y, a, shift), sum, sum, 2.4e-7)
			intact(t, "ExpPart", all, n, i%5)
			for j, v := range a {
				if e := math.Exp(float64(v - shift)); !near(y[j], e, 2, 1e-37) {
					t.Fatalf("ExpPart of %v below %v is %v, want %v (element %d of %d)", v, shift, y[j], e, j, n)
				}
			}
		}
		for _, n := range []int{5, 64, 131} {
			a, y := draw(8, n, false), make([]float32, n)
			a[n-2] = float32(math.Inf(-1))
			k.ExpPart(y, a, 9)
			if y[n-2] != 0 {
				t.Errorf("e^-Inf is %v", y[n-2])
			}
			a[n/2] = float32(math.NaN())
			if s := k.ExpPart(y, a, 9); s == s || y[n/2] == y[n/2] || y[0] != y[0] {
				t.Errorf("of a NaN the sum is %v, itself %v, another element %v", s, y[n/2], y[0])
			}
		}
	})
}

// An infinity or a NaN among scores affects only its element and the sum.
func TestScoresNotFinite(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		inf := math.Inf(1)
		for _, c := range []struct{ is, want float64 }{{-inf, 0}, {inf, inf}, {math.NaN(), math.NaN()}} {
			x := draw(8, 37, false)
			x[35] = float32(c.is)
			y := make([]float32, len(x))
			sum := k.ExpSum(y, x, 0.5, 1)
			for j, v := range y {
				if j == 35 && !near(v, c.want, 1, 0) || j != 35 && (v != v || math.IsInf(float64(v), 0)) {
					t.Errorf("ExpSum with %v: element %d is %v", c.is, j, v)
				}
			}
			if bad := math.IsNaN(sum) || math.IsInf(sum, 0); bad != (c.want != 0) {
				t.Errorf("ExpSum with %v is %v", c.is, sum)
			}
		}
	})
}

// Rows of a matrix inside a larger one. What lies between and after them is unchanged.
func TestScaleRows(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for _, cols := range lengths {
			const rows = 3
			stride := cols + 5
			x, f := draw(8, rows*stride, false), []float32{0.5, -3, float32(math.Inf(1))}
			y := append([]float32(nil), x...)
			k.ScaleRows(y, f, cols, stride)
			for j := range y {
				want := float64(x[j])
				if j%stride < cols {
					want *= float64(f[j/stride])
				}
				if !near(y[j], want, 0.5, 0) {
					t.Fatalf("ScaleRows of %d columns: element %d is %v, want %v", cols, j, y[j], want)
				}
			}
			k.ScaleRows(y, nil, cols, stride)
		}
	})
}

// Rows of a block of scores, of which each sees a part, equal a loop in float64. What follows a row is
// unchanged.
func TestRowsOfScores(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		const scale, factor, rows = 0.25, 0.125, 9
		// rounding the exponent, which is less than 8, to a multiple of 2^-22 changes the power by up to 4 ulp
		const ulps = 2 + 4
		for _, cols := range lengths {
			stride := cols + 3
			a, g := draw(8, rows*stride, false), draw(9, rows*stride, false)
			seen, top, sum, d := make([]int, rows), make([]float32, rows), make([]float64, rows), draw(10, rows, false)
			for i := range rows {
				seen[i], top[i] = cols*i/(rows-1), float32(i%3-1)
			}
			p, e, dp, shift := slices.Clone(a), slices.Clone(a), slices.Clone(g), slices.Clone(top)
			k.TopRows(top, p, seen, stride, scale)
			k.ExpRows(p, seen, cols, stride, scale, top, sum)
			k.GradRows(e, dp, seen, cols, stride, scale, factor, shift, d)
			for i := range rows {
				x, largest, total := a[i*stride:], shift[i], 0.0
				for _, v := range x[:seen[i]] {
					largest = max(largest, scale*v)
				}
				for j := range stride {
					at := i*stride + j
					switch {
					case j >= cols:
						if p[at] != a[at] || e[at] != a[at] || dp[at] != g[at] {
							t.Fatalf("row %d of %d scores: the element after the row changes", i, cols)
						}
					case j >= seen[i]:
						if p[at] != 0 || e[at] != 0 || dp[at] != 0 {
							t.Fatalf("row %d of %d scores: element %d, unseen, is not 0", i, cols, j)
						}
					default:
						want := math.Exp(scale*float64(x[j]) - float64(largest))
						weight := math.Exp(scale*float64(x[j]) - float64(shift[i]))
						total += want
						if grad := weight * (float64(g[at]) - float64(d[i])) * factor; !near(p[at], want, ulps, 0) ||
							!near(e[at], weight, ulps, 0) || !near(dp[at], grad, ulps+3, 1e-7) {
							t.Fatalf("row %d of %d scores, element %d: %v, %v and %v, want %v, %v and %v", i, cols, j,
								p[at], e[at], dp[at], want, weight, grad)
						}
					}
				}
				if top[i] != largest {
					t.Fatalf("row %d of %d scores has maximum %v, want %v", i, cols, top[i], largest)
				}
				same(t, "ExpRows' sum", cols, sum[i], total, total, 1.2e-7)
			}
			k.DotRows(d, a, g, cols, stride, stride)
			for i := range rows {
				products, about := 0.0, 0.0
				for j := range cols {
					v := float64(a[i*stride+j]) * float64(g[i*stride+j])
					products, about = products+v, about+math.Abs(v)
				}
				same(t, "DotRows", cols, float64(d[i]), products, about, 1e-7)
			}
		}
	})
}

// A row of -Inf has no weights and leaves its maximum unchanged. A NaN affects its element and the sum, not
// the maximum.
func TestRowsNotFinite(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		x := []float32{-inf, -inf, -inf, 1, nan, 2, nan, nan, nan, -inf, 3, -inf}
		top, sum := []float32{-inf, -inf, -inf, -inf}, make([]float64, 4)
		k.TopRows(top, x, []int{3, 3, 3, 3}, 3, 1)
		k.ExpRows(x, []int{3, 3, 3, 3}, 3, 3, 1, top, sum)
		if !slices.Equal(top, []float32{-inf, 2, -inf, 3}) {
			t.Errorf("maxima are %v", top)
		}
		if sum[0] != 0 || sum[1] == sum[1] || sum[2] == sum[2] || sum[3] != 1 {
			t.Errorf("sums are %v", sum)
		}
		for i, want := range []float64{0, 0, 0, math.Exp(-1), math.NaN(), 1, math.NaN(), math.NaN(),
			math.NaN(), 0, 1, 0} {
			if !near(x[i], want, 1, 0) {
				t.Errorf("element %d is %v, want %v", i, x[i], want)
			}
		}
	})
}

// Prefetching rows does not change them, and they need not exist.
func TestAskRows(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		x := draw(8, 100, false)
		y := slices.Clone(x)
		for _, cols := range lengths {
			k.AskRows(y, 5, cols, cols+3)
		}
		k.AskRows(y, 0, 7, 7)
		k.AskRows(nil, 3, 16, 1<<40)
		if !slices.Equal(x, y) {
			t.Error("what is asked for changes")
		}
	})
}

// Logarithms of sums and inverses equal their loop, with the bits of rng's logarithm.
func TestLogRows(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		inf, nan := math.Inf(1), math.NaN()
		sum := []float64{1, 0, 2, 0.5, math.Sqrt2, math.Sqrt2 / 2, nan, inf, 0x1p-1022, math.MaxFloat64, 256, 3.75,
			1 + 0x1p-52, 1 - 0x1p-53, 1e-300, 77}
		for i := range 240 {
			sum = append(sum, math.Exp(float64(i)/11-7)+rng.Log(float64(i+2)))
		}
		top, lse, inverse := draw(8, len(sum), true), make([]float32, len(sum)), make([]float32, len(sum))
		k.LogRows(lse, inverse, top, sum)
		for i, x := range sum {
			l, f := float32(float64(top[i])+rng.Log(x)), float32(1/x)
			if x == 0 {
				l, f = float32(-inf), 1
			}
			if !(lse[i] == l || l != l && lse[i] != lse[i]) ||
				!(inverse[i] == f || f != f && inverse[i] != inverse[i]) {
				t.Errorf("of %v and %v: %v and %v, want %v and %v", top[i], x, lse[i], inverse[i], l, f)
			}
		}
		k.LogRows(nil, nil, nil, nil)
	})
}
