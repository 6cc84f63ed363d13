package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/planc-dev/planc/runtime/num"
)

// drawBF16 is draw in bfloat16 between NaNs, and the same numbers as float32.
func drawBF16(seed int64, n int) (x []num.BF16, wide []float32) {
	const guard = 67 // odd: the inner part does not start at a multiple of a vector, nor of a pair
	all := make([]num.BF16, n+2*guard)
	for i := range all {
		all[i] = num.ToBF16(float32(math.NaN()))
	}
	x, wide = all[guard:guard+n:guard+n], draw[float32](seed, n)
	for i, v := range wide {
		x[i] = num.ToBF16(v)
		wide[i] = x[i].Wide()
	}
	return x, wide
}

// product16 is a bfloat16 matmul and its expected result.
type product16 struct {
	m, n, k     int
	ta, tb, acc bool
	a, b        []num.BF16
	before      []float32
	want        []float64
}

func newProduct16(m, n, k, bits int) product16 {
	p := product16{m: m, n: n, k: k, ta: bits&1 > 0, tb: bits&2 > 0, acc: bits&4 > 0, before: draw[float32](3, m*n)}
	a, aw := drawBF16(1, m*k)
	b, bw := drawBF16(2, k*n)
	p.a, p.b, p.want = a, b, start(p.before, p.acc)
	naiveMatMul(p.want, aw, bw, m, n, k, p.ta, p.tb)
	return p
}

func (p *product16) check(t *testing.T) {
	t.Helper()
	what := fmt.Sprint("matmul bf16 ", p.m, p.n, p.k, p.ta, p.tb, p.acc)
	c, all := guarded(p.before)
	Table[float32]().MatMulBF16(c, p.a, p.b, p.m, p.n, p.k, p.ta, p.tb, p.acc)
	near(t, what, c, p.want, 1e-6*math.Sqrt(float64(p.k))*math.Sqrt(float64(p.k)+10))
	intact(t, what, c, all)
	p.checkRounded(t, what)
	exact := wide(p.before)
	Table[float64]().MatMulBF16(exact, p.a, p.b, p.m, p.n, p.k, p.ta, p.tb, p.acc)
	near(t, what+" in float64", exact, p.want, 1e-12)
}

// checkRounded compares MatMulRoundBF16 with the rounded result of MatMulBF16.
func (p *product16) checkRounded(t *testing.T, what string) {
	t.Helper()
	sums := make([]float32, p.m*p.n)
	Table[float32]().MatMulBF16(sums, p.a, p.b, p.m, p.n, p.k, p.ta, p.tb, false)
	const guard = 5
	all := make([]num.BF16, p.m*p.n+2*guard)
	for i := range all {
		all[i] = num.ToBF16(7.5)
	}
	c := all[guard : guard+p.m*p.n]
	Table[float32]().MatMulRoundBF16(c, p.a, p.b, p.m, p.n, p.k, p.ta, p.tb)
	for i, v := range all {
		want := num.ToBF16(7.5)
		if at := i - guard; at >= 0 && at < len(sums) {
			want = num.ToBF16(sums[at])
		}
		if v != want {
			t.Fatalf("%s: element %d is rounded to %v, want %v", what, i-guard, v.Wide(), want.Wide())
		}
	}
}

// bfloat16 matmuls with all transpositions, on one and two threads, equal the loop in float64: odd sizes,
// edges of panels and blocks, operands between NaNs.
func TestMatMulBF16(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	size := func() int { return []int{1 + r.Intn(5), 1 + r.Intn(70), 1 + r.Intn(200)}[r.Intn(3)] }
	var cases []product16
	for range 40 {
		cases = append(cases, newProduct16(size(), size(), size(), r.Intn(8)))
	}
	for _, z := range [][3]int{{1, 1100, 5}, {300, 40, 2}, {130, 33, 401}, {49, 129, 1}, {61, 70, 2051},
		{515, 5, 2050}, {5, 7, 0}} {
		for bits := range 8 {
			cases = append(cases, newProduct16(z[0], z[1], z[2], bits))
		}
	}
	for _, threads := range []int{1, 2} {
		withThreads(t, threads, func(t *testing.T) {
			each(t, func(t *testing.T) {
				for _, p := range cases {
					p.check(t)
				}
			})
		})
	}
}

// Groups are independent matmuls.
func TestMatMulEachBF16(t *testing.T) {
	const groups, m, n, k = 3, 5, 7, 9
	a, _ := drawBF16(1, groups*m*k)
	b, _ := drawBF16(2, groups*k*n)
	got, want := make([]float32, groups*m*n), make([]float32, m*n)
	tab := Table[float32]()
	tab.MatMulEachBF16(got, a, b, groups, m, n, k, false, true, false)
	for g := range groups {
		tab.MatMulBF16(want, a[g*m*k:][:m*k], b[g*k*n:][:k*n], m, n, k, false, true, false)
		near(t, name("group ", g), got[g*m*n:][:m*n], wide(want), 0)
	}
}

// An infinity or a NaN in an operand reaches only the elements that depend on it. Numbers near the ends of
// the range neither overflow nor vanish.
func TestMatMulBF16NotFinite(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k, row, col, p = 29, 45, 401, 17, 40, 400
		for _, bad := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
			for bits := range 4 {
				ta, tb := bits&1 > 0, bits&2 > 0
				a, _ := drawBF16(1, m*k)
				b, _ := drawBF16(2, n*k)
				ai, bi := row*k+p, p*n+col
				if ta {
					ai = p*m + row
				}
				if tb {
					bi = col*k + p
				}
				a[ai], b[bi] = num.ToBF16(bad), num.ToBF16(bad)
				c := make([]float32, m*n)
				Table[float32]().MatMulBF16(c, a, b, m, n, k, ta, tb, false)
				for i, v := range c {
					hit := i/n == row || i%n == col
					if finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0); finite == hit {
						t.Fatalf("with %v, %v %v: element %d,%d is %v", bad, ta, tb, i/n, i%n, v)
					}
				}
			}
		}
		for _, x := range []float32{1e38, 1e-37, 3} {
			a := []num.BF16{num.ToBF16(x), num.ToBF16(-x)}
			one := num.ToBF16(1)
			c := make([]float32, 1)
			Table[float32]().MatMulBF16(c, a, []num.BF16{one, num.ToBF16(0.5)}, 1, 1, 2, false, false, false)
			if want := a[0].Wide() + 0.5*a[1].Wide(); math.Abs(float64(c[0]/want)-1) > 1e-6 {
				t.Errorf("%v - %v/2 is %v", x, x, c[0])
			}
		}
	})
}

// The bits of an element depend only on its row and column, for any number of threads.
func TestMatMulBF16ElementAlone(t *testing.T) {
	each(t, func(t *testing.T) {
		const m, n, k = 301, 203, 2407
		a, _ := drawBF16(1, m*k)
		bt, _ := drawBF16(2, n*k)
		whole := make([]float32, m*n)
		Table[float32]().MatMulBF16(whole, a, bt, m, n, k, false, true, false)
		for _, threads := range []int{1, 2, 3, 7} {
			withThreads(t, threads, func(t *testing.T) {
				const i0, j0, rows, cols = 33, 100, 250, 101
				part := make([]float32, rows*cols)
				Table[float32]().MatMulBF16(part, a[i0*k:], bt[j0*k:], rows, cols, k, false, true, false)
				for i, v := range part {
					if want := whole[(i0+i/cols)*n+j0+i%cols]; v != want {
						t.Fatalf("%d threads: element %d of the part is %v, in the whole %v", threads, i, v, want)
					}
				}
			})
		}
	})
}
