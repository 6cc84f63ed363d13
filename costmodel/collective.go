package costmodel

import (
	"math/bits"

	"github.com/planc-dev/planc/ir"
)

// The time of a collective is the α-β model (Hockney, "The communication challenge for MPP", 1994): each of its
// steps costs a latency α, each byte that a member sends costs β = 1/bandwidth. What the members send in all is
// that of the ring algorithms, (n-1)/n of the buffer (Thakur, Rabenseifner, Gropp, "Optimization of collective
// communication operations in MPICH", 2005).
//
// A group has two tiers: Local members on each of Nodes nodes. The members of a node run a ring of Local-1 steps
// over the node's links; between nodes each runs its part of the buffer over its share of the NICs in
// log2(Nodes) steps (trees and recursive halving, as NCCL does). The tiers work on different chunks at the same
// time, so the bytes cost what the slower tier costs, while latencies add up.

// Efficiencies: what collectives reach of a nominal bandwidth. A CPU's link is measured with a collective.
const (
	linkEfficiency = 0.77 // of node.link; all_reduce of 1 GiB over 8 A100: 229 of 300 GB/s; shared nccl table, read 2026-11
	nicEfficiency  = 0.93 // of network; all_reduce over 8 and 16 nodes: 386 and 370 of 400 GB/s; the same table
)

// algorithm is how one collective works, a tier at a time: the messages in sequence and what a member sends.
type algorithm struct {
	parts         []ir.Op                 // of a compound one: it costs what these cost
	local, across func(n int) int         // steps among n members of a node, and among n nodes
	share         func(n float64) float64 // of the tier's buffer that a member sends
	direct        bool                    // members of one node do not work for each other's traffic to other nodes
}

// collectives has a row for each op that communicates.
var collectives = [ir.NumOps]algorithm{
	ir.OpReduceScatter: {local: ringSteps, across: treeSteps, share: ringShare},
	ir.OpAllGather:     {local: ringSteps, across: treeSteps, share: ringShare},
	ir.OpAllReduce:     {parts: []ir.Op{ir.OpReduceScatter, ir.OpAllGather}},
	ir.OpAllToAll:      {local: ringSteps, across: ringSteps, share: ringShare, direct: true},
}

func ringSteps(n int) int { return n - 1 }

// treeSteps is the base-2 logarithm, rounded up.
func treeSteps(n int) int { return bits.Len(uint(n - 1)) }

func ringShare(n float64) float64 { return (n - 1) / n }

// Placement says where the members of a group are: Local on each of Nodes nodes, the first and the last of
// which are Span nodes apart, both counted.
type Placement struct{ Local, Nodes, Span int }

// Ranks is the number of members.
func (p Placement) Ranks() int { return p.Local * p.Nodes }

// Place finds where the ranks of a group over the mesh's axes are: consecutive ranks fill a node, and the
// mesh's first atom varies fastest. Where nodes cut through groups, it is the group that is cut worst.
func (c *Cluster) Place(m ir.Mesh, axes []ir.Axis) Placement {
	member := map[ir.Axis]bool{}
	for _, a := range m.Expand(axes) {
		member[a] = true
	}
	p := Placement{Local: 1, Nodes: 1}
	stride, last := 1, 0
	for _, a := range m.Atoms {
		if member[a.Name] {
			in := inside(stride, a.Size, c.Node.Devices)
			p.Local, p.Nodes = p.Local*in, p.Nodes*(a.Size/in)
			last += stride * (a.Size - 1)
		}
		stride *= a.Size
	}
	p.Span = max(p.Nodes, last/max(1, c.Node.Devices)+1)
	return p
}

// inside is how many of n ranks, stride apart, every node of d devices has together: the largest divisor of n
// whose run of ranks divides the node.
func inside(stride, n, d int) int {
	for k := n; k > 1; k-- {
		if n%k == 0 && d%(stride*k) == 0 {
			return k
		}
	}
	return 1
}

// CollectiveTime is the time of a collective on a buffer of b bytes: a rank's operand, or the gathered result of
// an all_gather.
func (c *Cluster) CollectiveTime(op ir.Op, p Placement, b Bytes) Seconds {
	a := &collectives[op]
	if a.parts == nil && a.share == nil {
		panic("costmodel: " + op.String() + " is no collective")
	}
	sum := Seconds(0)
	for _, part := range a.parts {
		sum += c.CollectiveTime(part, p, b)
	}
	if a.parts != nil || p.Ranks() == 1 {
		return sum
	}
	near, far := c.linkRate(), c.tier(p.Span)
	steps := times(a.local(p.Local), c.Node.Link.Latency()) + times(a.across(p.Nodes), far.latency)
	inside := Bytes(float64(b) * a.share(float64(p.Local)))
	outside := Bytes(float64(b) * a.share(float64(p.Nodes)) / float64(p.Local))
	if a.direct {
		inside /= Bytes(p.Nodes)
		outside *= Bytes(p.Local)
	}
	return steps + max(inside.Over(near), outside.Over(far.perDevice))
}

func times(n int, s Seconds) Seconds { return Seconds(float64(n) * float64(s)) }

func (c *Cluster) linkRate() BytesPerSecond {
	if c.IsCPU() {
		return c.Node.Link.Bandwidth
	}
	return c.Node.Link.Bandwidth * linkEfficiency
}

// reach is what the network gives a device towards nodes at some distance.
type reach struct {
	latency   Seconds
	perDevice BytesPerSecond // one direction
}

// tier finds what joins span nodes: the first tier that joins as many, at the bandwidth of the narrowest on the
// way. All devices of a node communicate at once, each in its own group, so they share the NICs.
func (c *Cluster) tier(span int) reach {
	if span <= 1 || len(c.Network) == 0 {
		return reach{c.Node.Link.Latency(), c.linkRate()}
	}
	r := reach{}
	nics, bandwidth, over := 1, BytesPerSecond(0), 1.0
	for i, t := range c.Network {
		if t.NICs > 0 {
			nics = t.NICs
		}
		if t.Bandwidth > 0 {
			bandwidth = t.Bandwidth
		}
		over *= max(1, t.Oversubscription)
		per := BytesPerSecond(float64(bandwidth) * float64(nics) * nicEfficiency / over / float64(max(1, c.Node.Devices)))
		if i == 0 || per < r.perDevice {
			r.perDevice = per
		}
		r.latency = max(r.latency, t.Latency())
		if t.Nodes == 0 || t.Nodes >= span {
			break
		}
	}
	return r
}
