package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestMatMulEach(t *testing.T) { both(t, testMatMulEach[float32], testMatMulEach[float64]) }

// Empty slots are rows of 0, between others and at the end of an expert's rows.
func testMatMulEach[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	const groups, rows, in, out = 5, 40, 11, 13
	empty := func(g, i int) bool {
		return g == 4 || g == 1 && i >= 7 || g == 2 && i >= 3 && i < 25 || g == 3 && (i < 20 || i == 30)
	}
	a, w, dy := draw[F](1, groups*rows*in), draw[F](2, groups*in*out), draw[F](3, groups*rows*out)
	for g := range groups {
		for i := range rows {
			if empty(g, i) {
				clear(a[(g*rows+i)*in:][:in])
			}
		}
	}
	wt := make([]F, len(w)) // each expert's w, transposed
	for g := range groups {
		for i := range in {
			for j := range out {
				wt[(g*out+j)*in+i] = w[(g*in+i)*out+j]
			}
		}
	}
	for _, acc := range accs {
		c, d := draw[F](4, groups*rows*out), draw[F](5, groups*in*out)
		e := slices.Clone(c)
		wantC, wantD := start(c, acc), start(d, acc)
		for x := range groups * rows * in * out {
			j, i, r, g := x%out, x/out%in, x/out/in%rows, x/out/in/rows
			wantC[(g*rows+r)*out+j] += float64(a[(g*rows+r)*in+i]) * float64(w[(g*in+i)*out+j])
			wantD[(g*in+i)*out+j] += float64(a[(g*rows+r)*in+i]) * float64(dy[(g*rows+r)*out+j])
		}
		k.MatMulEach(c, a, w, groups, rows, out, in, false, false, acc)
		near(t, name("rows ", acc), c, wantC, tol)
		k.MatMulEach(e, a, wt, groups, rows, out, in, false, true, acc)
		near(t, name("rows of a transpose ", acc), e, wantC, tol)
		k.MatMulEach(d, a, dy, groups, in, out, rows, true, false, acc)
		near(t, name("sums ", acc), d, wantD, 10*tol)
	}
}

func TestBalance(t *testing.T) { both(t, testBalance[float32], testBalance[float64]) }

func testBalance[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	for _, s := range []BalanceShape{{Groups: 3, Tokens: 7, Experts: 5, Scale: 0.3}, {Groups: 1, Tokens: 20,
		Experts: 600, Scale: 2}, {Groups: 2, Tokens: 4, Experts: 6, Scale: 0.7, Sigmoid: true}} {
		x, index := draw[F](1, s.Groups*s.Tokens*s.Experts), make([]int32, s.Groups*s.Tokens*2)
		for i := range index {
			index[i] = int32(i*i+3*i) % int32(s.Experts)
		}
		n, dy := make([]F, s.Groups*s.Experts), draw[F](2, s.Groups)
		k.Tally(n, index, s.Groups, s.Tokens*2, s.Experts)
		want, counts := make([]float64, s.Groups), make([]float64, len(n))
		for i, e := range index {
			counts[i/(2*s.Tokens)*s.Experts+int(e)]++
		}
		near(t, "tally", n, counts, 0)
		slope := make([]float64, len(x))
		for i := range s.Groups * s.Tokens {
			g, row := i/s.Tokens, wide(x[i*s.Experts:][:s.Experts])
			at := func() float64 { return s.Scale * balanceOf(row, counts[g*s.Experts:], s.Sigmoid) }
			want[g] += at()
			for e := range row {
				slope[i*s.Experts+e] = float64(dy[g]) * slopeOf(&row[e], at)
			}
		}
		y, dx := draw[F](3, s.Groups), draw[F](4, len(x))
		k.Balance(y, x, n, s)
		near(t, fmt.Sprintf("balance %+v", s), y, want, 20*tol)
		k.BalanceGrad(dx, dy, x, n, s)
		near(t, fmt.Sprintf("its gradient %+v", s), dx, slope, max(20*tol, 1e-8))
	}
}

// balanceOf returns the mean of n, weighted by a token's scores.
func balanceOf(x, n []float64, sigmoid bool) float64 {
	sum, all := 0.0, 0.0
	for e, v := range x {
		p := math.Exp(v)
		if sigmoid {
			p /= 1 + p
		}
		sum, all = sum+p*n[e], all+p
	}
	return sum / all
}

