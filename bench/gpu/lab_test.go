//go:build cuda && linux

package main

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/num"
)

// A result with NaN gives a row like others, and is written with the other results.
func TestOffIsWritten(t *testing.T) {
	if x := trial.RelativeError([]float64{3, 4.5}, []float64{3, 4}); x != 0.1 {
		t.Errorf("%g, want half of five", x)
	}
	for _, got := range [][]float64{{math.NaN(), 1}, {math.Inf(1), 1}, {1e200, 1}, {1}} {
		m := Measured{Name: "gemm", Bound: 1, Error: trial.RelativeError(got, []float64{1, 1})}
		var r Result
		tabulateKernels(&r, []Measured{m}, rates{})
		text, err := json.Marshal(r)
		if err != nil || r.State != "failed" {
			t.Errorf("%v: %s, %v: %s", got, r.State, err, text)
		}
	}
	if x := trial.RelativeError([]float64{1}, []float64{0}); x != trial.NotANumber {
		t.Errorf("of zero: %g", x)
	}
}

// An FP8 GEMM beyond its bound, or one that could not run, is reported. The error from rounding operands has no
// bound.
func TestFP8GEMMsAreJudged(t *testing.T) {
	p := fp8GEMM{cuda.GEMM{M: 64, N: 64, K: 4096, Out: cuda.ValueBFloat16}, [2]num.FP8Format{num.E5M2, num.E4M3}}
	x := newFP8Measured(p)
	if want := 0x1p-8 + 0x1p-8; x.Bound != want || x.Types != "e5m2, e4m3 to bf16" {
		t.Errorf("%s has bound %g, want %g", x.Types, x.Bound, want)
	}
	for _, c := range []struct {
		error float64
		why   string
		state string
	}{{x.Bound, "", "ok"}, {2 * x.Bound, "", "failed"}, {trial.NotANumber, "", "failed"}, {-1, "", "failed"},
		{0, "no way", "failed"}} {
		var r Result
		x.Error, x.Unrounded, x.Why = c.error, 0.5, c.why
		tabulateFP8(&r, []FP8Measured{x})
		if r.State != c.state {
			t.Errorf("error %g, %q: %s, want %s", c.error, c.why, r.State, c.state)
		}
	}
}

// Operands are rounded to 3 or 2 fraction bits, scaled by the largest.
func TestRoundFP8(t *testing.T) {
	for as, want := range map[num.FP8Format][]float64{num.E4M3: {0.8125, -0.1015625, 0},
		num.E5M2: {0.75, -0.09375, 0}} {
		v := []float64{0.8, -0.1, 0}
		roundFP8(v, as)
		if !slices.Equal(v, want) {
			t.Errorf("%v: %v, want %v", as, v, want)
		}
	}
}
