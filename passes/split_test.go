package passes

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// into lists the parameters whose gradients a function adds to.
func into(f *ir.Func) (names []string) {
	if f == nil {
		return nil
	}
	for _, n := range f.Nodes {
		if n.Op == ir.OpAccumulate {
			names = append(names, n.Attr.Into)
		}
	}
	slices.Sort(names)
	return names
}

func countOp(f *ir.Func, op ir.Op) (n int) {
	if f == nil {
		return 0
	}
	for _, x := range f.Nodes {
		if x.Op == op {
			n++
		}
	}
	return n
}

// A split backward leaves the matmuls of parameters to Weights, and nothing else; both parts together do what the whole
// one does, but for all-gathers, which are recomputed so that values are kept as they were produced.
func TestSplit(t *testing.T) {
	norms := []string{"ln1.gain", "ln2.gain"}
	matmuls := []string{"attn.k", "attn.o", "attn.q", "attn.v", "mlp.down", "mlp.gate", "mlp.up"}
	for _, c := range []struct {
		name       string
		change     func(*ir.Plan)
		stay, goes []string
		gathers    [3]int // of the whole function, and of its parts
	}{
		{"one rank a stage", func(*ir.Plan) {}, norms, matmuls, [3]int{}},
		{"sequence parallel", func(p *ir.Plan) { p.TP, p.SP = 2, true }, norms, matmuls, [3]int{4, 2, 4}},
		{"zero 2", func(p *ir.Plan) {
			p.DP, p.Zero, p.ZeroGroup = 2, 2, 2
		}, nil, slices.Sorted(slices.Values(slices.Concat(norms, matmuls))), [3]int{}},
	} {
		model := llama
		model.Layers = 2
		compiled := func(schedule string) *ir.Segment {
			plan := pipelinePlan(schedule, 2, 1, 2)
			plan.AxisOrder, plan.Precision = "tp,dp,pp", ir.FullPrecision(ir.F64)
			c.change(&plan)
			return compile(t, build(model), plan, Options{Check: true, Until: "split"}).Model.Segment("block")
		}
		whole, parts := compiled("1f1b"), compiled("zb-h1")
		all := append(into(parts.Backward), into(parts.Weights)...)
		slices.Sort(all)
		if !slices.Equal(all, into(whole.Backward)) {
			t.Errorf("%s: gradients of %v, want of %v", c.name, all, into(whole.Backward))
		}
		if !slices.Equal(into(parts.Backward), c.stay) || !slices.Equal(into(parts.Weights), c.goes) {
			t.Errorf("%s: gradients of %v stay, of %v go", c.name, into(parts.Backward), into(parts.Weights))
		}
		if a, b := countOp(whole.Backward, ir.OpMatMul), countOp(parts.Backward, ir.OpMatMul)+countOp(parts.Weights,
			ir.OpMatMul); a != b || countOp(parts.Weights, ir.OpMatMul) != 7 {
			t.Errorf("%s: %d matmuls, %d in two parts, %d in the second", c.name, a, b, countOp(parts.Weights,
				ir.OpMatMul))
		}
		got := [3]int{countOp(whole.Backward, ir.OpAllGather), countOp(parts.Backward, ir.OpAllGather),
			countOp(parts.Weights, ir.OpAllGather)}
		if got != c.gathers {
			t.Errorf("%s: all-gathers %v, want %v", c.name, got, c.gathers)
		}
		for _, n := range parts.Backward.Nodes {
			for _, o := range n.Outs {
				if savedForWeights(parts)[o.Name] && (n.Op == ir.OpAllGather || n.Op.View()) {
					t.Errorf("%s: %v is kept", c.name, n)
				}
			}
		}
	}
}
