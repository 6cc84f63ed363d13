package costmodel

import "strings"

// Protocol is one of a library's transfer protocols. Small messages wait less if each word carries a flag; large
// messages are faster without flags.
type Protocol struct {
	Base Seconds // fixed time of a collective: launch, and waiting for all members
	Hop  float64 // time of a step, in latencies of the link or network
	Rate float64 // fraction of the library's bandwidth
}

// NCCL's protocols, by message size.
const (
	LL     = iota // 4 bytes of data with a flag of 4 bytes
	LL128         // 120 bytes with a flag of 8 bytes
	Simple        // no flags: a fence per piece
)

// LinkRate is the fraction of a link's nominal bandwidth that collectives reach.
type LinkRate struct {
	Kind, Arch string  // kind of link; prefix of the GPU's architecture, "" for any
	Ring       float64 // in rings
	Switch     float64 // with in-switch reduction; used with node.sharp
}

// Comm holds the constants of a communication library, relative to nominal figures.
type Comm struct {
	Protocols [3]Protocol
	Fill      float64    // cost of filling the pipeline, in √(α·βb)
	Network   float64    // fraction of the NICs' nominal bandwidth that rings reach
	Tree      float64    // fraction of that for trees
	Pair      float64    // fraction of rings' link bandwidth for messages between two devices
	Links     []LinkRate // the first matching row applies
}

// link returns the row of a cluster's link, the last one for an unknown kind.
func (k *Comm) link(c *Cluster) *LinkRate {
	for i := range k.Links {
		if l := &k.Links[i]; l.Kind == c.Node.Link.Kind && strings.HasPrefix(c.GPU.Arch, l.Arch) {
			return l
		}
	}
	return &k.Links[len(k.Links)-1]
}

// NCCL holds the constants of NCCL 2.x on NVIDIA GPUs. They are a least-squares fit of log(predicted/measured) by
// tools/ncclfit in 2026-11 over 500 published figures of V100, A100, H100, H200 and GB200 machines, nearly all of them
// all-reduce. Machines have equal weights, and outliers count proportionally. The program prints the values that are
// rounded here, the values without each source, and the residuals (docs/communication.md). The unit of a hop is the
// latency in cluster files: 2 µs for NVLink and 5 µs for InfiniBand. LL128's rate is 120 of 128 bytes. xgmi is assumed,
// because no row has it.
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
