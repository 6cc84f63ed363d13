package passes

import (
	"fmt"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
)

// In blocks, GEMMs with weights and their gradients round their operands, and no others: not the router's, nor the
// classifier's; and none where the plan does not say so.
func TestFP8(t *testing.T) {
	c := spec.Config{Family: spec.Mixtral, Vocab: 59, Hidden: 16, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 4,
		MaxPositions: 32, Activation: "silu", NormEps: 1e-5, InitStd: 0.2,
		RopeTheta: 10000, Experts: 4, Choices: 2, ExpertFFN: 8, RouteScale: 1, RouteShare: true}
	want := map[bool]string{false: "[ 8]", true: "[ 1 e4m3,e4m3 7]"}
	// two of each round of experts are recomputed
	back := map[bool]string{false: "[ 18]", true: "[ 2 e4m3,e4m3 2 e4m3,e5m2 7 e5m2,e4m3 7]"}
	for isFP8 := range want {
		prec := ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
			Moments: ir.F32, FP8: isFP8}
		m := zoo.Build("m", c, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.BF16})
		p, err := Compile(m, ir.SerialPlan(2, 1, prec), ir.Recipe{Optimizer: "adamw"}, Options{Check: true,
			Until: "precision"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Model.Segments {
			forward, backward := eightsOf(s.Forward), eightsOf(s.Backward)
			if s.Name == ir.BlockName && (forward != want[isFP8] || backward != back[isFP8]) {
				t.Errorf("blocks round %s and %s, want %s and %s", forward, backward, want[isFP8], back[isFP8])
			}
			if s.Name != ir.BlockName && (len(forward) > len("[ 1]") || len(backward) > len("[ 2]")) {
				t.Errorf("%s rounds %s and %s", s.Name, forward, backward)
			}
		}
	}
}

// eightsOf counts what a function's GEMMs round their operands to.
func eightsOf(f *ir.Func) string {
	n := map[string]int{}
	for _, x := range f.Nodes {
		if x.Op == ir.OpMatMul {
			n[x.Attr.In]++
		}
	}
	out := []string{}
	for _, in := range []string{"", "e4m3,e4m3", "e4m3,e5m2", "e5m2,e4m3"} {
		if n[in] > 0 {
			out = append(out, fmt.Sprint(in, " ", n[in]))
		}
	}
	return fmt.Sprint(out)
}
