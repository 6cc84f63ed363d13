package driver

import (
	"math"
	"slices"
	"testing"
)

// Of equal logits all stay, as in nanoGPT's sample.py.
func TestKeepLikeliest(t *testing.T) {
	least := math.Inf(-1)
	for _, c := range []struct {
		k    int
		want []float64
	}{
		{0, []float64{1, 3, 2, 3, -4}}, {5, []float64{1, 3, 2, 3, -4}}, {9, []float64{1, 3, 2, 3, -4}},
		{1, []float64{least, 3, least, 3, least}}, {2, []float64{least, 3, least, 3, least}},
		{3, []float64{least, 3, 2, 3, least}}, {4, []float64{1, 3, 2, 3, least}},
	} {
		logits := []float64{1, 3, 2, 3, -4}
		keepLikeliest(logits, c.k)
		if !slices.Equal(logits, c.want) {
			t.Errorf("top %d of the logits: %v, want %v", c.k, logits, c.want)
		}
	}
	logits := []float64{1, 3, 2, 3, -4}
	keepLikeliest(logits, 3)
	for _, u := range []float64{0, 0.3, 0.6, 0.999999} {
		if i := pick(slices.Clone(logits), 5, u); i == 0 || i == 4 {
			t.Errorf("u %g picks token %d, which is not of the top 3", u, i)
		}
	}
}
