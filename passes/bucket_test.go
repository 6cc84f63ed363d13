package passes

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// In a layer's run of a class, parameters with weight decay come first, and the others follow without a gap that a
// parameter would fit into. The optimizer then has two launches for a layer, one if no parameter has weight decay.
func TestDecayedParametersComeFirst(t *testing.T) {
	c := llama
	c.Family, c.KVHeads, c.AttentionBias, c.QKVBias, c.MLPBias, c.RopeTheta = spec.GPT2, c.Heads, true, true, true, 0
	c.Activation = "gelu_new"
	plan := planOf(c, 2, 2, false)
	p, err := Compile(buildIn(c, plan.Precision.Compute), plan, ir.Recipe{Optimizer: "adamw", Sides: true},
		Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	runs, mixed := map[chunkKey][]ir.Slot{}, 0
	for _, s := range p.Slots {
		k := chunkKey{s.Segment, s.Class}
		runs[k] = append(runs[k], s)
	}
	decay := func(s ir.Slot) bool { return p.Model.Segment(s.Segment).Forward.Value(s.Param).Param.Decay }
	for k, slots := range runs {
		slices.SortFunc(slots, func(a, b ir.Slot) int { return a.Offset - b.Offset })
		end, changes := 0, 0
		for i, s := range slots {
			if s.Offset != RoundUp(end, BucketLine) {
				t.Errorf("%v: %s is at %d, and the parameter before it ends at %d", k, s.Param, s.Offset, end)
			}
			end = s.Offset + s.Elems
			if i > 0 && decay(s) != decay(slots[i-1]) {
				changes++
			}
		}
		if changes > 1 || changes == 1 && !decay(slots[0]) {
			t.Errorf("%v: weight decay changes %d times from one parameter to the next", k, changes)
		}
		mixed += changes
	}
	if mixed == 0 {
		t.Error("no layer has parameters with and without weight decay")
	}
}
