package laws_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/ir"
)

// Law 1 for GEMMs of which cuBLASLt refuses some epilogues: with a bias, GELU or its derivative, and the sum of a
// bias's gradient, in bf16 and fp16. The emulated cuBLASLt refuses those with leading dimensions that are not multiples
// of 16. The test says which epilogues the training steps computed.
func TestLawOfRefusedEpiloguesOnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	var cases []lawCase
	for i, name := range []string{"bf16", "fp16"} {
		precision := lawNarrow[i]
		c := lawCase{id: name + "ref", group: "epilogues-" + name, model: modelNamed(t, "gpt2"), optimizer: "adamw",
			elem: precision.Compute}
		c.plan = ir.SerialPlan(c.model.Layers, lawBatch, precision)
		cases = append(append(cases, c), yardsticks(c)...)
		c.id, c.on, c.plan = name+"gpu", codegen.GPU, expertPlan("dp 2 tp 2", c.model.Layers)
		c.plan.Precision = precision
		cases = append(cases, c)
	}
	t.Setenv("PLANC_EMULATED_EPILOGUES", "16")
	computed, refused := stepEpilogues(judgeWithLog(t, cases))
	if len(computed) < 2 || len(refused) < 2 {
		t.Error("want at least two epilogues of each kind")
	}
	t.Logf("GEMMs of steps by epilogue %v, calls refused by epilogue %v", computed, refused)
}

var (
	deviceEvent = regexp.MustCompile(`^device (\d+) begins its first step$|^released: device (\d+)$`)
	gemmRun     = regexp.MustCompile(`^device (\d+) runs .*GEMM [0-9x]+, epilogue (\d+)$`)
	refusal     = regexp.MustCompile(`^cuBLASLt refuses epilogue (\d+)$`)
)

// stepEpilogues returns how many GEMMs the training steps in an emulated machine's log computed with each epilogue, and
// how many calls cuBLASLt refused. A device computes each kind of GEMM once before its first step: these do not count.
func stepEpilogues(log string) (computed, refused map[string]int) {
	computed, refused = map[string]int{}, map[string]int{}
	stepping := map[string]bool{}
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		if m := deviceEvent.FindStringSubmatch(line); m != nil {
			stepping[m[1]+m[2]] = m[1] != ""
		}
		if m := gemmRun.FindStringSubmatch(line); m != nil && stepping[m[1]] {
			computed[m[2]]++
		}
		if m := refusal.FindStringSubmatch(line); m != nil {
			refused[m[1]]++
		}
	}
	delete(computed, "1") // none
	return computed, refused
}

// GEMMs before a device's first step do not count.
func TestStepEpilogues(t *testing.T) {
	computed, refused := stepEpilogues(`cuBLASLt refuses epilogue 4
device 0 runs stream 1: GEMM 2x8x4, epilogue 32
device 0 begins its first step
device 1 runs stream 2: GEMM 2x8x4, epilogue 32
device 0 runs stream 1: GEMM 2x8x4, epilogue 32
device 0 runs stream 1: GEMM 2x8x4, epilogue 1
released: device 0
device 0 runs stream 1: GEMM 2x8x4, epilogue 32
`)
	if !maps.Equal(computed, map[string]int{"32": 1}) || !maps.Equal(refused, map[string]int{"4": 1}) {
		t.Errorf("computed %v, refused %v", computed, refused)
	}
}
