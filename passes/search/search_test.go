package search

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search/space"
)

func TestSearchIsDeterministic(t *testing.T) {
	p := gpt3(t, 16)
	a, b := must(t, p), must(t, p)
	a.searcher, b.searcher = nil, nil // intermediate results, in maps by address
	if !reflect.DeepEqual(a, b) {
		t.Errorf("two searches differ:\n%+v\n%+v", a, b)
	}
}

func BenchmarkSearch(b *testing.B) {
	p := gpt3(b, 128)
	for b.Loop() {
		must(b, p)
	}
}

func TestPins(t *testing.T) {
	p := gpt3(t, 16)
	p.Pins = Pins{"tp": {"16", "32"}, "zero": {"1"}}
	r := must(t, p)
	if b := r.Best.Plan; b.TP < 16 || b.Zero != 1 || r.Counts.Space >= must(t, gpt3(t, 16)).Counts.Space {
		t.Errorf("pinned %v got %v", p.Pins, b)
	}
	for _, tt := range []struct {
		pins Pins
		want string
	}{
		{Pins{"tp": {"5"}}, "no plan with plan.tp=5 is legal: tp 5 must divide 128 devices: use tp 4 or 8; tp 5 " +
			"must divide " +
			"96 attention heads: use tp 4 or 8; tp 5 must divide the MLP's width 49152: use tp 4 or 8 [BadPlan]"},
		{Pins{"tp": {"1"}, "sp": {"true"}},
			"no plan with plan.sp=true plan.tp=1 is legal: sp requires tp above 1: use sp false [BadPlan]"},
		{Pins{"pp": {"3"}}, "no plan with plan.pp=3 is legal: pp 3 must divide 128 devices: use pp 2 or 4 [BadPlan]"},
		{Pins{"pp": {"128"}}, "no plan with plan.pp=128 is legal: pp 128 · vpp 1 is 128 chunks, but 96 blocks with " +
			"embedding " +
			"and head fill at most 98 [BadPlan]"},
		{Pins{"pp": {"4"}, "schedule": {"none"}},
			"no plan with plan.pp=4 plan.schedule=none is legal: schedule none requires pp 1: with pp 4, use " +
				"gpipe, 1f1b, interleaved, zb-h1 or zb-v [BadPlan]"},
		{Pins{"pp": {"1"}, "schedule": {"1f1b"}},
			"no plan with plan.pp=1 plan.schedule=1f1b is legal: schedule 1f1b requires pp above 1: use " +
				"schedule none [BadPlan]"},
		{Pins{"pp": {"64"}, "schedule": {"zb-v"}},
			"no plan with plan.pp=64 plan.schedule=zb-v is legal: pp 64 · vpp 2 is 128 chunks, but 96 blocks " +
				"with embedding and head fill at most 98 [BadPlan]"},
		{Pins{"pp": {"4"}, "vpp": {"3"}, "schedule": {"1f1b"}},
			"no plan with plan.pp=4 plan.schedule=1f1b plan.vpp=3 is legal: schedule 1f1b requires vpp 1, " +
				"not 3 [BadPlan]"},
		{Pins{"pp": {"4"}, "vpp": {"2"}, "dp": {"32"}, "micro_batch": {"8"}, "schedule": {"interleaved"}},
			"no plan with plan.dp=32 plan.micro_batch=8 plan.pp=4 plan.schedule=interleaved plan.vpp=2 is " +
				"legal: interleaved: pp 4 must divide 6 micro-batches: use a smaller micro_batch or dp, or " +
				"schedule 1f1b [BadPlan]"},
		{Pins{"pp": {"2"}, "stage_layers": {"40,40"}},
			"no plan with plan.pp=2 plan.stage_layers=40,40 is legal: stage_layers 40,40 adds up to 80: with " +
				"pp 2 · vpp 1, list the blocks of each of 2 chunks, 96 in total, each above 0 except for a chunk " +
				"with the embedding or the head [BadPlan]"},
		{Pins{"pp": {"4"}, "stage_layers": {"48,0,24,24"}},
			"no plan with plan.pp=4 plan.stage_layers=48,0,24,24 is legal: stage_layers 48,0,24,24 leaves " +
				"chunk 1 empty: with pp 4 · vpp 1, list the blocks of each of 4 chunks, 96 in total, each above " +
				"0 except for a chunk with the embedding or the head [BadPlan]"},
		{Pins{"pp": {"4"}, "stage_layers": {"48,48"}},
			"no plan with plan.pp=4 plan.stage_layers=48,48 is legal: stage_layers 48,48 has 2 counts: with " +
				"pp 4 · vpp 1, list the blocks of each of 4 chunks, 96 in total, each above 0 except for a chunk " +
				"with the embedding or the head [BadPlan]"},
		{Pins{"pp": {"4"}, "vpp": {"2"}, "dp": {"32"}, "micro_batches": {"6"}, "schedule": {"interleaved"}},
			"no plan with plan.dp=32 plan.micro_batches=6 plan.pp=4 plan.schedule=interleaved plan.vpp=2 is " +
				"legal: interleaved: pp 4 must divide 6 micro-batches: use a smaller micro_batch or dp, or " +
				"schedule 1f1b [BadPlan]"},
		{Pins{"pp": {"32"}, "vpp": {"3"}, "schedule": {"zb-v"}},
			"no plan with plan.pp=32 plan.schedule=zb-v plan.vpp=3 is legal: schedule zb-v requires vpp 2, " +
				"not 3 [BadPlan]"},
		{Pins{"zero": {"0"}, "zero_group": {"8"}},
			"no plan with plan.zero=0 plan.zero_group=8 is legal: zero_group 8 requires zero above 0: use " +
				"zero_group 1 [BadPlan]"},
		{Pins{"zero": {"3"}, "zero_group": {"5"}},
			"no plan with plan.zero=3 plan.zero_group=5 is legal: zero_group 5 must divide dp 128: use " +
				"zero_group 2, 4, 8, 16, 32, 64 or 128 [BadPlan]"},
		{Pins{"zero_group": {"16"}, "tp": {"16"}},
			"no plan with plan.tp=16 plan.zero_group=16 is legal: zero_group 16 must divide dp 8: use " +
				"zero_group 2, 4 or 8 [BadPlan]"},
		{Pins{"zero_group": {"1000000"}},
			"no plan with plan.zero_group=1000000 is legal: zero_group 1000000 must divide dp 128: use " +
				"zero_group 2, 4, 8, 16, 32, 64 or 128 [BadPlan]"},
		{Pins{"zero_group": {"1"}, "zero": {"3"}},
			"no plan with plan.zero=3 plan.zero_group=1 is legal: zero_group 1 requires zero 0, and zero 3 " +
				"shards over dp 128: use zero_group 2, 4, 8, 16, 32, 64 or 128 [BadPlan]"},
		{Pins{"zero_group": {"2"}, "dp": {"1"}, "tp": {"32"}, "pp": {"4"}},
			"no plan with plan.dp=1 plan.pp=4 plan.tp=32 plan.zero_group=2 is legal: zero_group 2 requires " +
				"dp above 1: use zero_group 1 [BadPlan]"},
		{Pins{"zero": {"4"}}, "no plan with plan.zero=4 is legal: zero 4 must be 0, 1, 2 or 3 [BadPlan]"},
		{Pins{"recompute": {"some"}}, "no plan with plan.recompute=some is legal: recompute some: recompute must be " +
			"none, selective or full [BadPlan]"},
		{Pins{"recompute": {"full"}, "recompute_layers": {"97"}},
			"no plan with plan.recompute=full plan.recompute_layers=97 is legal: recompute_layers 97: " +
				"recompute_layers must be 0 if recompute is none, else 1 up to the blocks of the largest chunk " +
				"[BadPlan]"},
		{Pins{"recompute": {"selective"}, "recompute_every": {"2"}},
			"no plan with plan.recompute=selective plan.recompute_every=2 is legal: recompute_every 2: " +
				"recompute_every above 1 needs recompute full, and must be at most recompute_layers [BadPlan]"},
		{Pins{"axis_order": {"dp,pp"}},
			"no plan with plan.axis_order=dp,pp is legal: axis_order dp,pp must be one of: tp,dp [BadPlan]"},
		{Pins{"cp": {"3"}, "dp": {"42"}},
			"no plan with plan.cp=3 plan.dp=42 is legal: cp 3 must divide 128 devices; cp 3: " +
				"2048 positions must split into two chunks per rank [BadPlan]"},
		{Pins{"cp": {"64"}, "cp_kind": {"heads"}, "tp": {"2"}},
			"no plan with plan.cp=64 plan.cp_kind=heads plan.tp=2 is legal: cp 64 with cp_kind heads must " +
				"divide 96 attention heads, split over tp 2: use cp 16, or cp_kind gather or ring [BadPlan]"},
		{Pins{"cp": {"2"}, "cp_kind": {"rings"}},
			"no plan with plan.cp=2 plan.cp_kind=rings is legal: cp_kind rings must be one of: none, gather, " +
				"heads, ring [BadPlan]"},
		{Pins{"cp_kind": {"heads"}, "cp": {"1"}},
			"no plan with plan.cp=1 plan.cp_kind=heads is legal: cp_kind heads requires cp above 1: use " +
				"cp_kind none [BadPlan]"},
		{Pins{"zero": {"x"}}, `no plan with plan.zero=x is legal: zero: "x" is not a whole number [BadPlan]`},
		{Pins{"zeros": {"1"}}, "no plan with plan.zeros=1 is legal: a plan has no key zeros [BadPlan]"},
		{Pins{"micro_batches": {"5"}}, "no plan with plan.micro_batches=5 is legal: micro_batches 5 × dp 128 must " +
			"divide the global " +
			"batch of 1536: use micro_batches 4 or 6 [BadPlan]"},
		{Pins{"dp": {"16"}, "micro_batches": {"7"}},
			"no plan with plan.dp=16 plan.micro_batches=7 is legal: micro_batches 7 × dp 16 must divide the " +
				"global batch of 1536: use micro_batches 6 or 8 [BadPlan]"},
		{Pins{"micro_batch": {"1"}, "micro_batches": {"8"}, "tp": {"8"}},
			"no plan with plan.micro_batch=1 plan.micro_batches=8 plan.tp=8 is legal: micro_batches 8: " +
				"micro_batch 1 × dp 16 splits a global batch of 1536 into 96 [BadPlan]"},
		{Pins{"micro_batch": {"7"}, "dp": {"16"}},
			"no plan with plan.dp=16 plan.micro_batch=7 is legal: micro_batch 7 × dp 16 must divide the " +
				"global batch of 1536: use micro_batch 6 or 8 [BadPlan]"},
	} {
		q := gpt3(t, 16)
		q.Pins = tt.pins
		_, err := Search(q)
		var bad *IllegalError
		if !errors.As(err, &bad) || err.Error() != tt.want {
			t.Errorf("%v: %v\nwant %s", tt.pins, err, tt.want)
		}
	}
}

