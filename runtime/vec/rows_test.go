package vec_test

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/vec"
)

// same compares a sum with its loop in float64, within tol of the terms' magnitudes.
func same(t *testing.T, what string, n int, got, want, size, tol float64) {
	t.Helper()
	if got == want || got != got && want != want {
		return
	}
	if !(math.Abs(got-want) <= tol*size) {
		t.Fatalf("%s of %d is %v, want %v within %v", what, n, got, want, tol*size)
	}
}

func TestSums(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for _, n := range lengths {
			for _, with := range []bool{false, true} {
				x := draw(3, n, with)
				var sum, size, squares, exps float64
				top := float32(-7)
				for _, v := range x {
					sum, size, squares = sum+float64(v), size+math.Abs(float64(v)), squares+float64(v)*float64(v)
					exps += math.Exp(float64(v - 2))
					if v > top {
						top = v
					}
				}
				same(t, "Sum", n, k.Sum(x), sum, size, 1e-14)
				same(t, "SumSquares", n, k.SumSquares(x), squares, squares, 1e-14)
				if exps < 1e38 || with {
					same(t, "SumExp", n, k.SumExp(x, 2), clampExp(x, exps), exps, 1.2e-7)
				}
				if got := k.Largest(x, -7); got != top {
					t.Fatalf("Largest of %d is %v, want %v", n, got, top)
				}
			}
		}
	})
}

// clampExp returns a sum of exponentials as float32s have it: infinite if one of them is.
func clampExp(x []float32, sum float64) float64 {
	for _, v := range x {
		if math.IsInf(float64(float32(math.Exp(float64(v-2)))), 1) {
			return sum + math.Inf(1)
		}
	}
	return sum
}

// Rows of a norm, each with its own mean and deviation, equal a loop in float64.
func TestNorms(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		const rows, eps, base = 3, 1e-3, 1
		for i, n := range lengths[1:] {
			x, dy, gain, bias := draw(4, rows*n, false), draw(7, rows*n, false), draw(5, n, false), draw(6, n, false)
			mean, rstd, size := make([]float32, rows), make([]float32, rows), make([]float32, rows)
			k.Moments(mean, rstd, x, n, eps)
			k.MeanSquares(size, x, n, eps)
			for r := range rows {
				testMoments(t, x[r*n:][:n], mean[r], rstd[r], size[r], eps)
			}
			hat := func(j int) float64 { return (float64(x[j]) - float64(mean[j/n])) * float64(rstd[j/n]) }
			grad := func(centred float64) func(j int) float64 {
				plain, along := make([]float64, rows), make([]float64, rows)
				for j := range x {
					g := float64(dy[j]) * (base + float64(gain[j%n])) / float64(n)
					plain[j/n] += centred * g
					along[j/n] += g * hat(j)
				}
				return func(j int) float64 {
					return float64(rstd[j/n]) * (float64(dy[j])*(base+float64(gain[j%n])) - plain[j/n] -
						hat(j)*along[j/n])
				}
			}
			for _, c := range []struct {
				name string
				call func(y []float32)
				want func(j int) float64
			}{
				{"Norm", func(y []float32) {
					k.Norm(y, x, gain, mean, rstd, base)
				}, func(j int) float64 {
					return hat(j) * (base + float64(gain[j%n]))
				}},
				{"NormBias", func(y []float32) { k.NormBias(y, x, gain, bias, mean, rstd, base) },
					func(j int) float64 { return hat(j)*(base+float64(gain[j%n])) + float64(bias[j%n]) }},
				{"NormGrad", func(y []float32) { k.NormGrad(y, dy, x, gain, mean, rstd, base, 1) }, grad(1)},
				{"NormGrad without mean", func(y []float32) {
					k.NormGrad(y, dy, x, gain, mean, rstd, base, 0)
				}, grad(0)},
			} {
				all, y := fenced(rows*n, i%5)
				c.call(y)
				intact(t, c.name, all, rows*n, i%5)
				for j := range x {
					if want := c.want(j); !near(y[j], want, 4, 1e-5*max(1, float64(rstd[j/n]))) {
						t.Fatalf("%s: element %d of %d is %v, want %v", c.name, j, n, y[j], want)
					}
				}
			}
		}
	})
}

// testMoments compares the moments of a row with a loop.
func testMoments(t *testing.T, x []float32, mean, rstd, size, eps float32) {
	t.Helper()
	n := float64(len(x))
	var middle, square, about float64
	for _, v := range x {
		middle, square = middle+float64(v)/n, square+float64(v)*float64(v)/n
	}
	for _, v := range x {
		about += (float64(v) - middle) * (float64(v) - middle) / n
	}
	deviation := 1 / math.Sqrt(about+float64(eps))
	same(t, "Moments' mean", len(x), float64(mean), middle, 3, 1e-6)
	same(t, "Moments' deviation", len(x), float64(rstd), deviation, deviation*max(1, square*deviation*deviation), 1e-6)
	same(t, "MeanSquares", len(x), float64(size), 1/math.Sqrt(square+float64(eps)),
		1/math.Sqrt(square+float64(eps)), 1e-6)
}

