package costmodel

import (
	"maps"
	"slices"
)

// Measured is what planc calibrate wrote: how fast this cluster is against what the catalogue's figures predict. 1, or
// absent, is as predicted; 0.9 is nine tenths of the rate. Overhead is of times: 2 is twice as long.
type Measured struct {
	By       string  `yaml:"by" doc:"who or what measured, when"`
	Matrix   float64 `yaml:"matrix" over:"0" max:"100" doc:"rate of matmuls and attention, over the predicted one"`
	Memory   float64 `yaml:"memory" over:"0" max:"100" doc:"bandwidth of the devices' memory, over gpu.memory_bandwidth as predicted"`
	Link     float64 `yaml:"link" over:"0" max:"100" doc:"bandwidth between devices of a node, over node.link.bandwidth as predicted"`
	Network  float64 `yaml:"network" over:"0" max:"100" doc:"bandwidth between nodes, over the network's as predicted"`
	Overhead float64 `yaml:"overhead" over:"0" max:"100" doc:"time of launching kernels and of a step's own work, over the predicted one"`

	// Attention and Eight are where attention and products in 8 bits were measured by themselves; else they go with
	// Matrix. They are no factors that fits move.
	Attention float64 `yaml:"attention" over:"0" max:"100" doc:"rate of attention, over the predicted one; absent: that of matrix"`

	FP8 float64 `yaml:"fp8" over:"0" max:"100" doc:"rate of matmuls in 8 bits, over the predicted one; absent: that of matrix"`

	Collectives CollectiveTable `yaml:"collectives" doc:"times between devices of a node, as planc calibrate writes them: all_reduce 8 16777216 152; collective, ranks, bytes, µs, a semicolon behind each row; or the name of a file of such rows, FILE.csv"`
	GEMM        string          `yaml:"gemm" doc:"CSV of shapes and times"`
}

// MeasuredKeys are the factors of Measured in their order.
var MeasuredKeys = []string{"matrix", "memory", "link", "network", "overhead"}

// MeasuredAlone are the keys of those that go with matrix where they are absent.
var MeasuredAlone = []string{"attention", "fp8"}

// Factor is a factor by its key, to be set.
func (m *Measured) Factor(key string) *float64 {
	switch key {
	case "matrix":
		return &m.Matrix
	case "memory":
		return &m.Memory
	case "link":
		return &m.Link
	case "network":
		return &m.Network
	case "overhead":
		return &m.Overhead
	case "attention":
		return &m.Attention
	case "fp8":
		return &m.FP8
	}
	panic("costmodel: nothing is measured of " + key)
}

// factor is one that is there, or 1.
func factor(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// Scaled is the cluster as further measurements have it, on top of those that it has.
func (c *Cluster) Scaled(m Measured) *Cluster {
	own := *c
	own.GPU.PeakTFLOPS = maps.Clone(c.GPU.PeakTFLOPS)
	own.Network = slices.Clone(c.Network)
	own.applyBandwidths(m)
	for _, key := range MeasuredKeys {
		*own.Measured.Factor(key) = factor(*c.Measured.Factor(key)) * factor(*m.Factor(key))
	}
	for _, key := range MeasuredAlone {
		*own.Measured.Factor(key) *= factor(m.Matrix)
	}
	return &own
}

// applyBandwidths puts measured bandwidths in place of nominal ones, but for the network's, which reach counts in.
// Peaks stay, since mfu is of them.
func (c *Cluster) applyBandwidths(m Measured) {
	c.GPU.MemoryBandwidth *= BytesPerSecond(factor(m.Memory))
	c.Node.Link.Bandwidth *= BytesPerSecond(factor(m.Link))
}

// applyRates puts measured rates and overheads of a device in place of predicted ones.
func (d *Device) applyRates(m Measured) {
	for k := range d.rate {
		switch {
		case Kind(k) == Vector:
		case Kind(k) >= Attention && m.Attention != 0:
			d.rate[k] *= FlopsPerSecond(m.Attention)
		case d.eight && Kind(k) == Matrix && m.FP8 != 0:
			d.rate[k] *= FlopsPerSecond(m.FP8)
		default:
			d.rate[k] *= FlopsPerSecond(factor(m.Matrix))
		}
	}
	d.wide *= FlopsPerSecond(factor(m.Matrix))
	d.launch *= Seconds(factor(m.Overhead))
	d.host *= Seconds(factor(m.Overhead))
	d.pass *= Seconds(factor(m.Overhead))
	d.step *= Seconds(factor(m.Overhead))
}
