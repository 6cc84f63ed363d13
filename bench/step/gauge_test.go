package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A share is relative to each round's own limit. A round at half the speed with half the limit counts like the others,
// and one disturbed round of three does not change the median.
func TestFractionIsOfEachRoundsPeak(t *testing.T) {
	m := model{layers: 2, hidden: 64, vocab: 100, block: 32, batch: 4}
	ideal := m.flops() / 200e9
	for _, c := range []struct{ took, limits []float64 }{
		{[]float64{2 * ideal, 4 * ideal}, []float64{200, 100}},
		{[]float64{2 * ideal, 9 * ideal, 2.5 * ideal}, []float64{200, 200, 160}},
	} {
		r := result{oursMedians: c.took, limits: c.limits}
		if got := r.fractionOfPeak(m, r.limits); math.Abs(got-0.5) > 1e-12 {
			t.Errorf("rounds of %v s at %v GFLOP/s: share %v, want 0.5", c.took, c.limits, got)
		}
	}
}

// A relative folder is made absolute, and a folder that cannot be made is an error that says why.
func TestMakeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := makeFolder("kept/jobs")
	if err != nil || !filepath.IsAbs(dir) {
		t.Errorf("%q, %v; want an absolute path", dir, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("%s is no folder: %v", dir, err)
	}
	if err := os.WriteFile("file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := makeFolder("file/jobs"); err == nil || strings.Contains(err.Error(), "nil") {
		t.Errorf("a folder below a file: %v", err)
	}
}
