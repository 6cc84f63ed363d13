package costmodel

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// Predicted times of GEMMs are those measured on an H100 that repeats one GEMM and does not have to slow down as in
// training. They are closer than the estimates of NVIDIA's library for choosing kernels.
func TestGEMMsAreMeasured(t *testing.T) {
	c, err := Resolve(Ref{Node: "dgx-h100"}, nil, lab)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := c.Device(ir.BF16)
	d.rate[Matrix] /= FlopsPerSecond(GenerationOf(c.GPU.Arch).Sustained)
	var ours, theirs []float64
	for _, g := range measuredGEMMs(t) {
		o := Op{Kind: Matrix, Flops: 2 * g.M * g.N * g.K, Bytes: 2 * (g.M*g.K + g.K*g.N + g.M*g.N),
			Shape: GEMM{g.M, g.N, g.K, 1}}
		ours = append(ours, math.Log(float64(d.Within(&o)+d.Launch())/g.measured))
		theirs = append(theirs, math.Log(g.estimate/g.measured))
	}
	t.Logf("%d GEMMs: predicted / measured %v; nvMatmulHeuristics %v", len(ours), spreadOf(ours), spreadOf(theirs))
	s, peer := spreadOf(ours), spreadOf(theirs)
	if math.Abs(math.Log(s.ratio)) > 0.06 || s.middle > 0.05 || s.high > 0.13 || s.middle > peer.middle {
		t.Errorf("predicted / measured %v; nvMatmulHeuristics %v", s, peer)
	}
}

// spread sums up the logarithms of predicted over measured times: the median ratio, the median deviation from 1, and
// the deviation that nine in ten do not exceed.
type spread struct{ ratio, middle, high float64 }

func spreadOf(logs []float64) spread {
	off := make([]float64, len(logs))
	for i, v := range logs {
		off[i] = math.Abs(v)
	}
	slices.Sort(off)
	return spread{math.Exp(median(logs)), median(off), off[len(off)*9/10]}
}

func (s spread) String() string {
	return fmt.Sprintf("%.3f, median error %.3f, nine in ten below %.3f", s.ratio, s.middle, s.high)
}

type measuredGEMM struct {
	GEMM
	measured, estimate float64 // in seconds
}

// measuredGEMMs reads the table.
func measuredGEMMs(t *testing.T) (out []measuredGEMM) {
	t.Helper()
	f, err := os.Open("testdata/gemm_h100_bf16.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") || strings.HasPrefix(lines.Text(), "m\t") {
			continue
		}
		var g measuredGEMM
		if _, err := fmt.Sscan(lines.Text(), &g.M, &g.N, &g.K, &g.measured, &g.estimate); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		g.measured, g.estimate = g.measured/1e6, g.estimate/1e6
		out = append(out, g)
	}
	return out
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
