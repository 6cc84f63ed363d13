package search

import (
	"math/rand/v2"
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
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	plain := ir.SerialPlan(12, 8, p.Precision)
	savedBytes, flops := blocksOf(t, s, plain)
	none := s.priced(s.candidateOf(plain)).Predict.Time
	for _, x := range []struct {
		kind              string
		every             int
		saved             float64 // fraction of the blocks' saved bytes, at least
		flopsMin, timeMax float64 // least increase of flops, largest increase of compute time
	}{{"full", 1, 0.75, 0.20, 0.35}, {"full", 4, 0.65, 0.20, 0.35}, {"selective", 1, 0.40, 0.01, 0.15}} {
		plan := plain
		plan.Recompute, plan.RecomputeLayers, plan.RecomputeEvery = x.kind, 12, x.every
		k, f := blocksOf(t, s, plan)
		time := s.priced(s.candidateOf(plan)).Predict.Time
		more := float64(time.Recompute / none.Compute)
		if 1-k/savedBytes < x.saved || f/flops-1 < x.flopsMin || f/flops-1 > x.timeMax || more <= 0 ||
			more > x.timeMax {
			t.Errorf("%s, every %d: blocks keep %.3f of what they kept, for %.3f of the flops and %.3f of the time",
				x.kind, x.every, k/savedBytes, f/flops, 1+more)
		}
		if rest := float64(time.Compute / none.Compute); rest > 1 || rest < 0.98 { // less, because less is written
			t.Errorf("%s, every %d: beside what is recomputed arithmetic takes %v, without recompute %v", x.kind,
				x.every, time.Compute, none.Compute)
		}
	}
}

// blocksOf returns the bytes that a plan's blocks save and their flops, from its program's tables.
func blocksOf(t *testing.T, s *searcher, plan ir.Plan) (savedBytes, flops float64) {
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
	s, err := newSearcher(p)
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

// What a plan may not recompute is reported by its key.
func TestIllegalRecompute(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 2), gpt2Config(4, 64, 4, 64, 16), 16, 8, ir.FullPrecision(ir.F32))
	d := DimsOf(p.Model)
	for key, change := range map[string]func(*ir.Plan){
		"recompute":        func(p *ir.Plan) { p.Recompute = "some" },
		"recompute_layers": func(p *ir.Plan) { p.RecomputeLayers = 5 },
		"recompute_every":  func(p *ir.Plan) { p.Recompute, p.RecomputeEvery = "selective", 2 },
		"recompute_split":  func(p *ir.Plan) { p.RecomputeSplit, p.SP = true, true },
	} {
		plan := ir.SerialPlan(4, 1, p.Precision)
		plan.TP, plan.MicroBatches = 2, 8
		plan.Recompute, plan.RecomputeLayers = "full", 4
		if rs := Legal(plan, d, p.Cluster, p.GlobalBatch); len(rs) > 0 {
			t.Fatal(rs)
		}
		change(&plan)
		if rs := Legal(plan, d, p.Cluster, p.GlobalBatch); len(rs) != 1 || rs[0].Key != key {
			t.Errorf("%s: %v", key, rs)
		}
		if _, err := passes.Compile(p.Model, plan, p.Recipe, passes.Options{}); err == nil {
			t.Errorf("%s: it compiles", key)
		}
	}
}

// Groups of fewer than all blocks are tried if a job pins their number, with every group size that the job allows.
// The answer equals pricing each.
func TestPinnedGroupsAreBruteForce(t *testing.T) {
	r, seen := rand.New(rand.NewPCG(8, 26)), map[string]int{}
	for _, pins := range []Pins{
		{"recompute_every": {"2"}, "recompute_layers": {"3"}},
		{"recompute_every": {"2", "3"}, "recompute_layers": {"2", "4"}},
		{"recompute_every": {"1", "2"}},
		{"recompute": {"full"}, "recompute_layers": {"3", "4"}},
	} {
		for range 6 {
			p := problem(cluster(t, "dgx-h100", 1, 4), gpt2Config(6, 64, 4, 64, 64), 64, 8, mixed)
			p.Pins = pins.Merge(Pins{"pp": {"1", "2"}})
			tighten(t, r, p, nil)
			b := bruteForce(t, p, nil)
			c, n, found := b.choose(b.space, nil)
			b.run().agrees(c, n, found)
			if !found {
				seen["none fits"]++
				continue
			}
			if reasons := Check(p, c.fastest.Plan); len(reasons) > 0 || !followsPins(pins, &c.fastest.Plan) {
				t.Errorf("with %s: %v: %v", pins, c.fastest.Plan.Text(), reasons)
			}
			if c.fastest.Plan.RecomputeEvery > 1 {
				seen["groups"]++
				if c.fastest.Plan.RecomputeLayers < c.fastest.Plan.LargestChunk() {
					seen["of some"]++
				}
			}
		}
	}
	t.Log(seen)
	if seen["groups"] == 0 || seen["of some"] == 0 || seen["none fits"] == 0 {
		t.Errorf("%v: the pins and memories are too tame", seen)
	}
}

// If no plan that is tried has the pinned values together, there is a message for each of them.
func TestUntriedPinsAreNamed(t *testing.T) {
	e := &enumeration{p: &Problem{Pins: Pins{"recompute_layers": {"8"}, "zero": {"1", "2"}, "tp": {"2"}}}}
	rs := e.untried()
	if len(rs) != 2 || rs[0].Message != "zero 1 or 2: no plan that is tried combines it with the other pins" ||
		rs[1].Key != "recompute_layers" {
		t.Errorf("%v", rs)
	}
	e.p.Pins = nil
	if len(e.untried()) == 0 {
		t.Error("nothing is said")
	}
}