// If a pinned micro_batch does not divide the batch, the message is about it, not about the dp of the nearest plan,
// which nobody asked for.
func TestMicroBatchOfAnOddBatch(t *testing.T) {
	for _, tt := range []struct {
		batch int
		pins  Pins
		want  string
	}{
		{127, Pins{"micro_batch": {"2"}}, "micro_batch 2 must divide the global batch of 127: " +
			"use micro_batch 1 or 127"},
		{100, Pins{"micro_batch": {"3"}}, "micro_batch 3 must divide the global batch of 100: " +
			"use micro_batch 2 or 4"},
		{100, Pins{"micro_batch": {"200"}}, "micro_batch 200 must divide the global batch of " +
			"100: use micro_batch 100"},
		{127, Pins{"dp": {"8"}}, "dp 8 must divide the global batch of 127: use dp 1, or a global batch " +
			"of 120 or 128"},
	} {
		q := gpt3(t, 16)
		q.GlobalBatch, q.Pins = tt.batch, tt.pins
		_, err := Search(q)
		var bad *IllegalError
		if !errors.As(err, &bad) || bad.Reasons[len(bad.Reasons)-1].Message != tt.want {
			t.Errorf("batch %d, %v: %v\nwant %s", tt.batch, tt.pins, err, tt.want)
		}
	}
}

