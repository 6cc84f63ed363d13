package search

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"
)

// shapes returns the plans of a space without solved values: the split of the layers and the recompute counts.
func shapes(t *testing.T, p *Problem, keep func(ir.Plan) bool) map[string]bool {
	t.Helper()
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := s.space(p)
	if err != nil {
		t.Fatal(err)
	}
	out, n := map[string]bool{}, 0
	for _, f := range sp.families {
		for _, shard := range s.Shardings(p, &f.Plan) {
			for _, a := range s.RecomputeChoices(p, &f.Plan, f.Plan.LargestChunk()) {
				for _, order := range f.OrderNames {
					plan := f.Plan
					a.Apply(&plan, a.MaxN)
					plan.Zero, plan.ZeroGroup, plan.AxisOrder = shard.Zero, shard.Group, order
					n++
					if keep == nil || keep(plan) {
						plan.StageLayers, plan.RecomputeLayers = "", 0
						out[plan.Text()] = true
					}
				}
			}
		}
	}
	if keep == nil && len(out) != sp.size {
		t.Errorf("the space has %d plans, %d were listed", sp.size, len(out))
	}
	return out
}

// A search under another engine offers exactly the plans of planc's space that the engine can run, and counts them.
func TestEngineOffersWhatItRuns(t *testing.T) {
	dense := llamaConfig(6, 64, 8, 2, 96, 64, 32)
	experts := llamaConfig(2, 64, 8, 2, 96, 64, 32)
	experts.Family, experts.Experts, experts.Choices, experts.ExpertFFN = spec.Mixtral, 4, 2, 96
	for _, e := range engines.Engines[1:] {
		if len(e.PlanRules()) == 0 {
			t.Errorf("engine %s has no rules", e.Name)
		}
		for _, config := range []spec.Config{dense, experts} {
			if config.Experts > 0 && e.Name == "hai-llm" {
				continue // its DualPipe runs experts, and planc's space has no zb-h1 with them
			}
			p := problem(cluster(t, "dgx-a100", 2, 2), config, 32, 16, mixed)
			p.Engine, p.Precision = e, e.State(mixed)
			p.Pins = Pins{"cp": {"1", "2"}}
			offersWhatItRuns(t, p)
		}
	}
}

// offersWhatItRuns reports an error unless a search offers exactly the plans of planc's space that the problem's engine
// can run.
func offersWhatItRuns(t *testing.T, p *Problem) {
	t.Helper()
	e := p.Engine
	own := *p
	own.Engine = nil
	d := DimsOf(p.Model)
	runs := func(plan ir.Plan) bool {
		for _, r := range e.PlanRules() {
			if !r.OK(&plan, &engines.Shape{KVHeads: d.KVHeads}) {
				return false
			}
		}
		return true
	}
	got, all := shapes(t, p, nil), shapes(t, &own, func(ir.Plan) bool { return true })
	want := shapes(t, &own, runs)
	if len(got) == 0 || len(want) == len(all) {
		t.Errorf("engine %s: %d of %d plans", e.Name, len(got), len(all))
	}
	for plan := range got {
		if !want[plan] {
			t.Errorf("engine %s cannot run %s", e.Name, plan)
		}
	}
	for plan := range want {
		if !got[plan] {
			t.Errorf("engine %s can run %s, which is not in its space", e.Name, plan)
		}
	}
}

// Under every engine the search finds what brute force does.
func TestEnginesAreBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, e := range engines.Engines[1:] {
		for i := range 6 {
			layers := 4 + i%2 // 5 do not divide into stages
			p := problem(cluster(t, "dgx-a100", 2, 2), llamaConfig(layers, 64, 8, 4, 96, 64, 32), 32, 8, mixed)
			p.Engine, p.Precision = e, e.State(mixed)
			p.Cluster.GPU.MemoryGiB = 6
			narrow(t, r, p, 60, nil)
			b := bruteForce(t, p, nil)
			c, n, found := b.choose(b.space, nil)
			b.run().agrees(c, n, found)
		}
	}
}

// Megatron splits layers evenly if they divide, unless the job gives the split.
func TestEvenStages(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 0), llamaConfig(10, 1024, 8, 8, 4096, 128000, 512), 512, 64, mixed)
	p.Pins = Pins{"pp": {"2"}}
	own := must(t, p).Best.Plan
	p.Engine = engines.EngineOf("megatron")
	p.Precision = p.Engine.State(mixed)
	if even := must(t, p).Best.Plan; own.StageLayers == "5,5" || !strings.HasPrefix(even.StageLayers, "5,5") &&
		even.VPP == 1 {
		t.Errorf("planc splits %s, megatron %s", own.StageLayers, even.StageLayers)
	}
	p.Pins = Pins{"pp": {"2"}, "stage_layers": {"6,4"}}
	if given := must(t, p).Best.Plan; given.StageLayers != "6,4" {
		t.Errorf("given 6,4, taken %s", given.StageLayers)
	}
}

