package golden_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// PyTorch computes planc's validation loss from planc's final weights of nanoGPT's example, a model without biases.
// bench/nanogpt/compare.py fails if it does not. PLANC_TORCH is a Python that has torch.
func TestNanoGPTSideBySide(t *testing.T) {
	python := os.Getenv("PLANC_TORCH")
	if python == "" {
		t.Skip("PLANC_TORCH is not set")
	}
	text := filepath.Join(t.TempDir(), "text.txt")
	writeText(t, text)
	out, err := exec.Command(python, "../bench/nanogpt/compare.py", "--text", text, "--planc", harness.Planc(t),
		"--steps", "101", "--threads", "1").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ratio ") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