func TestSumsOverRows(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for i, n := range lengths[:80:80] {
			for _, rows := range []int{0, 1, 2, 7, 64} {
				if n > 300 {
					continue
				}
				stride := n + i%3
				x, dy, mean, rstd := draw(8, rows*stride, false), draw(9, rows*stride, false), draw(10, rows, false),
					draw(11, rows, false)
				all, out := fenced(n, i%5)
				clear(out)
				all2, gain := fenced(n, i%5)
				clear(gain)
				k.SumRows(out, x, rows, stride)
				k.GainGrad(gain, dy, x, mean, rstd, stride)
				intact(t, "SumRows", all, n, i%5)
				intact(t, "GainGrad", all2, n, i%5)
				for j := range n {
					sum, along := 0.0, 0.0
					for r := range rows {
						sum += float64(x[r*stride+j])
						along += float64(dy[r*stride+j]) * (float64(x[r*stride+j]) - float64(mean[r])) *
							float64(rstd[r])
					}
					same(t, "SumRows", n, float64(out[j]), sum, 1+math.Abs(sum), 1e-6)
					same(t, "GainGrad", n, float64(gain[j]), along, 100*float64(1+rows), 1e-6)
				}
			}
		}
	})
}

func TestRotate(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for _, n := range lengths[:75:75] {
			half, rows := n+2, 3
			stride := 2*half + 1
			x, cos, sin := draw(12, rows*stride, false), draw(13, n, false), draw(14, n, false)
			y := append([]float32{}, x...)
			k.Rotate(cos, sin, y, x, rows, stride, half)
			for i := range rows {
				for j := range stride {
					at := i*stride + j
					want := float64(x[at])
					if j < n {
						want = float64(x[at])*float64(cos[j]) - float64(x[at+half])*float64(sin[j])
					} else if j >= half && j < half+n {
						want = float64(x[at])*float64(cos[j-half]) + float64(x[at-half])*float64(sin[j-half])
					}
					if !near(y[at], want, 2, 5e-6) {
						t.Fatalf("Rotate: element %d of row %d, %d pairs: %v, want %v", j, i, n, y[at], want)
					}
				}
			}
		}
	})
}

// Drop keeps the same elements as rng.Keep.
func TestDrop(t *testing.T) {
	const golden = 0x9E3779B97F4A7C15
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for _, n := range lengths {
			for _, p := range []float64{0, 0.1, 0.5, 1} {
				key, at := rng.Key(9, uint64(n)), uint64(n)*1e9+5
				x := draw(15, n, true)
				all, y := fenced(n, n%5)
				k.Drop(y, x, key+golden*(at+1), key<<32|key>>32, uint64(math.Ceil(p*(1<<53))), 1.25)
				intact(t, "Drop", all, n, n%5)
				for j, v := range x {
					want := float32(0)
					if rng.Keep(key, at+uint64(j), p) {
						want = 1.25 * v
					}
					if y[j] != want && (want == want || y[j] == y[j]) {
						t.Fatalf("Drop with %v: element %d of %d is %v, want %v", p, j, n, y[j], want)
					}
				}
			}
		}
	})
}

func TestAdam(t *testing.T) {
	c := [10]float32{0.7, 0.01, 0.9, 0.1, 0.95, 0.05, 0.999, 0.02, 1.3, 1e-4}
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for i, n := range lengths {
			var all [4][]float32
			var y [4][]float32
			in := [4][]float32{draw(16, n, false), draw(17, n, false), draw(18, n, false), draw(19, n, false)}
			for j := range y {
				all[j], y[j] = fenced(n, i%5)
				for e, v := range in[j] {
					y[j][e] = v
					if j == 3 {
						y[j][e] = v * v
					}
				}
			}
			was := append([]float32{}, y[3]...)
			k.Adam(y[0], y[1], y[2], y[3], &c)
			w := func(i int) float64 { return float64(c[i]) }
			for e := range n {
				d := float64(in[1][e])*w(0) + w(1)*float64(in[0][e])
				m := w(2)*float64(in[2][e]) + w(3)*d
				v := w(4)*float64(was[e]) + w(5)*d*d
				p := w(6)*float64(in[0][e]) - w(7)*m/(math.Sqrt(v)*w(8)+w(9))
				for j, want := range map[int]float64{0: p, 1: float64(in[1][e]), 2: m, 3: v} {
					if !near(y[j][e], want, 4, 1e-5) {
						t.Fatalf("Adam: slice %d, element %d of %d is %v, want %v", j, e, n, y[j][e], want)
					}
				}
			}
			for j := range all {
				intact(t, "Adam", all[j], n, i%5)
			}
		}
	})
}
