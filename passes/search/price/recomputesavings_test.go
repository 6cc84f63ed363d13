package price

import (
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// Gradient checkpointing costs GPT-2's blocks 20 to 35 % of their compute. If each block's input is saved, it saves
// more than three quarters of their activation memory. With one input per four blocks, GPT-2 has too few blocks to
// save as much, because a group's saved values exist while it is recomputed. Selective recomputation saves less, for
// less.
func TestRecomputeSavesThreeQuarters(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 1), gpt2Config(12, 768, 12, 50257, 1024), 1024, 8, ir.FullPrecision(ir.BF16))
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	plain := ir.SerialPlan(12, 8, p.Precision)
	savedBytes, flops := blocksOf(t, s, plain)
	none := s.Priced(CandidateOf(plain)).Predict.Time
	for _, x := range []struct {
		kind              string
		every             int
		saved             float64 // fraction of the blocks' saved bytes, at least
		flopsMin, timeMax float64 // least increase of flops, largest increase of compute time
	}{{"full", 1, 0.75, 0.20, 0.35}, {"full", 4, 0.65, 0.20, 0.35}, {"selective", 1, 0.40, 0.01, 0.15}} {
		plan := plain
		plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery = x.kind, 12, x.every
		k, f := blocksOf(t, s, plan)
		time := s.Priced(CandidateOf(plan)).Predict.Time
		more := float64(time.Recompute / none.Compute)
		if 1-k/savedBytes < x.saved || f/flops-1 < x.flopsMin || f/flops-1 > x.timeMax || more <= 0 ||
			more > x.timeMax {
			t.Errorf("%s, every %d: blocks keep %.3f of what they kept, for %.3f of the flops and %.3f of the time",
				x.kind, x.every, k/savedBytes, f/flops, 1+more)
		}
		rest := float64(time.Compute / none.Compute)
		t.Logf("%s, every %d: the rest takes %.4f of the time without recompute", x.kind, x.every, rest)
		if rest > 1 || rest < 0.98 { // less, because less is written
			t.Errorf("%s, every %d: beside what is recomputed arithmetic takes %v, without recompute %v", x.kind,
				x.every, time.Compute, none.Compute)
		}
	}
}

// blocksOf returns the bytes that a plan's blocks save and their flops, from its program's tables.
func blocksOf(t *testing.T, s *Pricer, plan ir.Plan) (savedBytes, flops float64) {
	t.Helper()
	prog, err := passes.Compile(s.problem.Model, plan, s.problem.Recipe, passes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range prog.Stages[0].Chunks[0].Runs {
		if r.Segment != "block" {
			continue
		}
		fs := []*ir.Func{prog.Kind(&r).Forward, prog.Kind(&r).Backward}
		savedBytes += float64(r.SavedParts() * r.Stride)
		if r.Every > 0 {
			savedBytes += float64(r.Every*r.Inner - prog.Stream)
			fs = append(fs, prog.Kind(&r).Forward)
		}
		for _, f := range fs {
			for _, n := range f.Nodes {
				flops += float64(r.Count) * n.Flops(prog.Mesh)
			}
		}
	}
	return savedBytes, flops
}

// A model of many blocks with a checkpoint per four blocks saves less than a quarter, as the rule says.
func TestCheckpointEachFourLayers(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 1), gpt2Config(48, 1600, 25, 50257, 1024), 1024, 8,
		ir.FullPrecision(ir.BF16))
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	plain := ir.SerialPlan(48, 1, p.Precision)
	savedBytes, _ := blocksOf(t, s, plain)
	plan := plain
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery = "full", 48, 4
	if now, _ := blocksOf(t, s, plan); now > savedBytes/4 {
		t.Errorf("blocks keep %.0f bytes, without recompute %.0f", now, savedBytes)
	}
}
