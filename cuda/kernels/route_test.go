package kernels

import (
	"fmt"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
)

var routers = []cpu.RouteShape{
	{Rows: 1, Experts: 1, Choices: 1, Scale: 1},
	{Rows: 9, Experts: 8, Choices: 2, Share: true, Scale: 1},
	{Rows: 5, Experts: 40, Choices: 6, Scale: 2.5, Sigmoid: true, Share: true, Eps: 1e-20, Groups: 8, Best: 3},
	{Rows: 3, Experts: 64, Choices: 4, Scale: 1, Groups: 4, Best: 2},
	{Rows: 2, Experts: 512, Choices: 8, Scale: 16, Sigmoid: true},
}

// outputs returns a router's outputs, some of them equal, so that the first of these must be chosen.
func (b bench) outputs(s cpu.RouteShape) []float64 {
	x := b.draw(s.Rows*s.Experts, "x")
	for i := range x {
		if i%3 == 0 {
			x[i] = 1.5
		}
	}
	return x
}

func TestRoute(t *testing.T) {
	inEachType(t, "route", func(b bench) {
		for _, s := range routers {
			for _, biased := range []bool{false, true} {
				x, n := b.outputs(s), s.Rows*s.Choices
				var bias []float64
				var arg any
				if biased {
					bias = b.draw(s.Experts, "bias")
					arg = b.buffer(bias)
				}
				want, chosen := make([]float64, n), make([]int32, n)
				cpu.Table[float64]().Route(want, chosen, x, bias, s)
				w, index := b.buffer(nans(n)), ints(make([]int32, n))
				b.run("route", s.Rows, s.Experts, w, index, b.buffer(x), arg, s.Rows, s.Experts, s.Choices,
					flag(s.Sigmoid), flag(s.Share), s.Scale, s.Eps, s.Groups, s.Best)
				if got := intsOf(index); !slices.Equal(got, chosen) {
					b.Errorf("route of %v chose %v, want %v", s, got, chosen)
				}
				b.near(b.T, fmt.Sprint("route", s), b.values(w), want, 8, s.Scale)
			}
		}
	})
}

func TestRouteGrad(t *testing.T) {
	inEachType(t, "route_grad", func(b bench) {
		for _, s := range routers {
			x, n := b.outputs(s), s.Rows*s.Choices
			w, chosen, dw := make([]float64, n), make([]int32, n), b.draw(n, "dw")
			k := cpu.Table[float64]()
			k.Route(w, chosen, x, nil, s)
			w = b.values(b.buffer(w))
			want := make([]float64, len(x))
			k.RouteGrad(want, dw, x, w, chosen, s)
			dx := b.buffer(nans(len(x)))
			b.run("route_grad", s.Rows, s.Experts, dx, b.buffer(dw), b.buffer(x), b.buffer(w), ints(chosen), s.Rows,
				s.Experts, s.Choices, flag(s.Sigmoid), flag(s.Share), s.Scale, s.Eps)
			b.near(b.T, fmt.Sprint("route_grad", s), b.values(dx), want, 8, s.Scale)
		}
	})
}

func TestBalance(t *testing.T) {
	inEachType(t, "balance", func(b bench) {
		a, k := b.computed(), cpu.Table[float64]()
		for _, s := range []cpu.BalanceShape{{Groups: 1, Tokens: 1, Experts: 1, Scale: 1}, {Groups: 3, Tokens: 7,
			Experts: 8, Scale: 0.01}, {Groups: 2, Tokens: 5, Experts: 70, Sigmoid: true, Scale: 0.5}} {
			rows := s.Groups * s.Tokens
			x, n, dy := b.draw(rows*s.Experts, "x"), make([]float64, s.Groups*s.Experts), a.draw(s.Groups, "dy")
			for i := range n {
				n[i] = float64(i * 7 % 11)
			}
			want := make([]float64, s.Groups)
			k.Balance(want, x, n, s)
			each := a.buffer(nans(rows))
			b.run("balance", rows, s.Experts, each, b.buffer(x), a.buffer(n), s.Groups, s.Tokens, s.Experts,
				flag(s.Sigmoid), s.Scale)
			got := make([]float64, s.Groups)
			for i, y := range a.values(each) {
				got[i/s.Tokens] += y
			}
			a.near(b.T, fmt.Sprint("balance", s), got, want, 8, 10*s.Scale)

			dx, grad := b.buffer(nans(len(x))), make([]float64, len(x))
			k.BalanceGrad(grad, dy, x, n, s)
			b.run("balance_grad", rows, s.Experts, dx, a.buffer(dy), b.buffer(x), a.buffer(n), s.Groups, s.Tokens,
				s.Experts, flag(s.Sigmoid), s.Scale)
			b.near(b.T, fmt.Sprint("balance_grad", s), b.values(dx), grad, 8, 10*s.Scale)
		}
	})
}
