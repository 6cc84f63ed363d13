package machine

import (
	"math"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/gpu/measure"
)

// at is a point that takes as long as a cluster's figures predict, over a rate.
func at(c *costmodel.Cluster, p measure.Point, rate float64) measure.Point {
	seconds, _ := predictedPoint(c, &p)
	p.Seconds = seconds / rate
	return p
}

// measuredDGX has each kind of work at a rate of its own, and small points at others that do not count.
func measuredDGX(c *costmodel.Cluster) *measure.Measurement {
	product := measure.Point{Of: measure.OfGEMM, Type: "bf16", M: 8192, N: 4096, K: 4096}
	fp8 := product
	fp8.Of, fp8.Type = measure.OfFP8, "fp8"
	small, single := product, product
	small.M, small.N, small.K, single.Type = 64, 64, 64, "f32"
	attention := measure.Point{Of: measure.OfAttention, Type: "bf16", M: 4096, N: 4096, K: 128, Batch: 64}
	grad := attention
	grad.Of = measure.OfAttentionGrad
	m := &measure.Measurement{CUDA: "13.0", BLAS: "13.1.0", NCCL: "2.27.5", GPUs: make([]string, 8), Duration: 21,
		Left: []string{"f32 4096 × 4096 × 4096: it would take too long"}}
	m.Points = []measure.Point{at(c, small, 0.1), at(c, product, 0.8), at(c, single, 3), at(c, fp8, 0.7),
		at(c, attention, 0.5), at(c, grad, 0.32),
		at(c, measure.Point{Of: measure.OfCopy, Bytes: 1 << 20}, 5),
		at(c, measure.Point{Of: measure.OfCopy, Bytes: 256 << 20}, 1.1),
		at(c, measure.Point{Of: measure.OfReplay}, 0.5),
		at(c, measure.Point{Of: measure.OfAllReduce, Type: "bf16", Bytes: 4 << 10, Ranks: 8}, 0.2),
		at(c, measure.Point{Of: measure.OfAllReduce, Type: "bf16", Bytes: 256 << 20, Ranks: 8}, 0.9),
		{Of: measure.OfUpload, Bytes: 64 << 20, Seconds: 64 << 20 / 50e9},
		{Of: measure.OfDownload, Bytes: 64 << 20, Seconds: 64 << 20 / 45e9},
		{Of: measure.OfSend, Type: "bf16", Bytes: 64 << 20, Ranks: 2, Seconds: 1e-3},
		{Of: measure.OfLaunch, Seconds: 2.5e-6, Spread: 0.04}}
	for i := range m.GPUs {
		m.GPUs[i] = "NVIDIA H100 80GB HBM3"
	}
	return m
}

// Factors are what large points took over what the cluster's figures predict, and a plan's prices follow them: what was
// measured is then predicted.
func TestMeasuredOf(t *testing.T) {
	c := clusterOfRow("dgx-h100")
	f := GPUFactors(c, measuredDGX(c))
	for _, v := range []struct {
		name      string
		got, want float64
	}{{"matrix", f.Matrix, 0.8}, {"attention", f.Attention, 0.4}, {"fp8", f.FP8, 0.7}, {"memory", f.Memory, 1.1},
		{"link", f.Link, 0.9}, {"overhead", f.Overhead, 2}, {"host", float64(c.Node.Host.Bandwidth), 45e9}} {
		if math.Abs(v.got/v.want-1) > 1e-9 {
			t.Errorf("%s is %v, not %v", v.name, v.got, v.want)
		}
	}
	if !strings.Contains(c.Source["node.host.bandwidth"], "host to device 50 GB/s, device to host 45 GB/s") {
		t.Error(c.Source["node.host.bandwidth"])
	}
	before, after := clusterOfRow("dgx-h100"), clusterOfRow("dgx-h100")
	after.Measured = f
	for of, rate := range map[string]float64{measure.OfGEMM: 0.8, measure.OfAttention: 0.4, measure.OfFP8: 0.7} {
		p := measure.Point{Of: of, Type: map[bool]string{false: "bf16", true: "fp8"}[of == measure.OfFP8], M: 1 << 14,
			N: 1 << 14, K: 1 << 14, Batch: 64}
		x, _ := predictedPoint(before, &p)
		y, _ := predictedPoint(after, &p)
		if math.Abs(x/y/rate-1) > 1e-3 { // and launches
			t.Errorf("%s: %v s before, %v after", of, x, y)
		}
	}
	text := GPUClusterText(c, "580.65.06") + MeasuredBlock("a test", f)
	read, err := costmodel.ParseCluster("here.yaml", []byte(text))
	if err != nil || read.Measured.Attention != 0.4 || read.Measured.FP8 != 0.7 || read.Measured.Link != 0.9 {
		t.Errorf("%v\n%s", err, text)
	}
	// collectives cost what they took, whatever their size
	for _, p := range measuredDGX(clusterOfRow("dgx-h100")).Points {
		if p.Of != measure.OfAllReduce {
			continue
		}
		took := float64(read.CollectiveTime(ir.OpAllReduce, costmodel.Placement{Local: p.Ranks, Nodes: 1, Span: 1},
			costmodel.Bytes(p.Bytes)))
		if math.Abs(took/p.Seconds-1) > 1e-3 {
			t.Errorf("an all-reduce of %d bytes that took %v s is priced at %v", p.Bytes, p.Seconds, took)
		}
	}
	if second := read.Scaled(costmodel.Measured{Matrix: 0.5}).Measured; second.Attention != 0.2 || second.FP8 != 0.35 ||
		second.Matrix != 0.4 {
		t.Errorf("with a fit of matrix on top: %+v", second)
	}
}

// What was measured fits a screen, in groups whose figures end in one column.
func TestGPUScreen(t *testing.T) {
	c := clusterOfRow("dgx-h100")
	m := measuredDGX(c)
	text := GPUScreen(c, m, GPUFactors(c, m))
	for line := range strings.Lines(text) {
		if w := layout.Width(strings.TrimSuffix(line, "\n")); w > layout.ScreenWidth {
			t.Errorf("%d columns: %s", w, line)
		}
	}
	for _, part := range []string{"8 × NVIDIA H100 80GB HBM3 · CUDA 13.0 · cuBLASLt 13.1.0 · NCCL 2.27.5",
		"\nupload, 64 MiB                                     50.0      0.0 %\n",
		"\nlaunch                                             2.50      4.0 %\n", "\nall-reduce, 256 MiB, 8 ranks ",
		"\nsend, 64 MiB, 2 ranks                              67.1 ", "\nforward, 64 × 4096 queries, heads of 128 ",
		"matrix 0.800, memory 1.10, link 0.900, overhead 2.00, attention 0.400, fp8 0.700"} {
		if !strings.Contains(strings.ReplaceAll(text, "\n            ", " "), part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
