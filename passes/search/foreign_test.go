package search

import (
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Under other engines, too, the closed form is a lower bound of the simulation, with context parallelism as well.
func TestForeignBounds(t *testing.T) {
	for _, e := range costmodel.Engines[1:] {
		p := problem(cluster(t, "dgx-a100", 4, 0), llamaConfig(16, 4096, 32, 8, 11008, 32000, 8192), 8192, 64, mixed)
		p.Engine, p.Precision = e, e.State(mixed)
		p.Pins = Pins{"cp": {"1", "2", "4"}}
		s, err := newSearcher(p)
		if err != nil {
			t.Fatal(err)
		}
		points := drawPoints(t, s, rand.New(rand.NewPCG(5, 6)), 400)
		apart, fit := 0, 0
		for i := range points {
			q, total := s.quote(&points[i]), s.stepOf(&points[i]).Total()
			if q.bytes <= s.capacity {
				fit++
			}
			if points[i].family.plan.CP > 1 {
				apart++
			}
			if q.time > total*(1+1e-12) {
				t.Errorf("%s: %v: closed %v, simulated %v", e.Name, points[i].plan().Text(), q.time, total)
			}
		}
		if apart < 50 || fit < 20 {
			t.Errorf("%s: of %d plans %d have cp and %d fit", e.Name, len(points), apart, fit)
		}
	}
}

// Keys that go around beside attention cost no more than those that are gathered first, and more than nothing where
// sequences are short; cp divides a rank's arithmetic.
func TestForeignContext(t *testing.T) {
	for _, x := range []struct {
		seq    int
		hidden bool // all that moves
	}{{1024, false}, {65536, true}} {
		p := problem(cluster(t, "dgx-a100", 2, 0), llamaConfig(8, 4096, 32, 8, 11008, 32000, x.seq), x.seq, 16, mixed)
		megatron := *costmodel.EngineOf("megatron")
		p.Engine, p.Precision = &megatron, megatron.State(mixed)
		plan := ir.SerialPlan(8, 1, p.Precision)
		plan.CP, plan.CPKind, plan.DP, plan.AxisOrder, plan.MicroBatches = 8, "ring", 2, "tp,cp,dp", 8
		plan.Zero, plan.ZeroGroup = 1, 16
		ring, err := Price(p, plan)
		if err != nil {
			t.Fatal(err)
		}
		plan.CPKind = "gather"
		gathered, err := Price(p, plan)
		if err != nil {
			t.Fatal(err)
		}
		if r, g := ring.Time.CPComm, gathered.Time.CPComm; g <= 0 || r >= g || (r == 0) != x.hidden {
			t.Errorf("%d positions: keys around %v, gathered %v", x.seq, r, g)
		}
		plan.CP, plan.CPKind, plan.DP, plan.AxisOrder, plan.MicroBatches = 1, "none", 16, "tp,dp", 1
		whole, err := Price(p, plan)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := float64(gathered.Time.Compute), float64(whole.Time.Compute); a < 0.98*b || x.hidden && a > 1.1*b {
			t.Errorf("%d positions: compute of 8 micro-batches over cp 8 takes %v, of one whole %v", x.seq, a, b)
		}
	}
}
