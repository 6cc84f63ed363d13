package runtime

import (
	"errors"
	"math"
	"testing"
)

// Copies of a parameter are equal on all replicas, and one that is not is found.
func TestCopies(t *testing.T) {
	apart := func(x *Tensors) (worst float64) {
		x.Copies(func(_ string, d float64) { worst = max(worst, d) })
		return worst
	}
	done := errors.New("done")
	_, err := train(t, bigram[float64](2, 1), t.TempDir(), OnTensors(func(step int, x *Tensors) error {
		if d := apart(x); d != 0 {
			t.Errorf("%v apart after step %d", d, step)
		}
		r := x.crew.ranks[1]
		p := View[float64](r, r.Stage.Arena.Params.Offset, 1)
		for _, bad := range []float64{p[0] + 0.5, math.NaN()} {
			p[0] = bad
			if !(apart(x) >= 0.5) {
				t.Errorf("a copy that is %v is not found", bad)
			}
		}
		return done
	}))
	if !errors.Is(err, done) {
		t.Errorf("%v", err)
	}
}
