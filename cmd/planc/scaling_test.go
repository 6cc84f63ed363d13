package main

import (
	"math"
	"testing"
)

// Amdahl's law is found again in times that follow it, and in noise about it.
func TestAmdahl(t *testing.T) {
	for _, want := range []float64{0, 1e-4, 0.02, 0.3, -1e-5} {
		var more, slow []float64
		for n := 2.0; n <= 2048; n *= 2 {
			more = append(more, n-1)
			slow = append(slow, n*(want+(1-want)/n))
		}
		if s, residual := amdahl(more, slow); math.Abs(s-want) > 1e-6*math.Max(want, 1e-2) || residual > 1e-4 {
			t.Errorf("serial fraction %v is found as %v, off by %v", want, s, residual)
		}
		for i := range slow {
			slow[i] *= 1 + 0.1*float64(i%2*2-1)
		}
		if s, residual := amdahl(more, slow); want >= 0.02 && math.Abs(s/want-1) > 0.1 || residual < 0.05 || residual > 0.15 {
			t.Errorf("with noise of 10 %%, serial fraction %v is found as %v, off by %v", want, s, residual)
		}
	}
}
