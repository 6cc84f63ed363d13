package codegen

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

// Queries that share keys lie side by side with them, and one op rotates both in place: it passes the heads of queries
// and keys, and the elements of a row. Attention gets the distance between rows. The queries' part of the weight has a
// group.
func TestRotatedQueriesAndSharedKeysSideBySide(t *testing.T) {
	c := small
	c.Family, c.Heads, c.KVHeads, c.HeadDim = spec.Llama, 4, 2, 8
	src := sideBySide(t, c)
	for fn, wants := range map[string][]string{
		"blockForward": {
			"gpu.MatMul(r, qkv, ln1, attnQkv, 16, 64, 8, false, false, false)", "gpu.RoPEPart(r, qkvRot, qkv, ",
			"Heads: 6,", "Row:   64,", "kRot := qkvRot.From(32)\n", "v0 := qkvRot.From(48)\n",
			"gpu.Attention(r, attn, attnLse, qRot, kRot, v0, ", "Pitch:    64,",
		},
		"blockBackward": {
			"gpu.AttentionGrad(r, dAttn, dAttn.From(32), dAttn.From(48), dO, qRot, kRot, v0, ",
			"gpu.RoPEPart(r, dQkvRot, dAttn, ", "gpu.MatMul(r, dQkv, dQkvRot, attnQkv, 16, 8, 64, false, true, false)",
		},
	} {
		wantTexts(t, src, fn, wants)
	}
	for _, want := range []string{`{Name: "group", Size: 2}`, "Pitch: 64}"} {
		if !strings.Contains(string(src), want) {
			t.Errorf("the program has no %s", want)
		}
	}
}

// sideBySide returns the code of a program for one GPU whose weights lie side by side.
func sideBySide(t *testing.T, c spec.Config) []byte {
	t.Helper()
	plan := ir.SerialPlan(c.Layers, 2, bf16)
	m := zoo.Build("small", c, zoo.Options{SeqLen: 8, Batch: 1, Elem: ir.BF16})
	p, err := passes.Compile(m, plan, ir.Recipe{Optimizer: "adamw", Sides: true}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	src, err := Go(Input{Program: p, Target: GPU, Package: "train", Job: "small", Hash: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// Projections side by side are one GEMM with the bias of all, one for the gradient of the input, and one for those of
// weights and biases. Attention reads and writes its operands where they lie. The table has the parameters of the
// model.
func TestProjectionsSideBySide(t *testing.T) {
	c := small
	c.Family = spec.GPT2
	c.KVHeads, c.HeadDim, c.AttentionBias, c.QKVBias, c.MLPBias, c.RopeTheta = 4, 2, true, true, true, 0
	src := sideBySide(t, c)
	for fn, wants := range map[string][]string{
		"blockForward": {
			"gpu.MatMulOn(r, qkv, attnQkvBias, ln1, attnQkv, 16, 24, 8, false, false)",
			"k := qkv.From(8)\n", "v0 := qkv.From(16)\n", "gpu.Attention(r, attn, attnLse, q, k, v0, ", "Pitch:    24,",
		},
		"blockBackward": {
			"gpu.AttentionGrad(r, dAttn, dAttn.From(8), dAttn.From(16), dO, q, k, v0, ", "Pitch:    24,",
			"gpu.MatMul(r, dQkv0, dAttn, attnQkv, 16, 8, 24, false, true, false)",
			"if !gpu.MatMulBiasGrad(r, dQkv0_2, dQkv, ln1, dAttn, 8, 24, 16, ",
		},
	} {
		wantTexts(t, src, fn, wants)
	}
	for _, want := range []string{`"block.{layer}.attn.k"`, `"block.{layer}.attn.v_bias"`, "Pitch: 24}"} {
		if !strings.Contains(string(src), want) {
			t.Errorf("the program has no %s", want)
		}
	}
	if strings.Contains(string(src), "attn.qkv\"") {
		t.Error("the program has a parameter that checkpoints do not have")
	}
}

// Gate and up projections side by side are one GEMM. The ops after them are one kernel forward and one backward, which
// read and write rows of half the width at twice the distance.
func TestGateAndUpSideBySide(t *testing.T) {
	c := small
	c.Family, c.FFN = spec.Llama, 16
	src := sideBySide(t, c)
	for fn, wants := range map[string][]string{
		"blockForward": {
			"gpu.MatMul(r, gateUp, ln2, mlpGateUp, 16, 32, 8, false, false, false)", "up := gateUp.From(16)\n",
			"gpu.Chain(r, chain", ", 16, 16, gate, up, gated)",
		},
		"blockBackward": {
			"gpu.Chain(r, chain", ", 16, 16, dDown, up, gate, dGated_2, dAct)",
			"gpu.MatMul(r, dGateUp, dGate, mlpGateUp, 16, 8, 32, false, true, false)",
		},
	} {
		wantTexts(t, src, fn, wants)
	}
}

// The gate and up projections of each expert are one GEMM in each round, and so are their gradients.
func TestGateAndUpOfExpertsSideBySide(t *testing.T) {
	c := small
	c.Family, c.Experts, c.Choices, c.ExpertFFN = spec.Mixtral, 4, 2, 8
	src := sideBySide(t, c)
	for fn, wants := range map[string][]string{
		"blockForward": {
			"gpu.MatMulEach(r, moeGateUp_2, sent, moeGateUp, 4, 16, 16, 8, false, false, false)",
			"moeUp := moeGateUp_2.From(8)\n", ", 64, 8, moeGate, moeUp, part, weighted)",
		},
		"blockBackward": {
			", 64, 8, moeGate, moeUp, part, dMoeDown, weighted, dWeighted_2, dMoeGated_2, dMoeAct)",
			", dMoeGate, moeGateUp, 4, 16, 8, 16, false, true, false)",
			", sent, dMoeGate, 4, 8, 16, 16, true, false, true)",
		},
	} {
		wantTexts(t, src, fn, wants)
	}
}

// A GEMM adds the bias and the residual. The norm after it reads its result, which is stored once.
func TestBiasAndResidualOfOneGEMM(t *testing.T) {
	c := small
	c.Family = spec.GPT2
	c.KVHeads, c.HeadDim, c.AttentionBias, c.QKVBias, c.MLPBias, c.RopeTheta = 4, 2, true, true, true, 0
	text := textOf(t, sideBySide(t, c), "blockForward")
	for _, want := range []string{
		"gpu.MatMulOnBoth(r, gpu.AddingGEMM[num.BF16]{\n\t\tA:        attn,\n\t\tB:        attnO,\n",
		"Bias:     attnOBias,\n\t\tC:        h,\n", "Residual: x,\n", "ln2 = layer_norm h, ",
		"B:        mlpDown,\n\t\tBias:     mlpDownBias,\n\t\tC:        y,\n", "Residual: h,\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("blockForward has no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "add o, attn.o_bias") != strings.Contains(text, "add x, o") {
		t.Error("a comment of a GEMM lacks one of its additions")
	}
}

// wantTexts requires texts in a function of generated code.
func wantTexts(t *testing.T, src []byte, fn string, wants []string) {
	t.Helper()
	text := textOf(t, src, fn)
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %s in\n%s", fn, want, text)
		}
	}
}
