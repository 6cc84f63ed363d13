package passes

import (
	"testing"

	"github.com/planc-dev/planc/ir"
	"pgregory.net/rapid"
)

// Groups, and ops that backward makes again, leave what a block computes as it is: its results and gradients are of the same
// operations in the same order, and each is there when it is taken; whatever the block is, however it is split or recomputed.
func TestFusedBlocks(t *testing.T) {
	groups, saved := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		m := drawBlock(r)
		layouts := rapid.SampledFrom([]string{"region mlp\nregion norm", "mesh tp=2\nregion mlp ffn@tp\nregion norm", "mesh tp=2\nregion mlp\nregion norm seq@tp"}).Draw(r, "layouts") +
			rapid.SampledFrom([]string{"", "", "\nrecompute full", "\nrecompute selective"}).Draw(r, "recompute")
		split := rapid.Bool().Draw(r, "split")
		plain, fused := holds(r, func(until string) *ir.Program {
			p := laidOut(t, m, layouts)
			if split {
				p.Plan.Schedule = "zb-h1"
			}
			return runTo(r, p, until)
		})
		for _, f := range fused.Model.Segments[0].Funcs() {
			for _, n := range f.Nodes {
				if n.Op == ir.OpFused {
					groups++
				}
			}
		}
		saved += len(savedNames(plain.Model.Segments[0])) - len(savedNames(fused.Model.Segments[0]))
	})
	if groups == 0 || saved <= 0 {
		t.Errorf("%d groups, and %d values less were saved: nothing was put to the test", groups, saved)
	}
}

// So it is with every model and plan. What backward makes again is not saved, and takes no memory elsewhere: no layer saves more for it,
// and no arena is larger.
func TestFusedModels(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c, plan := anyModel(r)
		m := buildIn(c, plan.Precision.Compute)
		compile := func(until string) *ir.Program {
			p, err := Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, Options{Check: true, Until: until})
			if err != nil {
				r.Skip(err) // a dim that an axis does not divide
			}
			return p
		}
		holds(r, compile)
		p := compile("")
		var plain *ir.Program
		without(func() { plain = compile("") }, "remake")
		if p.ArenaBytes() > plain.ArenaBytes() {
			r.Errorf("%s: an arena of %d bytes, without remake of %d", plan.Text(), p.ArenaBytes(), plain.ArenaBytes())
		}
		for i, s := range p.Saved {
			if s.Bytes > plain.Saved[i].Bytes {
				r.Errorf("%s: %s saves %d bytes, without remake %d", plan.Text(), s.Segment, s.Bytes, plain.Saved[i].Bytes)
			}
		}
	})
}
