package codegen

import (
	"regexp"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
)

var normGradCall = regexp.MustCompile(`gpu\.(?:LayerNorm|RMSNorm)Grads\(.*\)`)

// On a GPU and in 16 bits, one call computes all gradients of a norm, with the residual's gradient if that is added. In
// other types and on CPUs nothing does.
func TestNormGradientsShareAKernel(t *testing.T) {
	config := fusedModels()[1] // GPT-2
	plan := ir.SerialPlan(config.Layers, 2, ir.FullPrecision(ir.F32))
	mixed := ir.SerialPlan(config.Layers, 2, bf16)
	got := normGradCall.FindAllString(string(generateConfig(t, GPU, config, mixed)), -1)
	want := []string{
		"gpu.LayerNormGrads(r, dH, dLn2, dLn2_2, dUp0, dY, h, ln2Gain, 16, 8, 1e-05)",
		"gpu.LayerNormGrads(r, dX, dLn1_3, dLn1_4, dLn1_2, dH, x, ln1Gain, 16, 8, 1e-05)",
		"gpu.LayerNormGrads(r, dLn_3, dLn, dLn_2, dLogits_2, gpu.Buf[num.BF16]{}, x, lnGain, 16, 8, 1e-05)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls:\n%q\nwant:\n%q", got, want)
	}
	for _, c := range []struct {
		on   Target
		plan ir.Plan
	}{{GPU, plan}, {CPU, plan}, {CPU, mixed}} {
		if got := normGradCall.FindAllString(string(generateConfig(t, c.on, config, c.plan)), -1); got != nil {
			t.Errorf("target %v, %v: %q", c.on, c.plan.Precision, got)
		}
	}
}

// Sums that are not those of the norm's own operands, or in another type, stay separate.
func TestNormGradientsThatStaySeparate(t *testing.T) {
	sum := func(op ir.Op, elem ir.Elem, args ...*ir.Value) *ir.Node {
		out := &ir.Value{Type: ir.Type{Elem: elem, Dims: args[0].Type.Dims[1:]}, Place: ir.Place{Region: ir.PlaceGrad}}
		return &ir.Node{Op: op, Args: args, Outs: []*ir.Value{out}}
	}
	rows := ir.Type{Elem: ir.BF16, Dims: []ir.Extent{{Dim: ir.Seq, Size: 4}, {Dim: ir.Hidden, Size: 8}}}
	dy, x, other := &ir.Value{Type: rows}, &ir.Value{Type: rows}, &ir.Value{Type: rows}
	gain := &ir.Value{Type: ir.Type{Elem: ir.BF16, Dims: rows.Dims[1:]}}
	g := &normGrad{dx: &ir.Node{Op: ir.OpLayerNormDX, Args: []*ir.Value{dy, x, gain}}}
	for name, c := range map[string]struct {
		node       *ir.Node
		gain, bias bool
	}{
		"gain":                {sum(ir.OpLayerNormDGain, ir.F32, dy, x), true, false},
		"bias":                {sum(ir.OpReduceSum, ir.F32, dy), false, true},
		"another norm's gain": {sum(ir.OpRMSNormDGain, ir.F32, dy, x), false, false},
		"gain of another x":   {sum(ir.OpLayerNormDGain, ir.F32, dy, other), false, false},
		"bias of another dy":  {sum(ir.OpReduceSum, ir.F32, other), false, false},
		"gain in bf16":        {sum(ir.OpLayerNormDGain, ir.BF16, dy, x), false, false},
		"bias in bf16":        {sum(ir.OpReduceSum, ir.BF16, dy), false, false},
	} {
		if gain, bias := g.isGain(c.node), g.isBias(c.node); gain != c.gain || bias != c.bias {
			t.Errorf("%s: gain %v, bias %v", name, gain, bias)
		}
	}
}
