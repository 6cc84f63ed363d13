package price

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/internal/problems"
)

// The table of the documents: model states of 7 B parameters in f32 under AdamW on 8 ranks take 112, 63, 38.5 and 14
// GB per rank with ZeRO 0 to 3.
func TestZeroTable(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 0), llamaConfig(32, 4096, 32, 32, 11008, 32000, 2048), 2048, 8,
		ir.FullPrecision(ir.F32))
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	scale := 7e9 / float64(problems.Params(p.Model)) / 1e9
	for zero, want := range []float64{112, 63, 38.5, 14} {
		plan := ir.SerialPlan(32, 1, p.Precision)
		plan.DP, plan.Zero = 8, zero
		if zero > 0 {
			plan.ZeroGroup = 8
		}
		m, _ := s.candidateMemory(CandidateOf(plan))
		if got := float64(m.Params+m.Grads+m.Optimizer) * scale; math.Abs(got/want-1) > 1e-4 {
			t.Errorf("zero %d: %.3f GB, the documents say %v", zero, got, want)
		}
	}
}

// The example of the documents: 100 B parameters on 64 GPUs as dp 8 · pp 4 · tp 2 are 12.5 B per GPU.
func TestHundredBillionIn64Parts(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 8, 0), gpt2Config(80, 10176, 96, 50257, 2048), 2048, 512, mixed)
	if n := float64(problems.Params(p.Model)) / 1e9; n < 99.5 || n > 100.5 {
		t.Fatalf("the model has %.2f B parameters", n)
	}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	even := ir.SerialPlan(80, 1, mixed)
	even.DP, even.PP, even.TP, even.MicroBatches, even.AxisOrder = 8, 4, 2, 64, "tp,dp,pp"
	even.Schedule, even.StageLayers = "1f1b", "20,20,20,20"
	tables, sum := s.tables(even), 0.0
	for i := range tables.Stages {
		got := float64(tables.Stages[i].Region(ir.RegionParams).Size) / float64(mixed.Params.Size()) / 1e9
		sum += got
		if math.Abs(got-12.5) > 0.4 {
			t.Errorf("stage %d holds %.2f B parameters", i, got)
		}
	}
	// the last stage also holds the embedding, to which its head is tied
	if mean := sum / 4; math.Abs(mean-12.5) > 0.1 {
		t.Errorf("a GPU holds %.2f B parameters in the mean", mean)
	}
}
