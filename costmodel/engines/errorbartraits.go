package engines

import (
	"cmp"
	"fmt"

	"github.com/planc-dev/planc/costmodel"
)

// Traits are the properties of hardware that are compared in addition to its generation, in the order of [TraitNames]:
// bytes per second, or FLOP/s for the device's peak. 0 means that there is no such hardware.
type Traits [4]float64

// Ranges are the smallest and largest value of each trait in some rows; 0 and 0: no row has it.
type Ranges [4][2]float64

// TraitNames are the names of traits in documents.
var TraitNames = [4]string{"flops", "memory_bandwidth", "link", "network"}

// Beyond is a trait outside the range of all rows.
type Beyond struct {
	Trait  string     // of [TraitNames]; "": there is none
	Engine string     // of the rows; "": any
	Value  float64    // the cluster's
	Rows   [2]float64 // the range of the rows
}

// TraitsOf returns a cluster's traits: the dense 16-bit peak of its devices and their memory bandwidth; the bandwidth
// of its links if a node has several devices; and the NIC bandwidth per device if there are several nodes.
// Oversubscription is not included, because it is unknown for the rows' networks.
func TraitsOf(c *costmodel.Cluster) (t Traits) {
	for _, compute := range []string{"bf16", "fp16"} {
		if peak, ok := c.GPU.Peak(compute); ok {
			t[0] = max(t[0], float64(peak))
		}
	}
	t[1] = float64(c.GPU.MemoryBandwidth)
	if c.Node.Devices > 1 {
		t[2] = float64(c.Node.Link.Bandwidth)
	}
	if c.Nodes > 1 {
		t[3] = perDevice(c)
	}
	return t
}

// perDevice returns the NIC bandwidth per device in bytes per second: the smallest among the tiers up to the one that
// connects all nodes.
func perDevice(c *costmodel.Cluster) (low float64) {
	nics, bandwidth := 1, costmodel.BytesPerSecond(0)
	for i := range c.Network {
		t := &c.Network[i]
		nics, bandwidth = cmp.Or(t.NICs, nics), cmp.Or(t.Bandwidth, bandwidth)
		if own := float64(bandwidth) * float64(nics) / float64(max(1, c.Node.Devices)); i == 0 || own < low {
			low = own
		}
		if t.Nodes == 0 || t.Nodes >= c.Nodes {
			break
		}
	}
	return low
}

// Add widens the ranges to include hardware.
func (r *Ranges) Add(t Traits) {
	for i, v := range t {
		if v == 0 {
			continue
		}
		if own := &r[i]; own[1] == 0 {
			*own = [2]float64{v, v}
		} else {
			*own = [2]float64{min(own[0], v), max(own[1], v)}
		}
	}
}

// alike is the factor by which a trait may lie outside of the rows' range, because figures for the same hardware differ
// between sources by about that much.
const alike = 1.25

// beyond returns the trait that is farthest outside of the ranges, if there is one.
func (r *Ranges) beyond(t Traits) (out Beyond) {
	furthest := alike
	for i, v := range t {
		if v == 0 {
			continue
		}
		if off := max(r[i][0]/v, v/r[i][1]); off > furthest {
			furthest, out = off, Beyond{Trait: TraitNames[i], Value: v, Rows: r[i]}
		}
	}
	return out
}

// traitWords describe a trait with its unit in sentences.
var traitWords = [4]struct{ noun, unit string }{
	{"a device's peak in 16 bits is", "TFLOP/s"}, {"a device's memory has", "GB/s"},
	{"a link inside a node has", "GB/s"},
	{"a device's share of the NICs is", "GB/s"},
}

// String describes the trait: "a link inside a node has 6 GB/s, in measured runs of megatron 150 to 900".
func (b Beyond) String() string {
	i := 0
	for TraitNames[i] != b.Trait {
		i++
	}
	w, unit := traitWords[i], float64(costmodel.GBs)
	if i == 0 {
		unit = float64(costmodel.TFLOPs)
	}
	text := fmt.Sprintf("%s %s %s; ", w.noun, traitFigure(b.Value/unit), w.unit)
	engine := ""
	if b.Engine != "" {
		engine = " of " + b.Engine
	}
	switch low, high := traitFigure(b.Rows[0]/unit), traitFigure(b.Rows[1]/unit); {
	case b.Rows[1] == 0:
		return text + "no measured run" + engine + " has one"
	case low == high:
		return text + "measured runs" + engine + " have " + low
	default:
		return text + "measured runs" + engine + " have " + low + " to " + high
	}
}

// traitFigure formats a figure with at least four significant digits.
func traitFigure(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
