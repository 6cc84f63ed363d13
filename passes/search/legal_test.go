package search

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// The message names the wrong key of the batch, and the values that are right.
func TestBatchRules(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 4), gpt2Config(4, 64, 4, 64, 16), 16, 128, ir.FullPrecision(ir.F32))
	for _, c := range []struct {
		dp, micro, micros int
		want              Reason // empty if legal
	}{
		{4, 1, 32, Reason{}},
		{4, 1, 5, Reason{Key: "micro_batches",
			Message: "micro_batches 5: micro_batch 1 × dp 4 splits a global batch of 128 into 32"}},
		{4, 1, 0, Reason{Key: "micro_batches",
			Message: "micro_batches 0: micro_batch 1 × dp 4 splits a global batch of 128 into 32"}},
		{4, 1, 16, Reason{Key: "micro_batches",
			Message: "micro_batches 16: micro_batch 1 × dp 4 splits a global batch of 128 into 32"}},
		{4, 3, 10, Reason{Key: "micro_batch",
			Message: "micro_batch 3 × dp 4 must divide the global batch of 128: use micro_batch 2 or 4"}},
		{4, 0, 1, Reason{Key: "micro_batch",
			Message: "micro_batch 0 × dp 4 must divide the global batch of 128: use micro_batch 1"}},
		{4, 64, 1, Reason{Key: "micro_batch",
			Message: "micro_batch 64 × dp 4 must divide the global batch of 128: use micro_batch 32"}},
	} {
		plan := ir.SerialPlan(4, c.micro, p.Precision)
		plan.DP, plan.MicroBatches = c.dp, c.micros
		var got Reason
		if rs := Legal(plan, DimsOf(p.Model), p.Cluster, p.GlobalBatch); len(rs) == 1 {
			got = rs[0]
		} else if len(rs) > 1 {
			t.Errorf("dp %d, %d×%d: %v", c.dp, c.micro, c.micros, rs)
		}
		if got != c.want {
			t.Errorf("dp %d, %d×%d: %q, want %q", c.dp, c.micro, c.micros, got, c.want)
		}
	}
}

// A pinned cp_kind requests cp: there are plans whichever key of such pins is freed.
func TestContextPins(t *testing.T) {
	for _, pins := range []Pins{{"cp": {"2"}, "cp_kind": {"gather"}}, {"cp_kind": {"heads"}}, {"cp": {"4"}},
		{"cp": {"1"}, "cp_kind": {"none"}}} {
		p := problem(cluster(t, "cpu", 1, 4), gpt2Config(2, 64, 4, 256, 64), 64, 8, ir.FullPrecision(ir.F32))
		p.Pins = pins
		if b := must(t, p).Best.Plan; !pins.Allows("cp_kind", b.CPKind) || (b.CP == 1) != (b.CPKind == "none") {
			t.Errorf("%v: %v", pins, b)
		}
	}
}

// suggestion matches the numbers that a message suggests for a key.
var suggestion = regexp.MustCompile(`use ([a-z_]+) (\d+)((?:, \d+)*)(?: or (\d+))?`)

