package codegen

import (
	"bytes"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// half computes in bf16 and accumulates in f32.
func half(p *ir.Plan) {
	parallel(p)
	p.Precision = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
		Moments: ir.F32}
}

// The functions of a GPU's program are those of a CPU's, with package gpu's calls in place of kernels on slices:
// nothing of a CPU's kernels is left.
func TestFunctionTextOnGPU(t *testing.T) {
	src := generateFor(t, GPU, half)
	compareText(t, src, "testdata/functions.gpu.go.txt", "embedForward", "embedBackward", "blockForward",
		"headBackward")
	for _, word := range []string{"kern.", "rt.View", "rt.Widen", "rt.Narrow", "cpu.Wide", "cpu.Half", "Scratch"} {
		if bytes.Contains(src, []byte(word)) {
			t.Errorf("the program has %s", word)
		}
	}
	if !bytes.Contains(src, []byte("\n//go:build cuda && linux\n\npackage train\n")) {
		t.Error("the file is not for GPUs alone")
	}
	if !strings.Contains(string(src), `chain1 = gpu.Fused{`) ||
		!strings.Contains(string(src), "gpu.Main(&program, kernels)") {
		t.Errorf("no groups, or no entry, in\n%s", src)
	}
}

// On a CPU the epilogue of a matmul is GELU or its derivative, and, if its C operand is the bias, the sum with what
// else is added. A sum may be stored over the matmul's result.
func TestProductsEndOnCPU(t *testing.T) {
	c := small
	c.Family, c.Activation = spec.GPT2, "gelu_new"
	c.KVHeads, c.HeadDim, c.AttentionBias, c.QKVBias, c.MLPBias, c.RopeTheta = 4, 2, true, true, true, 0
	for block, sums := range map[string]string{"block": "up", "blockRemat": "nil"} {
		plan := ir.SerialPlan(c.Layers, 2, ir.FullPrecision(ir.F32))
		if block == "blockRemat" { // whose forward keeps little
			plan.Recompute, plan.RecomputeLayers = "full", c.Layers
		}
		src := generateConfig(t, CPU, c, plan)
		for fn, wants := range map[string][]string{
			block + "Forward": {
				"kern.MatMulOn(q, attnQBias, ln1, attnQ, 16, 8, 8, false, false)",
				"kern.MatMulThen(act, " + sums + ", mlpUpBias, nil, ln2, mlpUp, cpu.DoGelu, 16, 12, 8, false, false)",
				"kern.MatMulThen(y, nil, mlpDownBias, h, act, mlpDown, cpu.DoAdd, 16, 8, 12, false, false)",
			},
			block + "Backward": {
				"kern.MatMulThen(dAct, nil, nil, up, dY, mlpDown, cpu.DoGeluGrad, 16, 12, 8, false, true)",
				// which is what follows reads for the sum
				"kern.MatMulOn(dQ0, dK0, dAttn, attnQ, 16, 8, 8, false, true)",
				"kern.SumRows(dLn1_4, dQ0, 16, 8, true)",
			},
		} {
			text := textOf(t, src, fn)
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s has no %s in\n%s", fn, want, text)
				}
			}
			if sums == "nil" && fn == block+"Forward" && strings.Contains(text, "up :=") {
				t.Errorf("%s declares sums that nobody reads", fn)
			}
		}
	}
}

// On a GPU the C operand of a 16-bit matmul is its bias, its epilogue GELU or its derivative, and a weight's gradient
// sums its bias's; what is there instead, should the library refuse, is the same kernels as without.
func TestProductsEndInGelu(t *testing.T) {
	c := small
	c.Family, c.Activation = spec.GPT2, "gelu_new"
	c.KVHeads, c.HeadDim, c.AttentionBias, c.QKVBias, c.MLPBias, c.RopeTheta = 4, 2, true, true, true, 0
	for block, pre := range map[string]string{"block": "up", "blockRemat": "gpu.Buf[num.BF16]{}"} {
		plan := ir.SerialPlan(c.Layers, 2, bf16)
		if block == "blockRemat" { // whose forward keeps little
			plan.Recompute, plan.RecomputeLayers = "full", c.Layers
		}
		src := generateConfig(t, GPU, c, plan)
		for fn, wants := range map[string][]string{
			block + "Forward": {
				"gpu.MatMulOn(r, q, attnQBias, ln1, attnQ, 16, 8, 8, false, false)",
				"if !gpu.MatMulGelu(r, act, " + pre + ", mlpUpBias, ln2, mlpUp, 16, 12, 8, false, false) {",
				", mlpUpBias, ln2, mlpUp, 16, 12, 8, false, false)\n\t\t//", ", act)\n\t}",
			},
			block + "Backward": {
				"if !gpu.MatMulGeluGrad(r, dAct, up, dY, mlpDown, 16, 12, 8, false, true) {",
				"gpu.MatMul(r, dDown, dY, mlpDown, 16, 12, 8, false, true, false)", "1, 192, dDown, up, dAct)",
				"if !gpu.MatMulBiasGrad(r, dUp0_2, dUp, ln2, dAct, 8, 12, 16, true, false, b.Micro > 0) {",
				"gpu.MatMul(r, dUp0_2, ln2, dAct, 8, 12, 16, true, false, b.Micro > 0)\n\t\tgpu.SumRows(r, dUp, " +
					"dAct, 16, 12, true)",
				"if !gpu.MatMulBiasGrad(r, dV0_2, dV, ",
			},
		} {
			text := textOf(t, src, fn)
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s has no %s in\n%s", fn, want, text)
				}
			}
		}
		for _, kind := range []string{ // that a GPU computes before the first step
			"{M: 16, N: 8, K: 8, In: rt.BF16, Out: rt.BF16, Bias: true}",
			`{M: 16, N: 12, K: 8, In: rt.BF16, Out: rt.BF16, Epilogue: "gelu", Bias: true` +
				map[bool]string{true: ", KeepsInput: true}", false: "}"}[pre == "up"],
			`{M: 16, N: 12, K: 8, TransposeB: true, In: rt.BF16, Out: rt.BF16, Epilogue: "gelu_grad"}`,
			`{M: 8, N: 12, K: 16, TransposeA: true, In: rt.BF16, Out: rt.F32, Epilogue: "row_sum"}`,
		} {
			if !strings.Contains(string(src), kind) {
				t.Errorf("%s: the table has no %s:%s", block, kind, strings.Split(string(src), "GEMMs:")[1:])
			}
		}
	}
}
