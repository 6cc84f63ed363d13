package price

import (
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search/space"
)

// Under other engines too, the closed form is a lower bound of the simulation, with context parallelism as well.
func TestOtherEnginesBounds(t *testing.T) {
	for _, e := range engines.Engines[1:] {
		p := problem(cluster(t, "dgx-a100", 4, 0), llamaConfig(16, 4096, 32, 8, 11008, 32000, 8192), 8192, 64, mixed)
		p.Engine, p.Precision = e, e.State(mixed)
		apart, fit, all := 0, 0, 0
		context := p.Runs(&ir.Plan{DP: 2, TP: 1, PP: 1, CP: 2, CPKind: "heads"}, "cp")
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		points := drawCandidates(t, s, rand.New(rand.NewPCG(5, 6)), 4, draws(700))
		all += len(points)
		for i := range points {
			q, total := s.quote(&points[i]), s.stepOf(&points[i]).Total()
			if q.bytes <= s.arenaCapacity {
				fit++
			}
			if points[i].Family.Plan.CP > 1 {
				apart++
			}
			if q.time > total*(1+1e-12) {
				t.Errorf("%s: %v: closed %v, simulated %v", e.Name, points[i].Plan().Text(), q.time, total)
			}
		}
		if context && apart < draws(50) || fit < draws(20) {
			t.Errorf("%s: of %d plans %d have cp and %d fit", e.Name, all, apart, fit)
		}
	}
}

// Experts under other engines: the closed form is a lower bound there too.
func TestOtherEnginesExpertBounds(t *testing.T) {
	for _, e := range engines.Engines[1:] {
		cfg := llamaConfig(8, 2048, 16, 4, 1408, 32000, 2048)
		cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 16, 4, 1408, true
		p := problem(cluster(t, "dgx-h100", 4, 0), cfg, 2048, 64, mixed)
		own := *e
		p.Engine, p.Precision = &own, e.State(mixed)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		points := drawCandidates(t, s, rand.New(rand.NewPCG(7, 8)), 1, draws(200))
		spread := 0
		for i := range points {
			if q, total := s.quote(&points[i]), s.stepOf(&points[i]).Total(); q.time > total*(1+1e-12) {
				t.Errorf("%s: %v: closed %v, simulated %v", e.Name, points[i].Plan().Text(), q.time, total)
			}
			if points[i].Family.Plan.EP > 1 {
				spread++
			}
		}
		if spread < draws(30) {
			t.Errorf("%s: %d of %d plans have ep", e.Name, spread, len(points))
		}
	}
}

// An engine hides at most its fraction of the expert exchange, and at most the compute time of the function, which
// gets slower meanwhile.
func TestOverlapOfExperts(t *testing.T) {
	for _, x := range []struct{ part, slows, compute, experts, left, slower float64 }{
		{0, 0, 4, 3, 3, 4}, {0.5, 0, 4, 3, 1.5, 4}, {1, 0.25, 4, 3, 0, 4.75}, {1, 0.25, 2, 3, 1, 2.5},
		{0.5, 0, 1, 3, 2, 1},
	} {
		s := &layerTimer{}
		traffic := engines.Traffic{HiddenEP: x.part, SlowsEP: x.slows}
		s.problem = &space.Problem{Engine: &engines.Engine{Traffic: traffic}}
		c := costmodel.Cost{Compute: costmodel.Seconds(x.compute), Experts: costmodel.Seconds(x.experts)}
		s.overlapExperts(&c)
		if float64(c.Experts) != x.left || float64(c.Compute) != x.slower {
			t.Errorf("%+v: %+v", x, c)
		}
	}
}
