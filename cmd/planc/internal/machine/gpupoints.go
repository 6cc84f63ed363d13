package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/gpu/measure"
)

// opsOfPoints maps kinds of points to the collectives that the cost model prices. It has no entry for messages around a
// ring.
var opsOfPoints = map[string]ir.Op{measure.OfAllReduce: ir.OpAllReduce, measure.OfAllGather: ir.OpAllGather,
	measure.OfReduceScatter: ir.OpReduceScatter, measure.OfAllToAll: ir.OpAllToAll}

// A point is large, and counts for a factor, if it exceeds one of these: the time of matmuls and attention in launches,
// the bytes of a copy, the bytes of a message. Only matmuls in 16 bits count, and, for a factor of their own, those in
// FP8.
const (
	manyLaunches = 10
	beyondCaches = 128 << 20
	fillsLinks   = 16 << 20
)

// predictedPoint returns the seconds that the cost model predicts for a point from the cluster's figures, and whether
// the point is large. The prediction is 0 if the cost model has no price for the point.
func predictedPoint(c *costmodel.Cluster, p *measure.Point) (seconds float64, large bool) {
	compute := p.Type
	if compute == "" {
		compute = "bf16"
	}
	d, ok := c.DeviceOf(&costmodel.PlancKernels, compute)
	if !ok {
		return 0, false
	}
	op := costmodel.Op{Flops: p.Flops(), Shape: costmodel.GEMM{M: float64(p.M), N: float64(p.N), K: float64(p.K)},
		Kernel: 1}
	switch p.Of {
	case measure.OfGEMM:
		op.Kind, op.Shape.Batch = costmodel.Matrix, 1
	case measure.OfFP8:
		// the passes that round the operands to FP8 were not measured
		op.Kind, op.Shape.Batch, op.FP8 = costmodel.Matrix, 1, 1
	case measure.OfAttention:
		op.Kind = costmodel.Attention
	case measure.OfAttentionGrad:
		op.Kind, op.Kernel = costmodel.AttentionGrad, 3
	case measure.OfCopy:
		return float64(d.StreamTime(costmodel.Bytes(2 * p.Bytes))), p.Bytes >= beyondCaches
	case measure.OfReplay:
		return float64(d.Launch()), true
	default:
		collective, priced := opsOfPoints[p.Of]
		if !priced {
			return 0, false
		}
		return float64(c.CollectiveTime(collective, costmodel.Placement{Local: p.Ranks, Nodes: 1, Span: 1},
			costmodel.Bytes(p.Bytes))), p.Bytes >= fillsLinks
	}
	took := d.Time(&op)
	return float64(took), took > manyLaunches*d.Launch() && (compute == "bf16" || compute == "fp16" ||
		p.Of == measure.OfFP8)
}

// GPUScreen formats the measurements, grouped by kind.
func GPUScreen(c *costmodel.Cluster, m *measure.Measurement, f costmodel.Measured) string {
	var b strings.Builder
	words := []string{fmt.Sprintf("%d × %s", len(m.GPUs), m.GPUs[0]), "CUDA " + m.CUDA, "cuBLASLt " + m.BLAS}
	if m.NCCL != "" {
		words = append(words, "NCCL "+m.NCCL)
	}
	b.WriteString(layout.Flow("", 0, " · ", append(words, fmt.Sprintf("%.0f s", m.Duration))))
	for _, g := range []struct {
		head, unit string
		ofs        []string
	}{
		{"MATMUL", "TFLOP/s", []string{measure.OfGEMM, measure.OfFP8}},
		{"CAUSAL ATTENTION", "TFLOP/s", []string{measure.OfAttention, measure.OfAttentionGrad}},
		{"MEMORY AND HOST COPIES", "GB/s", []string{measure.OfCopy, measure.OfUpload, measure.OfDownload}},
		{"KERNEL LAUNCH", "µs", []string{measure.OfLaunch, measure.OfReplay}},
		{"COMMUNICATION", "GB/s", []string{measure.OfAllReduce, measure.OfAllGather, measure.OfReduceScatter,
			measure.OfAllToAll, measure.OfSend}},
	} {
		gpuGroup(&b, m, g.head, g.unit, g.ofs)
	}
	if n := len(m.Left); n > 0 {
		b.WriteString("\n" + layout.Prose("skipped", 12, fmt.Sprintf("%d, such as %s", n, m.Left[0])))
	}
	var factors []string
	for _, k := range slices.Concat(costmodel.MeasuredKeys, costmodel.MeasuredAlone) {
		if v := *f.Factor(k); v > 0 {
			factors = append(factors, k+" "+amount.Digits(v, 3))
		}
	}
	b.WriteString("\n" + layout.Prose("factors", 12,
		strings.Join(factors, ", ")+fmt.Sprintf(", relative to the cost model of %s", c.GPU.Name)))
	return b.String()
}

// gpuGroup writes a table of points, each with its rate or time and its spread.
func gpuGroup(b *strings.Builder, m *measure.Measurement, head, unit string, ofs []string) {
	hasHeader := false
	for i := range m.Points {
		p := &m.Points[i]
		if !slices.Contains(ofs, p.Of) || p.Seconds <= 0 {
			continue
		}
		if !hasHeader {
			hasHeader = true
			fmt.Fprintf(b, "\n%s%11s%11s\n", layout.Pad(head, 44), unit, "SPREAD")
		}
		value := 1e6 * p.Seconds
		switch unit {
		case "TFLOP/s":
			value = p.Flops() / p.Seconds / 1e12
		case "GB/s":
			value = float64(p.Bytes) / p.Seconds / 1e9
			if p.Of == measure.OfCopy {
				value *= 2 // read and written
			}
		}
		fmt.Fprintf(b, "%s%11s%11s\n", layout.Pad(pointText(p), 44), amount.Digits(value, 3),
			quantity.Percent(p.Spread))
	}
}

// powerOfTwo formats a number of bytes that is a power of two of at least 1 KiB.
func powerOfTwo(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// pointText describes a point: the operation, its size and its ranks.
func pointText(p *measure.Point) string {
	text := p.Text()
	if p.Bytes > 0 {
		text += ", " + powerOfTwo(p.Bytes)
	}
	if p.Ranks > 0 {
		text += fmt.Sprintf(", %d ranks", p.Ranks)
	}
	return text
}
