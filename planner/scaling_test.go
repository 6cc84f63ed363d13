package planner

import (
	"math"
	"testing"
)

// A law is said of rows only where none of them says what it denies.
func TestAmdahlDescribes(t *testing.T) {
	for _, c := range []struct {
		s    float64
		slow []float64 // of 2, 4 and 8 times the devices
		want bool
	}{
		{0.01, []float64{1.01, 1.03, 1.07}, true},
		{0.01, []float64{1.004, 1.02, 1.1}, true},
		{0.01, []float64{0.985, 1.02, 1.1}, true}, // 102 % in the table
		{0.01, []float64{0.93, 0.99, 1.12}, false},
		{-0.01, []float64{0.99, 0.97, 0.93}, true},
		{-0.001, []float64{0.95, 0.98, 1.05}, false},
		{0.2, []float64{1.2, 1.6, 1.5}, false}, // 5.3 times as fast, and the law ends at 5
		{0.01, []float64{1.01, 1.5, 1.07}, false},
	} {
		more := []float64{1, 3, 7}
		residual := 0.0
		for i, x := range more {
			e := c.slow[i]/(1+c.s*x) - 1
			residual += e * e / 3
		}
		if got := describesRows(c.s, math.Sqrt(residual), more, c.slow); got != c.want {
			t.Errorf("%v of %v: %v", c.s, c.slow, got)
		}
	}
}

// Amdahl's law is found again in times that follow it, and in noise about it.
func TestAmdahl(t *testing.T) {
	for _, want := range []float64{0, 1e-4, 0.02, 0.3, -1e-5} {
		var more, slow []float64
		for n := 2.0; n <= 2048; n *= 2 {
			more = append(more, n-1)
			slow = append(slow, n*(want+(1-want)/n))
		}
		if s, residual := fitAmdahl(more, slow); math.Abs(s-want) > 1e-6*math.Max(want, 1e-2) || residual > 1e-4 {
			t.Errorf("serial fraction %v is found as %v, off by %v", want, s, residual)
		}
		for i := range slow {
			slow[i] *= 1 + 0.1*float64(i%2*2-1)
		}
		if s, residual := fitAmdahl(more, slow); want >= 0.02 && math.Abs(s/want-1) > 0.1 || residual < 0.05 ||
			residual > 0.15 {
			t.Errorf("with noise of 10 %%, serial fraction %v is found as %v, off by %v", want, s, residual)
		}
	}
}
