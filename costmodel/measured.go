package costmodel

import (
	"maps"
	"slices"
)

// Measured holds the results of planc calibrate: the rates of this cluster relative to the prediction from the
// catalogue's figures. 1 or absent means as predicted; 0.9 is nine tenths of the rate. Overhead is relative time: 2 is
// twice as long.
type Measured struct {
	By       string  `yaml:"by" doc:"who or what measured, and when"`
	Matrix   float64 `yaml:"matrix" over:"0" max:"100" doc:"rate of matmuls and attention, over the predicted one"`
	Memory   float64 `yaml:"memory" over:"0" max:"100" doc:"memory bandwidth of the devices, over gpu.memory_bandwidth as predicted"`
	Link     float64 `yaml:"link" over:"0" max:"100" doc:"bandwidth between devices of a node, over node.link.bandwidth as predicted"`
	Network  float64 `yaml:"network" over:"0" max:"100" doc:"bandwidth between nodes, over the network's as predicted"`
	Overhead float64 `yaml:"overhead" over:"0" max:"100" doc:"time to launch kernels and of a step's own work, over the predicted one"`

	// Attention and FP8 are set if attention and FP8 matmuls were measured separately; otherwise they follow Matrix.
	// Fits do not change them.
	Attention float64 `yaml:"attention" over:"0" max:"100" doc:"rate of attention, over the predicted one; absent: follows matrix"`

	FP8 float64 `yaml:"fp8" over:"0" max:"100" doc:"rate of FP8 matmuls, over the predicted one; absent: follows matrix"`

	Collectives CollectiveTable `yaml:"collectives" doc:"measured times of collectives between devices of a node, as planc calibrate writes them: all_reduce 8 16777216 152 (collective, ranks, bytes, µs), each row followed by a semicolon; or the name of a file of such rows, FILE.csv"`
	GEMM        string          `yaml:"gemm" doc:"CSV file of shapes and times"`
}

// MeasuredKeys are the keys of the factors of Measured, in order.
var MeasuredKeys = []string{"matrix", "memory", "link", "network", "overhead"}

// MeasuredAlone are the keys that follow matrix if they are absent.
var MeasuredAlone = []string{"attention", "fp8"}

// Factor returns a pointer to a factor by its key.
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
	panic("costmodel: no measured factor has the key " + key)
}

// factor returns a factor, or 1 if it is absent.
func factor(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// Scaled returns the cluster with further measurements multiplied into those that it has.
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

// applyBandwidths replaces nominal bandwidths by measured ones, except for the network's, which reach applies. Peaks
// stay nominal, because MFU refers to them.
func (c *Cluster) applyBandwidths(m Measured) {
	c.GPU.MemoryBandwidth *= BytesPerSecond(factor(m.Memory))
	c.Node.Link.Bandwidth *= BytesPerSecond(factor(m.Link))
}

// applyRates replaces a device's predicted rates and overheads by measured ones.
func (d *Device) applyRates(m Measured) {
	for k := range d.rate {
		switch {
		case Kind(k) == Vector:
		case Kind(k) >= Attention && m.Attention != 0:
			d.rate[k] *= FlopsPerSecond(m.Attention)
		case d.fp8 && Kind(k) == Matrix && m.FP8 != 0:
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