// After a suggested value is pinned, no message is about its key any more.
func TestSuggestedValuesSettleTheirKey(t *testing.T) {
	experts := llamaConfig(4, 64, 8, 4, 96, 61, 24)
	experts.Family, experts.Experts, experts.Choices, experts.ExpertFFN = spec.Mixtral, 8, 2, 96
	models := []*Problem{
		problem(cluster(t, "cpu", 1, 1), gpt2Config(5, 48, 6, 64, 16), 16, 24, ir.FullPrecision(ir.F32)),
		problem(cluster(t, "cpu", 1, 1), llamaConfig(4, 64, 8, 4, 96, 61, 24), 24, 64, ir.FullPrecision(ir.F32)),
		problem(cluster(t, "cpu", 1, 1), experts, 24, 64, ir.FullPrecision(ir.F32)),
	}
	values := map[string][]string{"dp": {"1", "2", "3", "4"}, "tp": {"2", "3", "4", "6"}, "pp": {"2", "3", "4"},
		"cp": {"2", "3", "5"}, "cp_kind": {"heads", "gather"}, "micro_batch": {"1", "2", "3", "5"},
		"micro_batches": {"2", "3", "4"}, "ep": {"2", "3", "16"}, "etp": {"2", "3"}, "zero": {"1", "3"},
		"zero_group": {"2", "3", "4"}, "stage_layers": {"2,2", "1,2,2", "1,1,2"}, "sp": {"true"}, "vpp": {"2"},
		"schedule": {"1f1b", "interleaved"}, "recompute": {"full"}, "recompute_layers": {"1", "2"}}
	keys := Pins(values).Keys()
	r := rand.New(rand.NewPCG(7, 9))
	count := 0
	for range 80 {
		p := *models[r.IntN(len(models))]
		c := *p.Cluster
		c.Nodes, c.Node.Devices = 1, []int{4, 6, 8, 12, 16}[r.IntN(5)]
		p.Cluster, p.Pins = &c, Pins{}
		for range 2 + r.IntN(3) {
			key := keys[r.IntN(len(keys))]
			p.Pins[key] = []string{values[key][r.IntN(len(values[key]))]}
		}
		for _, reason := range illegalReasons(t, &p) {
			for _, use := range suggestion.FindAllStringSubmatch(reason.Message, -1) {
				for _, n := range strings.Fields(use[2] + strings.ReplaceAll(use[3], ",", " ") + " " + use[4]) {
					count++
					q := p
					q.Pins = p.Pins.Merge(Pins{use[1]: {n}})
					for _, left := range illegalReasons(t, &q) {
						if left.Key == use[1] || strings.HasPrefix(left.Message, use[1]+" ") {
							t.Errorf("%d devices, %v: %s\n\twith %s %s: %s", c.Devices(), p.Pins, reason.Message,
								use[1], n, left.Message)
						}
					}
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d suggestions", count)
	}
}

// illegalReasons returns why no plan of a problem is legal; nil if one is.
func illegalReasons(t *testing.T, p *Problem) []Reason {
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.space(p)
	var illegal *IllegalError
	if err != nil && !errors.As(err, &illegal) {
		t.Fatal(fmt.Errorf("%v: %w", p.Pins, err))
	}
	if illegal == nil {
		return nil
	}
	return illegal.Reasons
}

// A value is suggested only if the plan with it obeys all rules of the key, those that the plan obeys already, and
// all pins of other keys.
func TestSuggestedValuesAreLegal(t *testing.T) {
	llama := func(nodes, batch int, engine string) *Problem {
		config := llamaConfig(32, 4096, 32, 8, 14336, 128256, 8192)
		p := problem(cluster(t, "dgx-h100", nodes, 8), config, 8192, batch, mixed)
		p.Engine = engines.EngineOf(engine)
		return p
	}
	for _, c := range []struct {
		problem *Problem
		pins    Pins
		want    string
	}{
		{llama(2, 64, "megatron"), Pins{"cp": {"3"}, "tp": {"4"}}, "tp 4 · cp 3 is 12 ranks per replica, which must " +
			"divide 16 devices: use cp 2 or 4"},
		{llama(3, 64, "megatron"), Pins{"tp": {"4"}, "pp": {"4"}}, "tp 4 · pp 4 is 16 ranks per replica, which must " +
			"divide 24 devices: use pp 3 or 6"},
		{llama(3, 66, "planc"), Pins{"tp": {"4"}, "pp": {"4"}}, "tp 4 · pp 4 is 16 ranks per replica, which must " +
			"divide 24 devices: use pp 3 or 6"},
		{llama(2, 64, "megatron"), Pins{"tp": {"6"}}, "tp 6 must divide 16 devices: use tp 4 or 8"},
		{llama(3, 64, "megatron"), Pins{"tp": {"4"}, "pp": {"2"}, "micro_batch": {"2"}},
			"dp 3 must divide the global batch of 64: use a global batch of 60 or 66"},
		{llama(1, 64, "planc"), Pins{"tp": {"6"}, "zero": {"1"}}, "tp 6 must divide 8 devices: use tp 4"},
		{llama(1, 64, "planc"), Pins{"pp": {"3"}, "stage_layers": {"10,11,11"}}, "pp 3 must divide 8 devices"},
		{llama(1, 64, "planc"), Pins{"micro_batch": {"3"}, "micro_batches": {"4"}, "dp": {"4"}},
			"micro_batch 3 × dp 4 must divide the global batch of 64: use micro_batch 4"},
		{llama(3, 64, "planc"), Pins{"dp": {"3"}, "micro_batch": {"3"}}, "dp 3 and micro_batch 3 do not divide the " +
			"global batch of 64: use a global batch of 63 or 72, or leave out plan.dp and plan.micro_batch"},
	} {
		c.problem.Pins = c.pins
		_, err := Search(c.problem)
		var illegal *IllegalError
		if !errors.As(err, &illegal) || illegal.Reasons[0].Message != c.want {
			t.Errorf("%v: %v, want %s", c.pins, err, c.want)
		}
	}
}
