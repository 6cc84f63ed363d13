package main

import (
	"math"
	"testing"
)

// A share is relative to each turn's own limit. A turn at half the speed with half the limit counts like the others,
// and one disturbed turn of three does not change the median.
func TestShareIsOfEachTurnsLimit(t *testing.T) {
	m := model{layers: 2, hidden: 64, vocab: 100, block: 32, batch: 4}
	ideal := m.flops() / 200e9
	for _, c := range []struct{ took, limits []float64 }{
		{[]float64{2 * ideal, 4 * ideal}, []float64{200, 100}},
		{[]float64{2 * ideal, 9 * ideal, 2.5 * ideal}, []float64{200, 200, 160}},
	} {
		r := result{oursAll: c.took, limits: c.limits}
		if got := r.share(m, r.limits); math.Abs(got-0.5) > 1e-12 {
			t.Errorf("turns of %v s at %v GFLOP/s: share %v, want 0.5", c.took, c.limits, got)
		}
	}
}
