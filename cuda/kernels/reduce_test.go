package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
)

func TestSums(t *testing.T) {
	inEachType(t, "sum_rows", func(b bench) {
		a, k := b.computed(), cpu.Table[float64]()
		for _, s := range append(sizes, [2]int{333, 264}, [2]int{701, 33}) {
			rows, cols := s[0], s[1]
			x := b.draw(rows*cols, "x")
			old := a.draw(cols, "old")
			want := slices.Clone(old)
			k.SumRows(want, x, rows, cols, true)
			part, parts, acc := a.buffer(old), Parts(rows), 1
			if parts > 1 {
				part, acc = a.buffer(nans(parts*cols)), 0
			}
			b.run("sum_rows", rows, cols, part, b.buffer(x), rows, cols, acc)
			got := a.values(part)
			if parts > 1 {
				got = sumParts(old, got, parts)
			}
			a.near(b.T, fmt.Sprint("sum_rows", s), got, want, 4, float64(rows))

			old = a.draw(rows, "old")
			want = slices.Clone(old)
			k.SumCols(want, x, rows, cols, true)
			out := a.buffer(old)
			b.run("sum_cols", rows, cols, out, b.buffer(x), rows, cols, 1)
			a.near(b.T, fmt.Sprint("sum_cols", s), a.values(out), want, 4, float64(cols))
			k.SumCols(want, x, rows, cols, false)
			out = a.buffer(nans(rows))
			b.run("sum_cols", rows, cols, out, b.buffer(x), rows, cols, 0)
			a.near(b.T, fmt.Sprint("sum_cols", s), a.values(out), want, 4, float64(cols))
		}
	})
}

func TestSumRowsEach(t *testing.T) {
	inEachType(t, "sum_rows_each", func(b bench) {
		a := b.computed()
		k := cpu.Table[float64]()
		for _, s := range [][3]int{{1, 1, 1}, {5, 3, 33}, {2, 7, 1100}, {9, 1, 4}} {
			n, rows, cols := s[0], s[1], s[2]
			x, old := b.draw(n*rows*cols, "x"), a.draw(n*cols, "old")
			for acc, first := range [][]float64{nans(n * cols), old} {
				want, out := slices.Clone(old), a.buffer(first)
				k.SumRowsEach(want, x, n, rows, cols, acc > 0)
				b.run("sum_rows_each", n, cols, out, b.buffer(x), n, rows, cols, acc)
				a.near(b.T, fmt.Sprint("sum_rows_each", s, acc), a.values(out), want, 4, float64(rows))
			}
		}
	})
}

func TestSumOfSquares(t *testing.T) {
	inEachType(t, "sum_squares", func(b bench) {
		double := elems[1]
		for _, n := range []int{1, 7, 1024, 20011} {
			for _, skew := range []int{0, b.size} {
				v := b.draw(n, "x")
				x := b.buffer(v)
				x.Skew = skew
				part, sum := double.buffer(nans(Blocks(n))), double.buffer(nans(1))
				b.run("sum_squares", 1, n, part, x, int64(n))
				b.run("sum_parts", 1, n, sum, part, Blocks(n))
				double.near(b.T, fmt.Sprint("squares of ", n), double.values(sum),
					[]float64{cpu.Table[float64]().SumSquares(v)}, float64(n), 4*float64(n))
			}
		}
	})
}

func TestNotFinite(t *testing.T) {
	inEachType(t, "not_finite", func(b bench) {
		for _, n := range []int{1, 9, 5000} {
			for _, bad := range []float64{0, math.NaN(), math.Inf(1), math.Inf(-1)} {
				v := b.draw(n, "x")
				v[n-1] = bad
				flag := ints([]int32{0})
				b.run("not_finite", 1, n, flag, b.buffer(v), int64(n))
				if got := intsOf(flag)[0] == 1; got != (bad != 0) {
					b.Errorf("not_finite of %d with %v is %v", n, bad, got)
				}
			}
		}
	})
}

// The kernel decides like runtime.ClipGradients.
func TestClip(t *testing.T) {
	inEachType(t, "clip", func(b bench) {
		for _, c := range []struct{ squares, bad, scale, limit, norm, factor, skip, unscaled float64 }{
			{4, 0, 1, 1, 2, 1 / (2 + 1e-6), 0, 0},
			{4, 0, 1, 0, 2, 1, 0, 0},
			{4, 0, 1, 0, 2, 1, 1, 2},
			{0.25, 0, 2, 1, 0.25, 0.5, 0, 0},
			{1024, 0, 8, 1, 4, 1 / (4 + 1e-6) / 8, 0, 0},
			{1, 3, 1, 1, 1, 1 / (1 + 1e-6), 1, 0},
			{math.Inf(1), 0, 1, 1, math.Inf(1), 0, 1, 0},
			{math.NaN(), 0, 1, 1, math.NaN(), 1, 1, 0},
		} {
			out := b.buffer(nans(3))
			b.run("clip", 1, 1, out, b.buffer([]float64{c.squares, c.bad, c.unscaled}),
				b.buffer([]float64{c.scale}), c.limit)
			got := b.values(out)
			b.near(b.T, fmt.Sprint(c), got[:1], []float64{c.norm}, 1, 1)
			b.near(b.T, fmt.Sprint(c), got[2:], []float64{c.skip}, 0, 0)
			if c.squares == c.squares {
				b.near(b.T, fmt.Sprint(c), got[1:2], []float64{c.factor}, 2, 1)
			}
		}
	})
}

// The loss scale moves like the runtime's: through bad steps with and without consequence, down to the
// minimum, and up again.
func TestScaler(t *testing.T) {
	inEachType(t, "scaler", func(b bench) {
		const window, hysteresis, least = 3, 2, 4
		for _, consecutive := range []bool{false, true} {
			scale, good, free := 32.0, 0, hysteresis-1
			state := b.buffer([]float64{scale, 0, hysteresis - 1})
			for i, bad := range []bool{true, false, true, true, false, false, false, true, true, true, true, true,
				false, false, false, false, false, false} {
				if grows := false; bad {
					good = 0
					if free > 0 {
						free--
					} else {
						scale = max(scale/2, least)
					}
				} else {
					good++
					grows = good%window == 0
					if grows || consecutive {
						free = hysteresis - 1
					}
					if grows {
						scale *= 2
					}
				}
				b.run("scaler", 1, 1, state, b.buffer([]float64{0, 0, float64(flag(bad))}), window, hysteresis,
					float64(least), flag(consecutive))
				b.near(b.T, fmt.Sprint("state after step ", i, consecutive), b.values(state),
					[]float64{scale, float64(good), float64(free)}, 0, 0)
			}
		}
		top := b.buffer([]float64{0x1p127, window - 1, 0})
		b.run("scaler", 1, 1, top, b.buffer([]float64{0, 0, 0}), window, hysteresis, float64(least), 0)
		b.near(b.T, "at the top", b.values(top)[:1], []float64{0x1p127}, 0, 0)
	})
}
