package search

import (
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

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
