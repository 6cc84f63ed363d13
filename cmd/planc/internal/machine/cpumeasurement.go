package machine

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/amount"
)

// CPUMeasurement is what was measured of a machine's CPU.
type CPUMeasurement struct {
	probed  probeResult
	rates   rates              // of a cluster file
	factors costmodel.Measured // correction factors of the cost model
}

// MeasureCPU measures this machine's CPU in about a second.
func MeasureCPU(m Machine) (*CPUMeasurement, error) {
	p := probe(m.Cores)
	r := p.rates(m.Cores)
	r.By = fmt.Sprintf("planc calibrate, %s, %s", time.Now().Format(time.DateOnly), p.ISA)
	c, err := costmodel.ParseCluster("here.yaml", []byte(CPUClusterText(m, &r)))
	if err != nil {
		return nil, fmt.Errorf("the measurement gives an invalid cluster file: %w", err)
	}
	return &CPUMeasurement{p, r, p.factors(c)}, nil
}

// ClusterText returns the cluster file of the machine, with a measured block.
func (c *CPUMeasurement) ClusterText(m Machine) string {
	return CPUClusterText(m, &c.rates) + MeasuredBlock(c.rates.By, c.factors)
}

// ThisCPU converts the measurement to the cost model's type, rounded as in cluster files.
func (c *CPUMeasurement) ThisCPU(m Machine) *costmodel.ThisCPU {
	r := &c.rates
	return &costmodel.ThisCPU{By: r.By, Cores: m.Cores, Single: r.Single, Double: r.Double, Half: r.Half,
		Memory: round(r.Memory), Link: round(r.Link),
		LatencyUS: r.LatencyUS, Matrix: c.factors.Matrix, Overhead: c.factors.Overhead}
}

// Screen formats the measurement.
func (c *CPUMeasurement) Screen(m Machine) string { return c.probed.screen(m, c.factors) }

// rates holds the figures of one core for a cluster file.
type rates struct {
	By                   string  // source of the figures
	Single, Double, Half float64 // TFLOP/s in f32, f64 and bf16; Half is 0 if bf16 was not measured
	Memory, Link         costmodel.BytesPerSecond
	LatencyUS            float64
}

// rates returns the figures for a cluster file. A peak is the rate of the fastest matmul. The rate of collectives with
// more ranks than cores is scaled to ranks that have a core each.
func (p *probeResult) rates(cores int) rates {
	r := rates{Memory: p.Memory, LatencyUS: 1e6 * float64(p.Hop), Double: p.Double / 1e12, Half: p.Half / 1e12}
	for _, s := range p.Single {
		r.Single = max(r.Single, s.FlopsPerS/1e12)
	}
	r.Link = p.AllReduce * costmodel.BytesPerSecond(max(1, float64(p.Ranks)/float64(cores)))
	return r
}

// factors returns the correction factors of the cost model for such a core: of the rate of matmuls, as the mean over
// all measured shapes, and of the time of a kernel call.
func (p *probeResult) factors(c *costmodel.Cluster) costmodel.Measured {
	c.Node.Devices, c.Node.Host.Cores = 1, 1
	d, ok := c.Device(ir.F32)
	if !ok {
		panic("planc: the file of a CPU has no rate in f32")
	}
	sum := 0.0
	for _, s := range p.Single {
		op := costmodel.Op{Kind: costmodel.Matrix, Flops: flopsOf(s.GEMM), Shape: s.GEMM}
		took := costmodel.Seconds(op.Flops/s.FlopsPerS) + d.Launch() - p.Call
		sum += math.Log(float64(d.Time(&op) / took))
	}
	return costmodel.Measured{Matrix: math.Exp(sum / float64(len(p.Single))),
		Overhead: float64(p.Call / costmodel.CPUCall)}
}

// screen formats the measurements.
func (p *probeResult) screen(m Machine, f costmodel.Measured) string {
	var b strings.Builder
	name := m.CPU
	if name == "" {
		name = "CPU"
	}
	b.WriteString(layout.Flow("", 0, " · ", []string{name, fmt.Sprintf("%d %s", m.Cores,
		layout.Plural(m.Cores, "core")), p.ISA}))
	b.WriteString("\nMATMUL                          GFLOP/s\n")
	row := func(what string, flops float64) {
		fmt.Fprintf(&b, "%s%7s\n", layout.Pad(what, 32), amount.Digits(flops/1e9, 3))
	}
	for _, s := range p.Single {
		row(fmt.Sprintf("f32 %g × %g × %g%s", s.M, s.N, s.K, map[bool]string{true: " transposed"}[s.Transposed]),
			s.FlopsPerS)
	}
	row("f64 384 × 384 × 384", p.Double)
	row(fmt.Sprintf("bf16 %g × %g × %g", probedBF16.M, probedBF16.N, probedBF16.K), p.Half)
	fmt.Fprintf(&b, "\nmemory      %s copy bandwidth, one core\n", rateText(p.Memory))
	fmt.Fprintf(&b, "all-reduce  %s for 16 MiB on %d ranks, %s µs per hop\n", rateText(p.AllReduce), p.Ranks,
		amount.Digits(1e6*float64(p.Hop), 2))
	fmt.Fprintf(&b, "call        %s ns overhead per kernel\n", amount.Digits(1e9*float64(p.Call), 3))
	b.WriteString(layout.Prose("factors", 12, fmt.Sprintf("matrix %s, overhead %s, relative to the cost model",
		amount.Digits(f.Matrix, 3), amount.Digits(f.Overhead, 3))))
	return b.String()
}

// rateText formats a bandwidth for screens.
func rateText(b costmodel.BytesPerSecond) string {
	return amount.Digits(float64(round(b))/1e9, 3) + " GB/s"
}

// round rounds a bandwidth to tenths of GB/s, at least one.
func round(b costmodel.BytesPerSecond) costmodel.BytesPerSecond {
	return costmodel.BytesPerSecond(max(1e8, math.Round(float64(b)/1e8)*1e8))
}
