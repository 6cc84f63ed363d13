package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Under other engines too, the closed form is a lower bound of the simulation, with context parallelism as well.
func TestOtherEnginesBounds(t *testing.T) {
	for _, e := range engines.Engines[1:] {
		p := problem(cluster(t, "dgx-a100", 4, 0), llamaConfig(16, 4096, 32, 8, 11008, 32000, 8192), 8192, 64, mixed)
		p.Engine, p.Precision = e, e.State(mixed)
		apart, fit, all := 0, 0, 0
		context := p.Runs(&ir.Plan{DP: 2, TP: 1, PP: 1, CP: 2, CPKind: "heads"}, "cp")
		for _, draw := range []struct {
			cp []string
			n  int
		}{{[]string{"1", "2", "4"}, 400}, {[]string{"2", "4"}, 60}} {
			p.Pins = (Pins{"cp": draw.cp})
			if !context {
				p.Pins = Pins{"cp": {"1"}}
			}
			s, err := newSearcher(p)
			if err != nil {
				t.Fatal(err)
			}
			points := drawPoints(t, s, rand.New(rand.NewPCG(5, 6)), draw.n)
			all += len(points)
			for i := range points {
				q, total := s.quote(&points[i]), s.stepOf(&points[i]).Total()
				if q.bytes <= s.arenaCapacity {
					fit++
				}
				if points[i].family.plan.CP > 1 {
					apart++
				}
				if q.time > total*(1+1e-12) {
					t.Errorf("%s: %v: closed %v, simulated %v", e.Name, points[i].plan().Text(), q.time, total)
				}
			}
		}
		if context && apart < 50 || fit < 20 {
			t.Errorf("%s: of %d plans %d have cp and %d fit", e.Name, all, apart, fit)
		}
	}
}

// A ring that overlaps attention costs no more than gathering first, and more than nothing for short sequences. cp
// divides a rank's compute.
func TestOtherEnginesContext(t *testing.T) {
	for _, x := range []struct {
		seq    int
		hidden bool // all communication
	}{{1024, false}, {65536, true}} {
		p := problem(cluster(t, "dgx-a100", 2, 0), llamaConfig(8, 4096, 32, 8, 11008, 32000, x.seq), x.seq, 16, mixed)
		megatron := *engines.EngineOf("megatron")
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

// Experts under other engines: the closed form is a lower bound there too. A copy of a token per choice takes longer
// than one per rank that it is sent to.
func TestOtherEnginesExperts(t *testing.T) {
	for _, e := range engines.Engines[1:] {
		cfg := llamaConfig(8, 2048, 16, 4, 1408, 32000, 2048)
		cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 16, 4, 1408, true
		p := problem(cluster(t, "dgx-h100", 4, 0), cfg, 2048, 64, mixed)
		own := *e
		p.Engine, p.Precision = &own, e.State(mixed)
		s, err := newSearcher(p)
		if err != nil {
			t.Fatal(err)
		}
		points := drawPoints(t, s, rand.New(rand.NewPCG(7, 8)), 200)
		spread := 0
		for i := range points {
			if q, total := s.quote(&points[i]), s.stepOf(&points[i]).Total(); q.time > total*(1+1e-12) {
				t.Errorf("%s: %v: closed %v, simulated %v", e.Name, points[i].plan().Text(), q.time, total)
			}
			if points[i].family.plan.EP > 1 {
				spread++
			}
		}
		if spread < 30 {
			t.Errorf("%s: %d of %d plans have ep", e.Name, spread, len(points))
		}
		plan := ir.SerialPlan(8, 1, p.Precision)
		plan.DP, plan.EP, plan.MoESlack, plan.MicroBatches, plan.Zero, plan.ZeroGroup = 32, 16,
			space.DefaultMoESlack, 2, 1, 32
		own.Once, own.HiddenEP = true, 0
		once, err := Price(p, plan)
		if err != nil {
			t.Fatal(err)
		}
		own.Once = false
		each, err := Price(p, plan)
		if err != nil || !(each.Time.EPComm > 1.5*once.Time.EPComm && once.Time.EPComm > 0) {
			t.Errorf("%s: to experts %v once, %v each, %v", e.Name, once.Time.EPComm, each.Time.EPComm, err)
		}
	}
}

// Megatron overlaps sends with the next pass if the schedule is interleaved, and waits otherwise. The host's time per
// micro-batch is counted once, however many chunks a stage has.
func TestOtherEnginesChunks(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 4, 0), llamaConfig(16, 8192, 64, 8, 28672, 32000, 4096), 4096, 32, mixed)
	megatron := *engines.EngineOf("megatron")
	p.Engine, p.Precision = &megatron, megatron.State(mixed)
	price := func(vpp int, pass costmodel.Seconds, overlapped bool) costmodel.Time {
		megatron.Pass, megatron.OverlapsInterleavedSends = pass, overlapped
		plan := ir.SerialPlan(16, 1, p.Precision)
		plan.DP, plan.TP, plan.PP, plan.VPP, plan.SP, plan.AxisOrder, plan.MicroBatches = 1, 8, 4, vpp, true,
			"tp,dp,pp", 32
		plan.Schedule, plan.StageLayers = "1f1b", "4,4,4,4"
		if vpp == 4 {
			plan.Schedule, plan.StageLayers = "interleaved", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"
		}
		got, err := Price(p, plan)
		if err != nil {
			t.Fatal(err)
		}
		return got.Time
	}
	if w, b := price(4, 0, false).PPComm, price(4, 0, true).PPComm; b > 0.5*w {
		t.Errorf("interleaved: sends cost %v beside passes, %v waited for", b, w)
	}
	if w, b := price(1, 0, false), price(1, 0, true); w != b {
		t.Errorf("not interleaved: %v and %v", w, b)
	}
	const pass = 1e-3
	for _, vpp := range []int{1, 4} {
		more := price(vpp, pass, true).Compute - price(vpp, 0, true).Compute
		if want := costmodel.Seconds(32 * pass); more < 0.99*want || more > 1.01*want {
			t.Errorf("vpp %d: 32 micro-batches of %v each take %v", vpp, costmodel.Seconds(pass), more)
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
		s.problem = &Problem{Engine: &engines.Engine{Traffic: engines.Traffic{HiddenEP: x.part, SlowsEP: x.slows}}}
		c := costmodel.Cost{Compute: costmodel.Seconds(x.compute), Experts: costmodel.Seconds(x.experts)}
		s.overlapExperts(&c)
		if float64(c.Experts) != x.left || float64(c.Compute) != x.slower {
			t.Errorf("%+v: %+v", x, c)
		}
	}
}

// HAI-LLM only has DualPipe pipelines, with experts too.
func TestSchedulesOfEngine(t *testing.T) {
	cfg := llamaConfig(8, 2048, 16, 4, 1408, 32000, 2048)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 16, 4, 1408, true
	p := problem(cluster(t, "dgx-h100", 4, 0), cfg, 2048, 64, mixed)
	plan := ir.SerialPlan(8, 1, mixed)
	plan.PP, plan.VPP, plan.EP, plan.MoESlack, plan.StageLayers = 4, 1, 8, space.DefaultMoESlack, "2,2,2,2"
	for name, want := range map[string]string{"hai-llm": "[zb-h1]", "megatron": "[1f1b]"} {
		p.Engine = engines.EngineOf(name)
		if got := fmt.Sprint(p.Schedules(&plan)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
