package search

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

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

// Experts under other engines: a copy of a token per choice takes longer than one per rank that it is sent to.
func TestOtherEnginesExperts(t *testing.T) {
	for _, e := range engines.Engines[1:] {
		cfg := llamaConfig(8, 2048, 16, 4, 1408, 32000, 2048)
		cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 16, 4, 1408, true
		p := problem(cluster(t, "dgx-h100", 4, 0), cfg, 2048, 64, mixed)
		own := *e
		p.Engine, p.Precision = &own, e.State(mixed)
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
