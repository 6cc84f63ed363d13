package machine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/runtime/amount"
)

// MeasuredBlock formats the measured block of a cluster file.
func MeasuredBlock(by string, m costmodel.Measured) string {
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

// CPUClusterText returns the cluster file of a machine's CPU. If rates are not given, they are the catalogue's.
func CPUClusterText(m Machine, r *rates) string {
	assumed, err := costmodel.Resolve(costmodel.Ref{Node: "cpu", Devices: 1}, nil, nil)
	if err != nil {
		panic("planc: the catalogue's cpu: " + err.Error())
	}
	name, memory, memorySource := m.CPU, float64(m.Memory)/(1<<30), "total memory, or the container's limit"
	if name == "" {
		name = "CPU"
	}
	if m.Memory == 0 {
		memory, memorySource = assumed.Node.Host.MemoryGiB, NotMeasured
	}
	if r == nil {
		r = assumedRates()
	}
	memoryText := strconv.FormatFloat(memory, 'f', 1, 64)
	var b strings.Builder
	b.WriteString("# This machine's CPU. A device is one core and runs one rank; more devices than cores share the " +
		"cores.\n")
	if m.ISA != "" {
		fmt.Fprintf(&b, "# Widest vector instructions: %s.\n", m.ISA)
	}
	fmt.Fprintf(&b, "gpu:\n  name: %s\n  arch: cpu\n  memory_gib: %s\n", strconv.Quote(name), memoryText)
	half := ""
	if r.Half > 0 {
		half = ", bf16: " + amount.Digits(r.Half, 3)
	}
	fmt.Fprintf(&b, "  memory_bandwidth: %v\n  peak_tflops: {f32: %s, f64: %s%s}\n", round(r.Memory),
		amount.Digits(r.Single, 3), amount.Digits(r.Double, 3), half)
	fmt.Fprintf(&b, "node:\n  devices: %d\n", m.Cores)
	fmt.Fprintf(&b, "  link: {kind: memory, bandwidth: %v, latency_us: %s}\n", round(r.Link),
		amount.Digits(r.LatencyUS, 2))
	fmt.Fprintf(&b, "  host: {memory_gib: %s, cores: %d, bandwidth: %v}\n", memoryText, m.Cores, round(r.Memory))
	b.WriteString("nodes: 1\nsource:\n")
	for _, s := range [][2]string{
		{"gpu.name", "the system"}, {"gpu.memory_gib", memorySource}, {"gpu.memory_bandwidth", r.By},
		{"gpu.peak_tflops", r.By},
		{"node.devices", "available cores"}, {"node.link", r.By}, {"node.host.memory_gib",
			memorySource},
		{"node.host.cores", "available cores"}, {"node.host.bandwidth", r.By},
	} {
		fmt.Fprintf(&b, "  %s: %q\n", s[0], s[1])
	}
	return b.String()
}

// assumedRates returns the rates of the catalogue's cpu, for a rank that has a core to itself.
func assumedRates() *rates {
	file, err := costmodel.ClusterFile("cpu")
	if err != nil {
		panic("planc: the catalogue's cpu: " + err.Error())
	}
	c, err := costmodel.ParseCluster("cpu.yaml", file)
	if err != nil {
		panic("planc: the catalogue's cpu: " + err.Error())
	}
	return &rates{By: NotMeasured, Single: c.GPU.PeakTFLOPS["f32"], Double: c.GPU.PeakTFLOPS["f64"],
		Memory: c.GPU.MemoryBandwidth,
		Link:   c.Node.Link.Bandwidth, LatencyUS: c.Node.Link.LatencyUS}
}

// NotMeasured is the source of figures that detect takes from the catalogue.
const NotMeasured = "not measured: assumed to be as in the catalogue's cpu"