// If layers do not divide over the stages, Megatron's stages are balanced as planc's are. Each split is the best of all
// by brute force over the splits: no other one has a faster slowest stage, so the step is faster with none.
func TestUnevenStagesAreBalanced(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 0), llamaConfig(11, 1024, 8, 8, 4096, 128000, 512), 512, 64, mixed)
	p.Engine = engines.EngineOf("megatron")
	p.Precision = p.Engine.State(mixed)
	p.Pins = Pins{"tp": {"1"}, "pp": {"2", "4"}, "vpp": {"1"}, "micro_batch": {"1"}, "recompute": {"none"},
		"zero": {"1"}}
	best := must(t, p).Best
	tried := 0
	for _, pp := range []int{2, 4} {
		for _, split := range splits(11, pp) {
			q := *p
			q.Pins = p.Pins.Merge(Pins{"pp": {strconv.Itoa(pp)}, "stage_layers": {space.JoinCounts(split)}})
			other, err := Search(&q)
			if err != nil {
				continue // does not fit, or has an empty stage
			}
			tried++
			if other.Best.Predict.StepS < best.Predict.StepS*(1-price.Tie) {
				t.Errorf("%s takes %v, the best plan %s %v", other.Best.Plan, other.Best.Predict.StepS, best.Plan,
					best.Predict.StepS)
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d splits were tried", tried)
	}
}

// splits returns all ways to split blocks over stages, with at least one each.
func splits(blocks, stages int) (out [][]int) {
	if stages == 1 {
		return [][]int{{blocks}}
	}
	for first := 1; first <= blocks-stages+1; first++ {
		for _, rest := range splits(blocks-first, stages-1) {
			out = append(out, append([]int{first}, rest...))
		}
	}
	return out
}

// A pin that an engine cannot follow is refused by name, with what to set instead.
func TestEngineRefusesPins(t *testing.T) {
	for _, x := range []struct {
		engine, key, value, want string
	}{
		{"megatron", "zero", "3", "zero 3: engine megatron runs zero 0 and 1, its distributed optimizer (engine " +
			"megatron-fsdp runs zero 2 and 3)"},
		{"megatron", "schedule", "zb-v",
			"schedule zb-v: engine megatron runs pipelines as 1f1b and interleaved (engine planc runs every schedule)"},
		{"megatron-fsdp", "pp", "2", "pp 2: engine megatron-fsdp has no pipeline (pp 1, or engine megatron)"},
		{"deepspeed", "schedule", "interleaved",
			"schedule interleaved: engine deepspeed runs pipelines as 1f1b (engine planc runs every schedule)"},
		{"fsdp", "schedule", "zb-h1", "schedule zb-h1: engine fsdp runs pipelines as gpipe, 1f1b, interleaved and " +
			"zb-v (engine planc runs every schedule)"},
		{"fsdp", "tp", "8", "tp 8 does not divide the 4 K/V heads: engine fsdp splits heads evenly over tp and does " +
			"not repeat them (a tp that divides them, or engine megatron)"},
	} {
		p := problem(cluster(t, "dgx-h100", 1, 0), llamaConfig(8, 1024, 16, 4, 4096, 128000, 512), 512, 64, mixed)
		p.Engine, p.Pins = engines.EngineOf(x.engine), Pins{x.key: {x.value}}
		p.Precision = p.Engine.State(mixed)
		_, err := Search(p)
		var illegal *IllegalError
		if !errors.As(err, &illegal) {
			t.Errorf("%s: %s %s: %v", x.engine, x.key, x.value, err)
			continue
		}
		if got := illegal.Reasons[0]; got.Key != x.key || got.Message != x.want || len(illegal.Reasons) != 1 {
			t.Errorf("%s: %s %s: %+v, want %s", x.engine, x.key, x.value, illegal.Reasons, x.want)
		}
	}
}

// Published runs are priced regardless of the engine's rules.
func TestEngineRulesDoNotConcernPrices(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 0), llamaConfig(8, 1024, 16, 4, 4096, 128000, 512), 512, 64, mixed)
	p.Engine = engines.EngineOf("megatron")
	p.Precision = p.Engine.State(mixed)
	plan := ir.SerialPlan(8, 1, p.Precision)
	plan.DP, plan.MicroBatches, plan.Zero, plan.ZeroGroup = 8, 8, 3, 8
	if got, err := Price(p, plan); err != nil || got.StepS <= 0 {
		t.Errorf("%v, %v", got, err)
	}
	if rs := Check(p, plan); len(rs) != 1 || rs[0].Key != "zero" {
		t.Errorf("%+v", rs)
	}
}
