package golden_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// eightFollows is how far the loss of the example may be from bf16's in 8 bits, as a part of it. E4M3 rounds to 2^-4 at most and 2.6 % in the root mean square, so that
// a product is off by 2.6 % · √2 of its size, at random. Losses are flat to the first order in such noise; with the square, 0.14 %, from each of the four products of each of
// four blocks and both ways, some 4 % of what a block adds is noise, and less than half of a loss is what blocks add here. So 2 %, before it was measured.
const eightFollows = 0.02

// The loss of examples/opticks falls in 8 bits as it does in bf16.
func TestEightFollowsBF16(t *testing.T) {
	if !long() {
		t.Skip("240 steps take long: PLANC_LAWS=long")
	}
	const steps, window = 120, 20
	bin := buildPlanc(t)
	job, err := filepath.Abs(filepath.Join(repoRoot, "examples/opticks/planc.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	curves := map[string][]float64{}
	for _, precision := range []string{"bf16", "fp8"} {
		w := newWorld(t, bin, "eight")
		cmd := exec.Command(bin, "run", job, "--set", "train.precision="+precision, "--set", "train.steps=120", "--set", "cluster.devices=1")
		cmd.Dir, cmd.Env = w.dir, w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(w.dir, "runs/opticks/metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range bytes.Split(text, []byte("\n")) {
			var s struct{ Loss float64 }
			if json.Unmarshal(line, &s) == nil && s.Loss > 0 {
				curves[precision] = append(curves[precision], s.Loss)
			}
		}
		if len(curves[precision]) < steps {
			t.Fatalf("%s: %d losses", precision, len(curves[precision]))
		}
	}
	wide, eight := curves["bf16"], curves["fp8"]
	worst, at := 0.0, 0
	for i := 0; i+window <= steps; i += window {
		a, b := 0.0, 0.0
		for j := i; j < i+window; j++ {
			a, b = a+wide[j], b+eight[j]
		}
		if off := max(a-b, b-a) / a; off > worst {
			worst, at = off, i
		}
	}
	if worst == 0 || worst > eightFollows || eight[steps-1] > 0.7*eight[0] {
		t.Errorf("%.3g off bf16's in steps %d to %d, of at most %g; from %.4g to %.4g, in bf16 to %.4g", worst, at, at+window, eightFollows, eight[0], eight[steps-1], wide[steps-1])
	}
	t.Logf("%.3g of the loss at most, in steps %d to %d; from %.4g to %.4g, in bf16 to %.4g", worst, at, at+window, eight[0], eight[steps-1], wide[steps-1])
}
