package costmodel

import (
	"math"

	"github.com/planc-dev/planc/ir"
)

// SendTime returns the time of a message of b bytes between neighbours on an axis. If some neighbours are on other
// nodes, it is the time between nodes, because all wait for the slowest. The devices of a node whose neighbours are on
// another node send at the same time.
func (c *Cluster) SendTime(m ir.Mesh, axis ir.Axis, b Bytes) Seconds {
	r := c.SendRoute(m, axis)
	return r.Time(b)
}

// SendRoute returns the route of messages between neighbours on an axis.
func (c *Cluster) SendRoute(m ir.Mesh, axis ir.Axis) Route {
	p := c.Node.placePair(m, axis, false)
	if c.IsCPU() {
		return c.sendThreads(p)
	}
	k := &NCCL
	r := Route{fill: k.Fill}
	hop, rate := c.Node.Link.Latency(), float64(c.Node.linkRate(2))*k.link(c).Ring*k.Pair
	if p.Nodes > 1 {
		far := c.reach(p)
		hop, rate = far.latency, float64(far.ring)*k.Network
	}
	r.pairs(k, float64(hop), 1/rate)
	return r
}

func (c *Cluster) sendThreads(p Placement) Route {
	hop, rate := c.Node.Link.Latency(), float64(c.Node.Link.Bandwidth)
	if p.Nodes > 1 {
		far := c.reach(p)
		hop, rate = far.latency, float64(far.ring)*NCCL.Network
	}
	r := Route{}
	r.add(float64(hop), 1/math.Max(rate, 1))
	return r
}
