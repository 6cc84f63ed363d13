package costmodel

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// A pass whose collectives would take as long as its compute does not end sooner than the engine's gain allows: the sum
// of both over the gain. Where they take a tenth, only the slower compute counts.
func TestOverlapGainBoundsAPass(t *testing.T) {
	for _, x := range []struct {
		fetch, gain, want float64
	}{{4, 0, 12 + 0.1*8}, {4, 1.25, 20 / 1.25}, {4, 1.64, 12 + 0.1*8}, {0.4, 1.25, 12 + 0.1*0.8}} {
		c := Chunk{Runs: []Layers{{Count: 3, Forward: Cost{Compute: 4}, Fetch: Seconds(x.fetch)}},
			Contention: Contention{0.1, x.gain}}
		if p := c.Pass(ir.Forward, true); math.Abs(float64(p.Total())-x.want) > 1e-12 {
			t.Errorf("two gathers of %v s beside 12 s with a gain of %v: %v, want %v", x.fetch, x.gain,
				p.Total(), x.want)
		}
	}
	if got := (Contention{0.1, 1.25}).Added(8, 2, 0); math.Abs(float64(got)-0.2) > 1e-12 {
		t.Errorf("2 s of collectives beside 8 s add %v", got)
	}
}
