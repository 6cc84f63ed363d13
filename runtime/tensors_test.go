package runtime

import (
	"errors"
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
)

// Copies of a parameter are equal on all replicas, and one that is not is found.
func TestCopies(t *testing.T) {
	apart := func(x *driver.Tensors) (worst float64) {
		x.Copies(func(_ string, d float64) { worst = max(worst, d) })
		return worst
	}
	done := errors.New("done")
	var second *Rank
	p := bigram[float64](2, 1)
	forward := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *Rank, b *Block) {
		if r.ID == 1 {
			second = r
		}
		forward(r, b)
	}
	_, err := train(t, p, t.TempDir(), OnTensors(func(step int, x *driver.Tensors) error {
		if d := apart(x); d != 0 {
			t.Errorf("%v apart after step %d", d, step)
		}
		first := View[float64](second, second.Stage.Arena.Params.Offset, 1)
		for _, bad := range []float64{first[0] + 0.5, math.NaN()} {
			first[0] = bad
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
