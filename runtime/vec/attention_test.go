package vec_test

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/vec"
)

// The loops of a row of scores against themselves in float64: all lengths, beginning anywhere.
func TestScores(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		const scale, shift, d, factor = 0.25, 1.5, -0.75, 0.125
		for i, n := range lengths {
			a, g := draw(8, n, false), draw(9, n, false)
			all, y := fenced(n, i%5)
			var sum, size, products, about float64
			for j := range a {
				e := math.Exp(scale*float64(a[j]) - shift)
				sum, size = sum+e, size+e
				products, about = products+float64(a[j])*float64(g[j]), about+math.Abs(float64(a[j])*float64(g[j]))
			}
			same(t, "Dot", n, k.Dot(a, g), products, about, 1e-14)
			same(t, "ExpSum", n, k.ExpSum(y, a, scale, shift), sum, size, 1.2e-7)
			intact(t, "ExpSum", all, n, i%5)
			p, dp := append([]float32(nil), a...), append([]float32(nil), g...)
			k.ExpGrad(p, dp, scale, shift, d, factor)
			for j := range a {
				e := math.Exp(scale*float64(a[j]) - shift)
				if !near(y[j], e, 2, 0) || y[j] != p[j] {
					t.Fatalf("ExpSum and ExpGrad of %v are %v and %v, want %v (element %d of %d)", a[j], y[j], p[j], e, j, n)
				}
				if want := e * (float64(g[j]) - d) * factor; !near(dp[j], want, 5, 1e-7) {
					t.Fatalf("ExpGrad's gradient at %v, %v is %v, want %v (element %d of %d)", a[j], g[j], dp[j], want, j, n)
				}
			}
		}
	})
}

// An infinity or a NaN among scores stays with its element, and is in the sum.
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

// Rows of a matrix inside of a larger one; what lies between and behind them stays.
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
