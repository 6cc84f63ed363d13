package main

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

// calibrateHere measures this machine's CPU and writes its cluster file.
func (a *app) calibrateHere(m machine, out string) error {
	p, rates, measured, err := a.measureCPU(m)
	if err != nil {
		return err
	}
	saveCPU(m, thisCPUOf(m, rates, measured)) // jobs on cpu are priced by the newest measurement
	text := clusterFileOf(m, rates) + measuredBlock(rates.By, measured)
	summary := p.screen(m, measured)
	if out == "" {
		a.notef("%s", strings.TrimSuffix(summary, "\n"))
		return a.print(text)
	}
	if err := a.print(summary); err != nil {
		return err
	}
	return a.writeNew(out, text, "planc plan --set "+shellWord("cluster.node="+filePath(out)))
}

// measureCPU measures this machine's CPU: its rates, and correction factors.
func (a *app) measureCPU(m machine) (p probeResult, r *rates, f costmodel.Measured, err error) {
	if err := a.runWithNotice("measuring this CPU", func() error { p = probe(m.Cores); return nil }); err != nil {
		return p, nil, f, err
	}
	own := p.rates(m.Cores)
	own.By = fmt.Sprintf("planc calibrate, %s, %s", time.Now().Format(time.DateOnly), p.ISA)
	c, err := costmodel.ParseCluster("here.yaml", []byte(clusterFileOf(m, &own)))
	if err != nil {
		return p, nil, f, fmt.Errorf("the measurement gives an invalid cluster file: %w", err)
	}
	return p, &own, p.factors(c), nil
}

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

// measuredBlock formats the measured block of a cluster file.
func measuredBlock(by string, m costmodel.Measured) string {
	var b strings.Builder
	fmt.Fprintf(&b, "measured:\n  by: %q\n", by)
	for _, key := range costmodel.MeasuredKeys {
		if v := *m.Factor(key); v != 0 && amount.Digits(v, 3) != "1.00" {
			fmt.Fprintf(&b, "  %s: %s\n", key, amount.Digits(v, 3))
		}
	}
	for _, key := range costmodel.MeasuredAlone {
		if v := *m.Factor(key); v != 0 {
			fmt.Fprintf(&b, "  %s: %s\n", key, amount.Digits(v, 3))
		}
	}
	if m.Collectives != "" {
		fmt.Fprintf(&b, "  collectives: %q\n", m.Collectives)
	}
	return b.String()
}

// screen formats the measurements.
func (p *probeResult) screen(m machine, f costmodel.Measured) string {
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
