package costmodel

import (
	"math"
	"math/bits"

	"github.com/planc-dev/planc/ir"
)

// threads adds the algorithm of ranks in one CPU's memory, planc's own runtime: a ring in the node and a tree between
// nodes, at the bandwidth and latency measured with a collective. Chunks are small, so filling a pipeline costs
// nothing.
func (c *Cluster) threads(r *Route, op ir.Op, p Placement) {
	local, nodes := float64(p.Local), float64(p.Nodes)
	hops := float64(c.Node.Link.Latency()) * (local - 1)
	near, far := float64(c.Node.Link.Bandwidth), math.Inf(1)
	if near == 0 { // a node of one device may have no links
		near = math.Inf(1)
	}
	if p.Nodes > 1 {
		net := c.reach(p)
		steps := float64(bits.Len(uint(p.Nodes - 1)))
		if op == ir.OpAllToAll {
			steps = nodes - 1
		}
		hops += float64(net.latency) * steps
		far = float64(min(net.ring, net.spread)) * NCCL.Network
	}
	inside, outside := share(local), share(nodes)/local
	if op == ir.OpAllToAll {
		inside, outside = inside/nodes, outside*local
	}
	if op == ir.OpShift { // each member sends everything that it has
		inside, outside = 1, math.Ceil(outside)
	}
	r.add(rounds(op)*hops, rounds(op)*max(inside/near, outside/far))
}