// If the chunks just fill the blocks but no schedule has them, that is the only message.
func TestPinsOfAShortModel(t *testing.T) {
	for blocks, want := range map[int]string{4: "0,1,1,1,1,0", 5: "1,1,1,1,1,0", 6: "1,1,1,1,1,1", 8: "1,1,2,1,1,2"} {
		if got := space.JoinCounts(space.EvenSplit(blocks, 6)); got != want {
			t.Errorf("%d blocks are split as %s, want %s", blocks, got, want)
		}
	}
	p := problem(cluster(t, "cpu", 1, 4), gpt2Config(4, 64, 4, 64, 16), 16, 16, ir.FullPrecision(ir.F32))
	p.Pins = Pins{"pp": {"2"}, "vpp": {"3"}, "schedule": {"zb-v"}}
	want := "no plan with plan.pp=2 plan.schedule=zb-v plan.vpp=3 is legal: schedule zb-v requires vpp 2, " +
		"not 3 [BadPlan]"
	if _, err := Search(p); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A pin that costs time is reported.
func TestPinned(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 0), gpt2Config(12, 768, 12, 50257, 1024), 1024, 480, mixed)
	p.Pins = Pins{"tp": {"4"}}
	r := must(t, p)
	for _, c := range r.Choices {
		if c.Name == "tp" && (c.Taken != "4" || c.RunnerUp != "1" || c.Verdict != Illegal || c.SlowerBy >= 0) {
			t.Errorf("choice %+v", c)
		}
	}
	for _, a := range r.Alternatives {
		if a.Plan.TP != 4 {
			t.Errorf("alternative %v is not as pinned", a.Plan)
		}
	}
	q := *p
	q.Pins = nil
	best := must(t, &q).Best
	a, err := WhyNot(&q, best, PinPlan(best.Plan, Pins{"micro_batch": {"30"}}))
	if err != nil || a.SlowerBy <= 0 || a.Plan.TP != best.Plan.TP || a.Plan.MicroBatch != 30 {
		t.Errorf("why not micro_batch 30: %+v, %v", a, err)
	}
	if a, err := WhyNot(&q, best, PinPlan(best.Plan, Pins{"dp": {"4"}, "micro_batches": {"20"}})); err != nil ||
		a.Plan.TP != 2 || a.Plan.MicroBatch != 6 {
		t.Errorf("why not dp 4 in 20 micro-batches: %v, %v", a.Plan, err)
	}
	if _, err := Price(&q, a.Plan); err != nil {
		t.Error(err)
	}
	a.Plan.TP = 3
	if _, err := Price(&q, a.Plan); err == nil {
		t.Error("an illegal plan has a price")
	}
}

