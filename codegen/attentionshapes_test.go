package codegen

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"
)

// Options that decide whether cuDNN may compute the attention.
var attentionOptions = []func(c *spec.Config){
	func(*spec.Config) {},
	func(c *spec.Config) { c.Window, c.Local = 4, "1f1l" },
	func(c *spec.Config) { c.KVHeads = 4 },
	func(c *spec.Config) { c.HeadDim = 12 },
	func(c *spec.Config) { c.HeadDim = 136 },
	func(c *spec.Config) { c.DropAttn = 0.1 },
	func(c *spec.Config) { c.AttentionSoftcap = 50 },
	func(c *spec.Config) { c.Family, c.KVHeads, c.RopeTheta, c.EmbedNorm = spec.Bloom, 4, 0, true },
}

// The workspace of cuDNN attention that is priced is that of the shapes that a device prepares.
func TestAttentionIsPriced(t *testing.T) {
	cluster, err := costmodel.Resolve(costmodel.Ref{Node: "dgx-h100", Nodes: 1}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[bool]int{}
	for i, option := range attentionOptions {
		for _, elem := range []ir.Elem{ir.BF16, ir.F32} {
			c := small
			c.Layers, c.HeadDim = 4, 8
			option(&c)
			m := zoo.Build("small", c, zoo.Options{SeqLen: 8, Batch: 1, Elem: elem})
			recipe := ir.Recipe{Optimizer: "adamw", Sides: engines.PlancEngine.Sides(cluster),
				VocabMultiple: engines.PlancEngine.VocabMultiple(cluster)}
			for _, change := range communicatorPlans {
				plan := ir.SerialPlan(c.Layers, 2, ir.FullPrecision(elem))
				plan.AxisOrder, plan.MicroBatch = "tp,cp,dp,pp", 3
				change(&plan)
				p, err := passes.Compile(m, plan, recipe, passes.Options{Check: true})
				if err != nil {
					t.Fatalf("%v: %v", plan, err)
				}
				s, err := price.New(&space.Problem{Model: m, Cluster: cluster, Precision: plan.Precision,
					Recipe: recipe, GlobalBatch: plan.MicroBatch * plan.MicroBatches * plan.DP, Headroom: 0.1})
				if err != nil {
					t.Fatal(err)
				}
				want := preparedWorkspace(p)
				seen[want > 0]++
				other := int64(41 << 20) // constants, feeds, sums, GEMMs
				priced := s.Priced(price.CandidateOf(plan)).Predict
				if got := priced.MemoryBytes.OverheadParts.Workspaces - other; got != want {
					t.Errorf("option %d in %v, %v: priced are %d bytes of attention, the device takes %d", i, elem,
						plan.Text(), got, want)
				}
			}
		}
	}
	if seen[true] < 20 || seen[false] < 20 {
		t.Errorf("with and without a workspace: %v", seen)
	}
}

// preparedWorkspace returns the largest workspace of a program's attention: the scores of a rank's sequences in 16
// bits, unless cuDNN refuses the heads. All of these are small enough for one part.
func preparedWorkspace(p *ir.Program) (bytes int64) {
	for _, a := range lowered(p).Attentions {
		if a.Dim%8 == 0 && a.Dim <= 128 {
			bytes = max(bytes, int64(2*a.Batch*a.Heads*a.Group*a.Seq*a.KSeq))
		}
	}
	return bytes
}