// slopeOf returns the derivative of f with respect to *x, from four points around it.
func slopeOf(x *float64, f func() float64) float64 {
	const h = 1e-3
	was := *x
	at := func(k float64) float64 { *x = was + k*h; return f() }
	d := (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
	*x = was
	return d
}

func TestLimitChoices(t *testing.T) {
	index := []int32{0, 1, 0, 2, 0, 1, 2, 0, 1, 1, 1, 0}
	counts := make([]int32, len(index))
	LimitChoices(counts, index, 2, 6, 3, 2)
	if want := []int32{0, 1, 0, 2, -1, 1, 2, 0, 1, 1, -2, 0}; !slices.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
	if n := Rounds(counts, 3, 1); n != 4 {
		t.Errorf("%d rounds, want 4: of expert 1, dropped choices do not count", n)
	}
	for _, experts := range []int{16, 256, maxExperts} {
		if n := testing.AllocsPerRun(10, func() { LimitChoices(counts, index, 2, 6, experts, 2) }); n != 0 {
			t.Errorf("of %d experts: %v objects a call", experts, n)
		}
	}
	LimitChoices(counts, index, 2, 6, maxExperts+1, 2)
	if counts[10] != -2 {
		t.Errorf("more experts than slots: %v", counts)
	}
}

func TestPlacesOfRounds(t *testing.T) { both(t, testPlaces[float32], testPlaces[float64]) }

// Over all rounds each choice has one slot, in the order of tokens. Dropped choices have none.
func testPlaces[F Float](t *testing.T, _ float64) {
	k := Table[F]()
	index := []int32{2, 0, 2, 1, 0, 2, -3, 2, 1, 2}
	s := SlotShape{Tokens: 5, Choices: 2, Experts: 3, Slots: 2, Width: 3}
	x, w := draw[F](1, s.Tokens*s.Width), draw[F](2, len(index))
	sum, back := draw[F](3, len(x)), draw[F](4, len(w))
	for s.Round = range Rounds(index, s.Experts, s.Slots) {
		sent, part := draw[F](5, s.Experts*s.Slots*s.Width), draw[F](6, s.Experts*s.Slots)
		k.Dispatch(sent, x, index, s)
		k.Deal(part, w, index, s)
		k.Combine(sum, sent, index, s)
		k.Collect(back, part, index, s)
	}
	wantSum, wantBack := make([]float64, len(x)), wide(w)
	for i, e := range index {
		if e < 0 {
			wantBack[i] = 0
			continue
		}
		for j := range s.Width {
			wantSum[i/2*s.Width+j] += float64(x[i/2*s.Width+j])
		}
	}
	near(t, "combined", sum, wantSum, 1e-6)
	near(t, "collected", back, wantBack, 0)
}

// A changed choice has the weights of the new experts.
func TestRouteChosen(t *testing.T) { both(t, testRouteChosen[float32], testRouteChosen[float64]) }

func testRouteChosen[F Float](t *testing.T, tol float64) {
	const rows, experts, choices = 5, 7, 3
	x, w, index := draw[F](1, rows*experts), make([]F, rows*choices), make([]int32, rows*choices)
	notices := 0
	s := RouteShape{Rows: rows, Experts: experts, Choices: choices, Scale: 1.5, Share: true,
		Chosen: func(row int, chosen []int32) {
			notices++
			for c := range chosen {
				chosen[c] = int32(row+2*c) % experts
			}
		}}
	Table[F]().Route(w, index, x, nil, s)
	want := make([]float64, len(w))
	for i := range rows {
		sum := 0.0
		for c := range choices {
			want[i*choices+c] = 1.5 * math.Exp(float64(x[i*experts+(i+2*c)%experts]))
			sum += want[i*choices+c] / 1.5
		}
		for c := range choices {
			want[i*choices+c] /= sum
		}
	}
	if notices != rows {
		t.Errorf("%d choices reported, want %d", notices, rows)
	}
	near(t, "weights of what was chosen instead", w, want, tol)
}

// Matmuls over slots of which all, a half and a quarter have a token measure the cost of empty slots.
func BenchmarkMatMulEach(b *testing.B) {
	k := Table[float32]()
	const groups, tokens, in, out = 8, 128, 256, 512
	for _, places := range []int{tokens, 2 * tokens, 4 * tokens} {
		x, dy := make([]float32, groups*places*in), make([]float32, groups*places*out)
		w, y := draw[float32](1, groups*in*out), make([]float32, groups*places*out)
		for g := range groups {
			copy(x[g*places*in:], draw[float32](2, tokens*in))
			copy(dy[g*places*out:], draw[float32](3, tokens*out))
		}
		b.Run(fmt.Sprintf("rows/%d", places), func(b *testing.B) {
			for range b.N {
				k.MatMulEach(y, x, w, groups, places, out, in, false, false, false)
			}
		})
		b.Run(fmt.Sprintf("sums/%d", places), func(b *testing.B) {
			for range b.N {
				k.MatMulEach(w, x, dy, groups, in, out, places, true, false, false)
			}
		})
	}
}
