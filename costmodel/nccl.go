package costmodel

import "strings"

// Protocol is one of a library's ways to hand data on. A smaller message waits less for a flag beside each word; a
// larger one does not want to send the flags.
type Protocol struct {
	Base Seconds // of a collective: launch, and the wait for all members
	Hop  float64 // a step, in latencies of the link or the network
	Rate float64 // of the bandwidth that the library reaches
}

// The protocols of NCCL, by message size.
const (
	LL     = iota // 4 bytes of data beside each flag of 4
	LL128         // 120 bytes beside a flag of 8
	Simple        // no flags: a fence for each piece
)

// LinkRate is what collectives reach of a kind of link's nominal bandwidth.
type LinkRate struct {
	Kind, Arch string  // of the link; of the GPU, a prefix, "" any
	Ring       float64 // where devices hand on
	Switch     float64 // where the switches reduce; of use with node.sharp
}

// Comm are a communication library's constants: what it makes of nominal figures.
type Comm struct {
	Protocols [3]Protocol
	Fill      float64    // what filling the pipeline costs, in √(α·βb)
	Network   float64    // of NICs' nominal bandwidth that rings reach
	Tree      float64    // of that, what trees do
	Pair      float64    // of what rings reach of links, what messages between two devices do
	Links     []LinkRate // the first that fits counts
}

// link is the row of a cluster's link; of an unknown kind, the last one's.
func (k *Comm) link(c *Cluster) *LinkRate {
	for i := range k.Links {
		if l := &k.Links[i]; l.Kind == c.Node.Link.Kind && strings.HasPrefix(c.GPU.Arch, l.Arch) {
			return l
		}
	}
	return &k.Links[len(k.Links)-1]
}

// NCCL are the constants of NCCL 2.x on NVIDIA GPUs. Method: least squares of log(predicted/measured), machines weighed
// alike, outliers in proportion, by tools/ncclfit in 2026-11, over 500 published figures of V100, A100, H100, H200 and
// GB200 machines, nearly all of all-reduce; the fit's own program prints the values that are rounded here, what they
// are without each source, and their residuals (docs/communication.md). A hop's unit is the latency that cluster files
// give, 2 µs of NVLink and 5 µs of InfiniBand. LL128's rate is 120 of 128 bytes; xgmi is assumed, no row shows it.
var NCCL = Comm{
	Protocols: [3]Protocol{
		LL:     {Base: 13 * Microsecond, Hop: 0.54, Rate: 0.10},
		LL128:  {Base: 13 * Microsecond, Hop: 1, Rate: 0.9375},
		Simple: {Base: 54 * Microsecond, Hop: 1, Rate: 1},
	},
	Fill:    1,
	Network: 1,
	Tree:    0.89,
	Pair:    0.95,
	Links: []LinkRate{
		{Kind: "nvswitch", Arch: "sm_10", Ring: 1, Switch: 0.375},
		{Kind: "nvswitch", Arch: "sm_9", Ring: 0.845, Switch: 0.66},
		{Kind: "nvswitch", Ring: 0.81},
		{Kind: "nvlink", Ring: 1},
		{Kind: "xgmi", Ring: 0.8},
		{Kind: "pcie", Ring: 0.78},
	},
}
