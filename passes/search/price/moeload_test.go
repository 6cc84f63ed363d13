package price

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// loads returns the expected load of a small model's experts, on a CPU or not.
func loads(t *testing.T, node string, slack float64, micro, capacity int) moeLoad {
	cfg := llamaConfig(2, 64, 4, 2, 64, 256, 64)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN = "qwen3_moe", 8, 2, 64
	p := problem(cluster(t, node, 1, 2), cfg, 64, 16, ir.FullPrecision(ir.F32))
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	s.dims.Capacity = capacity
	plan := s.dims.SerialPlan(micro, p.Precision)
	plan.MoESlack, plan.DP = slack, 2
	k := keyOf(plan)
	return s.moeLoad(&k, micro)
}

// With any capacity factor, a CPU's GEMMs process the rows of the tokens only, unless gaps are too short to skip.
func TestLoadIsOfTokens(t *testing.T) {
	const micro = 8
	tokens := float64(micro * 64 * 2 / 8) // per expert
	for _, slack := range []float64{1.25, 2, 4} {
		l := loads(t, "cpu", slack, micro, 0)
		if got := l.rounds * l.filledPart * math.Ceil(slack*16) * micro; math.Abs(got/tokens-1) > 1e-12 {
			t.Errorf("slack %v: %+v: products of %v rows of each expert, there are tokens for %v", slack, l,
				got, tokens)
		}
		if g := loads(t, "dgx-h100", slack, micro, 0); g.filledPart != 1 || g.rounds != l.rounds {
			t.Errorf("slack %v: a GPU has %+v, a CPU %+v", slack, g, l)
		}
	}
	if l := loads(t, "cpu", 1.25, 1, 20); l.rounds != 1 || l.filledPart != 1 { // 20 slots, 4 of which stay empty
		t.Errorf("a gap of 4 places is passed over: %+v", l)
	}
}

// Tokens that an expert drops need no further round and cause no work.
func TestLoadOfCapacity(t *testing.T) {
	if l := loads(t, "cpu", 1, 8, 0); l.rounds != 2 {
		t.Errorf("without a capacity: %+v", l)
	}
	if l := loads(t, "cpu", 1, 8, 16); l.rounds != 1 {
		t.Errorf("with one of an even share: %+v", l)
	}
	// rows of an expert, by its capacity per sequence
	for capacity, want := range map[int]float64{0: 16, 16: 16, 12: 12, 4: 4} {
		if l := loads(t, "cpu", 4, 8, capacity); l.rounds != 1 || l.rowRun != 8*want || l.filledPart != want/64 {
			t.Errorf("products of a capacity of %d: %+v, want %v rows of 64 places", capacity, l, want)
		}
	}
}

// The work of a GEMM with a quarter of its slots filled is that of a quarter; the empty slots are read, and those of
// a result written.
func TestFill(t *testing.T) {
	l := moeLoad{rounds: 1, filledPart: 0.25, rowRun: 32}
	op := func() costmodel.Op {
		return costmodel.Op{Kind: costmodel.Matrix, Flops: 800, Bytes: 4 * 2 * (128*10 + 10*20 + 128*20),
			Shape: costmodel.GEMM{M: 128, N: 20, K: 10, Batch: 2}}
	}
	rows := op()
	if e := l.skipEmptySlots(&rows, true); rows.Flops != 200 || rows.Shape.M != 32 || rows.Shape.K != 10 ||
		e.Bytes != 4*2*96*(10+20) || e.Flops != 2*96*10 {
		t.Errorf("rows: %+v, empty %+v", rows, e)
	}
	sums := op()
	sums.Shape = costmodel.GEMM{M: 10, N: 20, K: 128, Batch: 2}
	if e := l.skipEmptySlots(&sums, false); sums.Flops != 200 || sums.Shape.M != 10 || sums.Shape.K != 32 ||
		e.Bytes != 4*2*96*10 {
		t.Errorf("sums: %+v, empty %+v", sums, e)
	}
	other := costmodel.Op{Kind: costmodel.Vector, Flops: 8}
	if e := l.skipEmptySlots(&other, true); other.Flops != 8 || e != (costmodel.Op{}) {
		t.Errorf("a loop over elements became %+v and %+v", other, e)
	}
}

