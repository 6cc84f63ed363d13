package codegen

import (
	"bytes"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// half computes in bf16 and accumulates in f32.
func half(p *ir.Plan) {
	parallel(p)
	p.Precision = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32, Moments: ir.F32}
}

// The functions of a GPU's program are those of a CPU's, with package gpu's calls in place of kernels on slices: nothing of a CPU's kernels is left.
func TestFunctionTextOnGPU(t *testing.T) {
	src := generateFor(t, GPU, half)
	compareText(t, src, "testdata/functions.gpu.go.txt", "embedForward", "embedBackward", "blockForward", "headBackward")
	for _, word := range []string{"kern.", "rt.View", "rt.Wide", "rt.Narrow", "cpu.Wide", "cpu.Half", "Scratch"} {
		if bytes.Contains(src, []byte(word)) {
			t.Errorf("the program has %s", word)
		}
	}
	if !bytes.Contains(src, []byte("\n//go:build cuda && linux\n\npackage train\n")) {
		t.Error("the file is not for GPUs alone")
	}
	if !strings.Contains(string(src), `chain1 = gpu.Fused{`) || !strings.Contains(string(src), "gpu.Main(&program, kernels)") {
		t.Errorf("no groups, or no entry, in\n%s", src)
	}
}