// args returns the changes as the user would type them.
func args(t *testing.T, p *Problem) (out []string) {
	t.Helper()
	_, err := Search(p)
	var no *NoPlan
	if !errors.As(err, &no) {
		t.Fatalf("%v: %v", p.Pins, err)
	}
	t.Log(no)
	for _, c := range no.Changes {
		if !c.Best.Fits() {
			t.Errorf("%s does not fit", c.Args())
		}
		out = append(out, c.Args())
	}
	return out
}

// The changes that would fit are the smallest, the cheapest first.
func TestNoPlan(t *testing.T) {
	small := problem(cluster(t, "dgx-h100", 1, 0), llamaConfig(32, 4096, 32, 8, 14336, 128256, 8192), 8192, 128, mixed)
	alone := func(seq int) *Problem {
		cfg := gpt2Config(24, 1024, 16, 50257, seq)
		p := problem(cluster(t, "rtx-4090", 1, 1), cfg, seq, 8, mixed)
		p.Cluster.Network = nil
		p.WithSeq = func(n int) *ir.Model {
			return zoo.Build("m", cfg, zoo.Options{SeqLen: n, Batch: 1, Elem: mixed.Compute})
		}
		return p
	}
	for _, c := range []struct {
		problem *Problem
		pins    Pins
		want    []string
	}{
		{gpt3(t, 1), nil, []string{"--set cluster.nodes=6", "--set cluster.nodes=12"}},
		// removing all pins leads to the same plan as removing zero alone
		{small, Pins{"tp": {"1"}, "pp": {"1"}, "zero": {"1"}, "recompute": {"none"}, "micro_batch": {"1"}},
			[]string{"--set plan.zero=null", "--set plan.pp=null", "--set plan.tp=null", "--set plan.recompute=null"}},
		{small, Pins{"tp": {"2"}, "micro_batch": {"32"}}, []string{"--set plan.micro_batch=null", "--set plan.tp=null",
			"--set plan.micro_batch=null --set plan.tp=null"}},
		{small, Pins{"tp": {"1"}, "dp": {"8"}, "zero": {"0"}}, []string{"--set plan.zero=null", "--set plan.dp=null",
			"--set cluster.nodes=3", "--set cluster.nodes=6"}},
		{alone(131072), nil, []string{"--set train.seq_len=32768"}},
		{gpt3(t, 4), Pins{"pp": {"1"}, "zero": {"0"}, "sp": {"true"}},
			[]string{"--set cluster.nodes=6 --set plan.pp=null --set plan.sp=null --set plan.zero=null",
				"--set cluster.nodes=12 --set plan.pp=null --set plan.sp=null --set plan.zero=null"}},
		{alone(16384), Pins{"micro_batches": {"1"}}, []string{"--set plan.micro_batches=null",
			"--set train.global_batch=4", "--set train.seq_len=8192"}},
	} {
		p := *c.problem
		p.Pins = c.pins
		if got := args(t, &p); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.pins, got, c.want)
		}
	}
}

func BenchmarkNoPlan(b *testing.B) {
	p := gpt3(b, 1)
	for b.Loop() {
		if _, err := Search(p); err == nil {
			b.Fatal("GPT-3 fits into 8 GPUs")
		}
	}
}

// If a pin of something that is only tried on request leaves the only legal plans, they are the answer, and there are
// no alternatives.
func TestPinsThatAloneAreLegal(t *testing.T) {
	p := problem(cluster(t, "dgx-a100", 1, 0), gpt2Config(12, 768, 12, 50257, 1024), 1024, 1, mixed)
	p.Pins = Pins{"tp": {"1"}, "pp": {"1"}, "cp": {"8"}}
	r := must(t, p)
	i := slices.IndexFunc(r.Choices, func(c Choice) bool { return c.Name == "cp" })
	if r.Best.Plan.CP != 8 || i >= 0 && r.Choices[i].RunnerUp != "" {
		t.Errorf("%v, choices %+v", r.Best.Plan.Text(), r.Choices)
	}
}