// The work for empty slots and for recomputation is reported separately. A larger capacity factor takes longer only
// by the empty slots, if one round is enough; the rest is the tokens' work. A model without experts has neither, nor
// do engines without slots.
func TestExpertsTimeHasNames(t *testing.T) {
	cfg := llamaConfig(4, 1024, 8, 8, 2048, 2048, 1024)
	price := func(engine string, slack float64) (costmodel.Time, *Pricer) {
		p := problem(cluster(t, "dgx-h100", 1, 1), cfg, 1024, 32, ir.FullPrecision(ir.BF16))
		p.Engine = engines.EngineOf(engine)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		plan := s.dims.SerialPlan(32, p.Precision)
		plan.MoESlack = slack
		return s.stepOf(CandidateOf(plan)).Simulate(), s
	}
	if dense, _ := price("planc", 0); dense.ExpertRecompute != 0 || dense.ExpertEmpty != 0 {
		t.Errorf("without experts: %+v", dense)
	}
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN = "qwen3_moe", 8, 2, 2048
	if other, _ := price("megatron", 1.25); other.ExpertRecompute != 0 || other.ExpertEmpty != 0 {
		t.Errorf("megatron: %+v", other)
	}
	less, s := price("planc", 1.25)
	more, _ := price("planc", 2.5)
	near := func(a, b costmodel.Seconds) bool { return math.Abs(float64(a/b)-1) < 0.03 } // partly filled tiles
	if !near(more.Compute, less.Compute) || !near(more.ExpertRecompute, less.ExpertRecompute) ||
		more.ExpertEmpty < 4*less.ExpertEmpty {
		t.Errorf("slack 1.25: %+v\nslack 2.5: %+v", less, more)
	}
	if e := less.ExpertEmpty / (more.Total() - less.Total() + less.ExpertEmpty); !near(e,
		less.ExpertEmpty/more.ExpertEmpty) {
		t.Errorf("slack 2.5 takes %v longer, of which empty %v", more.Total()-less.Total(),
			more.ExpertEmpty-less.ExpertEmpty)
	}
	// recomputation in groups does not grow with the capacity factor either
	grouped := func(slack float64) costmodel.Time {
		plan := s.dims.SerialPlan(32, ir.FullPrecision(ir.BF16))
		plan.MoESlack, plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery = slack, "full", 4, 2
		return s.stepOf(CandidateOf(plan)).Simulate()
	}
	if a, b := grouped(1.25), grouped(2.5); a.Recompute == 0 || !near(a.Recompute, b.Recompute) ||
		a.ExpertEmpty <= less.ExpertEmpty {
		t.Errorf("in groups, slack 1.25: %+v\nslack 2.5: %+v", a, b)
	}
	// of the three GEMMs of a SwiGLU expert, the last is not recomputed
	for _, p := range s.profiles {
		for i := range p.segs {
			repeated := 0.0
			for _, o := range p.segs[i].backward.ops {
				if o.recomputed && o.at.Kind == costmodel.Matrix {
					repeated += o.at.Flops
				}
			}
			if want := p.segs[i].forward.roundFlops.atOne * 2 / 3; repeated != want {
				t.Errorf("%s: products of %v flops again, want %v", p.segs[i].variant.Name, repeated, want)
			}
		}
	}
}

// There is one more round if the fullest expert has more tokens than slots, and none if it cannot.
func TestNextRound(t *testing.T) {
	cfg := llamaConfig(2, 64, 4, 2, 64, 256, 64)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN = "qwen3_moe", 8, 2, 64
	p := problem(cluster(t, "dgx-h100", 1, 2), cfg, 64, 16, mixed)
	plan := space.DimsOf(p.Model).SerialPlan(8, p.Precision)
	for _, c := range []struct{ slack, rounds, room float64 }{ // 512 tokens, 128 for each expert, 148 for the fullest
		{1, 2, 2}, {1.125, 2, 2.25}, {1.25, 1, 1.25}, {2, 1, 2}, {4, 1, 0}, // 4: a slot for every token
	} {
		plan.MoESlack = c.slack
		e := ExpertsOf(p, plan)
		if want := 1 + math.Sqrt(2*math.Log(8)*0.75/128); math.Abs(e.Fullest-want) > 1e-9 || e.Rounds != c.rounds ||
			e.Room != c.room {
			t.Errorf("slack %v: %+v, want %v rounds up to %v, the fullest %v", c.slack, e, c.rounds, c.room, want)
		}
	}
}
