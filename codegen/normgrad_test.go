package codegen

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

var normGradCall = regexp.MustCompile(`(?s)gpu\.(?:LayerNorm|RMSNorm)Grads\(.*?\) \{`)

// normGradCalls returns the calls in a generated file, with single spaces.
func normGradCalls(file []byte) (calls []string) {
	for _, call := range normGradCall.FindAllString(string(file), -1) {
		calls = append(calls, strings.Join(strings.Fields(call), " "))
	}
	return calls
}

// On a GPU and in 16 bits, one call computes all gradients of a norm, with the residual's gradient if that is added. In
// other types and on CPUs nothing does.
func TestNormGradientsShareAKernel(t *testing.T) {
	config := fusedModels()[1] // GPT-2
	plan := ir.SerialPlan(config.Layers, 2, ir.FullPrecision(ir.F32))
	mixed := ir.SerialPlan(config.Layers, 2, bf16)
	got := normGradCalls(generateConfig(t, GPU, config, mixed))
	want := []string{
		"gpu.LayerNormGrads(r, gpu.NormGrads[num.BF16]{ Cols: 8, DX: dH, DY: dUp0, Eps: 1e-05, Gain: ln2Gain, " +
			"More: dY, Rows: 16, X: h, }, dLn2, dLn2_2) {",
		"gpu.LayerNormGrads(r, gpu.NormGrads[num.BF16]{ Cols: 8, DX: dX, DY: dLn1_2, Eps: 1e-05, Gain: ln1Gain, " +
			"More: dH, Rows: 16, X: x, }, dLn1_3, dLn1_4) {",
		"gpu.LayerNormGrads(r, gpu.NormGrads[num.BF16]{ Cols: 8, DX: dLn_3, DY: dLogits_2, Eps: 1e-05, Gain: lnGain, " +
			"Rows: 16, X: x, }, dLn, dLn_2) {",
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls:\n%q\nwant:\n%q", got, want)
	}
	for _, c := range []struct {
		on   Target
		plan ir.Plan
	}{{GPU, plan}, {CPU, plan}, {CPU, mixed}} {
		if got := normGradCalls(generateConfig(t, c.on, config, c.plan)); got != nil {
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
