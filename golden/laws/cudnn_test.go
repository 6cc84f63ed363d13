package laws_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/ir"
)

// lawFused are models with heads that cuDNN supports, and plans: causal, grouped queries with windows in some layers,
// and full attention.
var lawFused = []struct {
	model, plan string
	precision   int // index into lawNarrow
}{
	{"gpt2", "dp 2 tp 2 pp 2", 0}, {"qwen2", "tp 2 sp pp 2", 1}, {"bert", "dp 4 zero 2", 0},
}

// Law 1 for attention by cuDNN, which the emulated cuDNN computes from the graphs that it receives. It rounds score
// gradients as planc's kernels do. The test checks that cuDNN was called.
func TestLawOfCuDNNOnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	var cases []lawCase
	for i, f := range lawFused {
		precision := lawNarrow[f.precision]
		c := lawCase{id: f.model + "ref", group: "cudnn-" + f.model, model: modelNamed(t, f.model), optimizer: "adamw",
			elem: precision.Compute}
		c.model.Layers, c.model.HeadDim, c.model.Heads, c.model.KVHeads = 3, 8, 4, 4
		if f.model == "qwen2" {
			c.model.KVHeads = 2
		}
		c.plan = ir.SerialPlan(c.model.Layers, lawBatch, precision)
		cases = append(append(cases, c), yardsticks(c)...)
		c.id, c.on, c.plan = f.model+"gpu", codegen.GPU, expertPlan(lawFused[i].plan, c.model.Layers)
		c.plan.Precision = precision
		cases = append(cases, c)
	}
	if n := strings.Count(judgeWithLog(t, cases), ": attention of "); n < 4*len(lawFused) {
		t.Errorf("cuDNN was called %d times", n)
	}
}

// judgeWithLog judges cases on an emulated machine and returns its log.
func judgeWithLog(t *testing.T, cases []lawCase) string {
	t.Helper()
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("PLANC_EMULATED_LOG", log)
	judgeGPUs(t, cases, gpuModule(t, cases, machine, "late"))
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
