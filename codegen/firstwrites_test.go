package codegen

import (
	"fmt"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

// Matmuls overwrite gradients in the first micro-batch; sums over rows and embeddings add to cleared ones. A tied
// embedding's gradient is written by the head, whose backward pass comes first, unless its part that makes that
// gradient may come after the embedding's own.
func TestWritten(t *testing.T) {
	block := []string{"block.attn.q", "block.attn.k", "block.attn.v", "block.attn.o", "block.mlp.gate", "block.mlp.up",
		"block.mlp.down"}
	tied := append(slices.Clone(block), "head.wte")
	for _, c := range []struct {
		name   string
		change func(*ir.Plan)
		want   []string
	}{
		{"serial", func(*ir.Plan) {}, tied},
		{"ends on two stages, each with a copy", func(p *ir.Plan) {
			p.PP, p.Schedule, p.StageLayers = 2, "zb-h1", "1,1"
		}, tied},
		{"both ends on one stage, backward split", func(p *ir.Plan) {
			p.PP, p.VPP, p.Schedule, p.StageLayers = 2, 2, "zb-v", "0,1,1,0"
		}, block},
		{"gradients kept in 16 bits", func(p *ir.Plan) { p.Precision.Grads = ir.BF16 }, nil},
	} {
		var got []string
		g := compiled(t, c.change)
		for _, s := range g.p.Model.Segments {
			for _, w := range g.written(s) {
				got = append(got, s.Name+"."+w.Name)
			}
		}
		for _, list := range [][]string{got, c.want} {
			slices.Sort(list)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: written are %v, want %v", c.name, got, c.want)
		}
	}
}

// compiled returns the parameters of the small model under a plan of four micro-batches.
func compiled(t *testing.T, change func(*ir.Plan)) parameters {
	t.Helper()
	plan := ir.SerialPlan(small.Layers, 1, ir.FullPrecision(ir.F32))
	plan.MicroBatches, plan.AxisOrder = 4, "tp,dp,pp"
	change(&plan)
	m := zoo.Build("small llama", small, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.F32})
	p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", plan, err))
	}
	return parameters{p}
}
