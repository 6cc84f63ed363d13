package codegen

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels"
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

// The kernels support the rows for which package ir says that a GPU computes all gradients of a norm with one kernel.
func TestNormGradientsHaveKernels(t *testing.T) {
	for cols := ir.NormPack; cols <= ir.NormRow; cols += ir.NormPack {
		packs, parts := kernels.NormGrads(1000, cols)
		if packs < 1 || packs > 4 || parts < 1 {
			t.Fatalf("%d columns: %d packs, %d parts", cols, packs, parts)
		}
	}
	for _, cols := range []int{ir.NormPack - 1, ir.NormRow + 1, ir.NormRow + ir.NormPack} {
		packs, _ := kernels.NormGrads(1000, cols)
		if packs != 0 {
			t.Errorf("%d columns: %d packs, want no kernel", cols, packs)
		}
	}
}
