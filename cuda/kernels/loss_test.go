package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
)

// logits are rows of a part of the vocabulary: n ids from lo on, of which valid exist. Labels lie inside
// it, outside, and at its edges.
type logits struct{ rows, cols, valid, lo int }

var logitShapes = []logits{{1, 1, 1, 0}, {5, 40, 33, 100}, {9, 77, 77, 0}, {3, 1032, 1029, 7}, {2, 2051, 2050, 50000},
	{4, 16, 0, 3}, {2, 8200, 8197, 5}}

func (s logits) labels() []int32 {
	ids := make([]int32, s.rows)
	for i := range ids {
		ids[i] = int32([]int{s.lo, s.lo + s.valid - 1, s.lo - 1, s.lo + s.valid, -1}[i%5])
	}
	return ids
}

// draw returns rows with -Inf, NaN and numbers whose exp would overflow.
func (s logits) draw(b bench) []float64 {
	x := b.draw(s.rows*s.cols, "logits")
	row := func(i int) []float64 { return x[i*s.cols:][:s.cols] }
	for i := range s.rows {
		switch v := row(i); i % 5 {
		case 0:
			if i > 0 || s.rows == 3 { // numbers whose exp would underflow
				for j := range v {
					v[j] -= 300
				}
			}
		case 1:
			v[0] = math.Inf(-1)
			for j := range v {
				v[j] += 300
			}
		case 2:
			for j := range v {
				v[j] = math.Inf(-1)
			}
		case 3:
			v[len(v)/2] = math.NaN()
		case 4:
			v[0] = math.Inf(1)
		}
	}
	return b.values(b.buffer(x))
}

func TestLogSumExpAndPick(t *testing.T) {
	inEachType(t, "logsumexp", func(b bench) {
		a, k := b.computed(), cpu.Table[float64]()
		for _, s := range logitShapes {
			x, ids := s.draw(b), s.labels()
			l, y := make([]float64, s.rows), make([]float64, s.rows)
			k.LogSumExp(l, x, s.rows, s.cols, s.valid)
			k.Pick(y, x, ids, s.rows, s.cols, s.lo, s.valid)
			lb, yb := a.buffer(nans(s.rows)), a.buffer(nans(s.rows))
			check := func(what string) {
				a.near(b.T, fmt.Sprint(what, s, " l"), a.values(lb), l, 8, 1)
				a.near(b.T, fmt.Sprint(what, s, " y"), a.values(yb), y, 0, 0)
			}
			b.run("logsumexp_pick", s.rows, s.cols, lb, yb, b.buffer(x), ints(ids), s.rows, s.cols, s.valid,
				s.lo, s.valid)
			check("logsumexp_pick")
			lb, yb = a.buffer(nans(s.rows)), a.buffer(nans(s.rows))
			b.run("logsumexp", s.rows, s.cols, lb, b.buffer(x), s.rows, s.cols, s.valid)
			b.run("pick", s.rows, s.cols, yb, b.buffer(x), ints(ids), s.rows, s.cols, s.lo, s.valid)
			check("alone")
		}
	})
}

func TestCrossEntropy(t *testing.T) {
	inEachType(t, "cross_entropy", func(b bench) {
		a, k := b.computed(), cpu.Table[float64]()
		for _, s := range logitShapes {
			if s.valid == 0 {
				continue
			}
			s.lo = 0
			x, ids, dl := s.draw(b), s.labels(), a.draw(s.rows, "dl")
			dl = a.values(a.buffer(dl))
			ce, dx := make([]float64, s.rows), make([]float64, s.rows*s.cols)
			k.CrossEntropy(ce, dx, dl, x, ids, s.rows, s.cols, s.valid)
			ceb, dxb := a.buffer(nans(s.rows)), b.buffer(x) // in place of the logits
			b.run("cross_entropy", s.rows, s.cols, ceb, dxb, a.buffer(dl), dxb, ints(ids), s.rows, s.cols,
				s.valid)
			a.near(b.T, fmt.Sprint("cross_entropy", s), a.values(ceb), ce, 8, 8)
			b.near(b.T, fmt.Sprint("its gradient", s), b.values(dxb), dx, 16, 2)
			dxb = b.buffer(nans(s.rows * s.cols))
			b.run("cross_entropy", s.rows, s.cols, ceb, dxb, a.buffer(dl), b.buffer(x), ints(ids), s.rows, s.cols,
				s.valid)
			b.near(b.T, fmt.Sprint("its gradient beside", s), b.values(dxb), dx, 16, 2)
		}
	})
}

func TestLogSumExpAndPickGrad(t *testing.T) {
	inEachType(t, "logsumexp_grad", func(b bench) {
		a, k := b.computed(), cpu.Table[float64]()
		for _, s := range logitShapes {
			n := s.rows * s.cols
			x, ids := s.draw(b), s.labels()
			dl, dy, l := a.draw(s.rows, "dl"), a.draw(s.rows, "dy"), make([]float64, s.rows)
			k.LogSumExp(l, x, s.rows, s.cols, s.valid)
			l = a.values(a.buffer(l))
			first, second, both := make([]float64, n), make([]float64, n), make([]float64, n)
			k.LogSumExpGrad(first, dl, x, l, s.rows, s.cols, s.valid)
			k.PickGrad(second, dy, ids, s.rows, s.cols, s.lo, s.valid)
			for i := range both {
				both[i] = first[i] + second[i]
			}
			dlb, dyb, lb := a.buffer(dl), a.buffer(dy), a.buffer(l)
			check := func(what string, want []float64, args ...any) {
				dx := b.buffer(x)
				for i := range args {
					if args[i] == "x" {
						args[i] = dx
					}
				}
				b.run(what, s.rows, s.cols, append([]any{dx}, args...)...)
				b.near(b.T, fmt.Sprint(what, s), b.values(dx), want, 16, 2)
			}
			check("logsumexp_grad", first, dlb, "x", lb, s.rows, s.cols, s.valid)
			check("pick_grad", second, dyb, ints(ids), s.rows, s.cols, s.lo, s.valid)
			check("logsumexp_pick_grad", both, dlb, dyb, "x", lb, ints(ids), s.rows, s.cols, s.valid, s.lo, s.valid)
		}
	})
}
