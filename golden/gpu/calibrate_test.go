package gpu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/golden/internal/harness"
)

// On a machine with GPUs, detect describes them, and calibrate measures them with a program that it builds. Both
// files can be planned with, and the measured file has the measurements. The figures are those of emulated GPUs and
// mean nothing.
func TestCalibrateGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &gpuBinary{t: t, dir: t.TempDir(), planc: harness.Planc(t), env: machine.Env("PLANC_EMULATED_GPUS=2",
		"CUDA_VISIBLE_DEVICES=")}
	b.must(b.planc, "detect", "--target", "cuda", "-o", "there.yaml")
	screen, err := b.run(b.planc, "calibrate", "--target", "cuda", "-o", "here.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	for _, part := range []string{"2 × Emulated GPU · CUDA 13.5 · ", "\nMATMUL ", "\nbf16 64 × 64 × 64 ",
		"\nfp8 64 × 64 × 64 ", "\nforward, 1 × 64 queries, heads of 64", "\nbackward, 1 × 64 queries, heads of 64",
		"\nupload, 1 MiB", "\nreplay ",
		"\nall-reduce, 4 KiB, 2 ranks", "\nsend, ", "\nfactors     matrix "} {
		if !strings.Contains(screen, part) {
			t.Errorf("no %q in\n%s", part, screen)
		}
	}
	for _, name := range []string{"there.yaml", "here.yaml"} {
		text, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		c, err := costmodel.ParseCluster(name, text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if c.GPU.Name != "Emulated GPU" || c.GPU.Arch != "sm_90a" || c.Node.Devices != 2 ||
			c.Node.Link.Bandwidth != 450*costmodel.GBs {
			t.Errorf("%s", text)
		}
		m := c.Measured
		for _, v := range []float64{m.Matrix, m.FP8, m.Attention, m.Memory, m.Link, m.Overhead} {
			if (v != 0) != (name == "here.yaml") {
				t.Errorf("%s measures %+v", name, m)
			}
		}
		b.must(b.planc, "plan", "--model", "gpt2-124m", "--cluster", name, "--seq-len", "1024", "--global-batch", "64")
	}
}
