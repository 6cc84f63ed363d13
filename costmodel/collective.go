package costmodel

import (
	"math"
	"math/bits"

	"github.com/planc-dev/planc/ir"
)

// The time of a collective is the α-β model (Hockney, "The communication challenge for MPP", 1994) with a pipelining
// term. Each step costs a latency, in total α. Each byte costs β, which is that of the slowest tier that works on it
// concurrently. Filling the pipeline with pieces of the best size, which balances the two, adds the square root of
// α·βb. Each algorithm and protocol has such a curve. A collective takes the minimum of them, as NCCL's tuner does.
// Each curve is concave in the bytes, and so is the minimum: splitting a collective in two never makes it cheaper.
//
//	ring   n-1 steps, including those between nodes; (n-1)/n of the buffer passes through each device and through each
//	       node's network (Thakur, Rabenseifner, Gropp, 2005). An all-reduce is two rounds
//	tree   all-reduce: a chain in the node, a double binary tree between nodes (Sanders, Speck, Träff, 2009), up and
//	       down
//	pat    all-gather and reduce-scatter with one member per node: a binary tree between nodes
//	nvls   the node's switches reduce and multicast: one step in and out for every n; an all-reduce moves 1+1/n of the
//	       buffer through a device. Between nodes like tree
//	direct all-to-all: each member sends to each other one; with rails, a message to another position goes over the
//	       links first
//	shift  each member sends one message; if some go to other nodes, all wait for those

// curve is the time of one algorithm as a function of bytes.
type curve struct{ alpha, beta float64 } // seconds; seconds per byte

// Route holds the algorithms of one collective of a group: what CollectiveTime computes from a placement before it
// knows the bytes. The zero Route takes no time.
type Route struct {
	curves [7]curve
	n      int
	fill   float64
}

func (r *Route) add(alpha, beta float64) {
	r.curves[r.n] = curve{alpha, beta}
	r.n++
}

// Time returns the time for a buffer of b bytes: a rank's operand, or the gathered result of an all-gather.
func (r *Route) Time(b Bytes) Seconds {
	if r.n == 0 {
		return 0
	}
	best := math.Inf(1)
	for i := range r.curves[:r.n] {
		c := &r.curves[i]
		stream := float64(c.beta * float64(b))
		if c.alpha+stream >= best {
			continue
		}
		best = min(best, c.alpha+stream+float64(r.fill*math.Sqrt(float64(c.alpha*stream))))
	}
	return Seconds(best)
}

// CollectiveTime returns the time of a collective on a buffer of b bytes: a rank's operand, or the gathered result of
// an all-gather. It grows with the bytes, and splitting a collective in two never makes it cheaper.
func (c *Cluster) CollectiveTime(op ir.Op, p Placement, b Bytes) Seconds {
	var r Route
	NCCL.route(&r, c, op, p)
	return r.Time(b)
}

// Route returns the algorithms of a collective over a group.
func (c *Cluster) Route(op ir.Op, p Placement) Route { return NCCL.Route(c, op, p) }

// group is a group's collective as the algorithms see it, with effective latencies in seconds and bandwidths in bytes
// per second.
type group struct {
	k              *Comm
	op             ir.Op
	local, nodes   float64
	ranks          float64
	rounds         float64 // 2 if the reduced result is gathered again
	hop, far       float64 // latencies of a step in the node, and between nodes
	near           float64 // effective bandwidth of a device's links
	ring, spread   float64 // a device's share of the network, for rings and for all-to-all
	switches       float64 // bandwidth of a device's links if the switches reduce; 0: they do not
	hopsUp         float64 // steps up a tree between nodes
	rails, overNet bool
}

// Route returns the algorithms of a collective over a group with a library's constants.
func (k *Comm) Route(c *Cluster, op ir.Op, p Placement) (r Route) {
	k.route(&r, c, op, p)
	return r
}

// route appends the algorithms to an empty Route.
func (k *Comm) route(r *Route, c *Cluster, op ir.Op, p Placement) {
	if rounds(op) == 0 {
		panic("costmodel: " + op.String() + " is not a collective")
	}
	if p.Ranks() == 1 {
		return
	}
	if c.IsCPU() {
		c.threads(r, op, p)
		return
	}
	if t, ok := c.table[tabled{op, p.Local}]; ok && p.Nodes == 1 {
		*r = t
		return
	}
	r.fill = k.Fill
	g := k.group(c, op, p)
	switch op {
	case ir.OpAllToAll:
		g.direct(r)
		return
	case ir.OpShift:
		g.shift(r)
		return
	}
	g.rings(r)
	if op == ir.OpAllReduce && g.overNet {
		g.trees(r)
	}
	if op != ir.OpAllReduce && g.overNet && p.Local == 1 {
		g.pat(r)
	}
	if g.switches > 0 && p.Local > 1 && (op == ir.OpAllReduce || !g.overNet) {
		g.nvls(r)
	}
}

func (k *Comm) group(c *Cluster, op ir.Op, p Placement) group {
	g := group{k: k, op: op, local: float64(p.Local), nodes: float64(p.Nodes), ranks: float64(p.Ranks()),
		rounds: rounds(op),
		hop:    float64(c.Node.Link.Latency()), overNet: p.Nodes > 1}
	rate := k.link(c)
	g.near = float64(c.Node.linkRate(p.Local)) * rate.Ring
	if c.Node.SHARP {
		g.switches = float64(c.Node.Link.Bandwidth) * rate.Switch
	}
	g.ring, g.spread = math.Inf(1), math.Inf(1)
	if g.overNet {
		far := c.reach(p)
		g.far, g.ring, g.spread = float64(far.latency), float64(far.ring)*k.Network, float64(far.spread)*k.Network
		g.hopsUp = float64(bits.Len(uint(p.Nodes - 1)))
		g.rails = len(c.Network) > 0 && c.Network[0].Rails
	}
	return g
}

// rounds returns the number of rounds of a collective, 0 if the op is not a collective.
func rounds(op ir.Op) float64 {
	switch op {
	case ir.OpAllReduce:
		return 2
	case ir.OpReduceScatter, ir.OpAllGather, ir.OpAllToAll, ir.OpShift:
		return 1
	}
	return 0
}

// share returns the fraction of a buffer that n members exchange.
func share(n float64) float64 { return (n - 1) / n }

func (g *group) rings(r *Route) {
	steps := g.rounds * ((g.ranks-g.nodes)*g.hop + (g.nodes-1)*g.far)
	bytes := g.rounds * share(g.ranks) * max(g.over(1/g.near, g.local > 1), 1/(g.ring*g.local))
	for i := range g.k.Protocols {
		p := &g.k.Protocols[i]
		r.add(float64(p.Base)+p.Hop*steps, bytes/p.Rate)
	}
}

// over returns v if a condition holds, else 0: a node of one device may have no links.
func (g *group) over(v float64, holds bool) float64 {
	if holds {
		return v
	}
	return 0
}

func (g *group) trees(r *Route) {
	steps := 2 * ((g.local-1)*g.hop + g.hopsUp*g.far)
	bytes := 2 * max(g.over(share(g.local)/g.near, g.local > 1), g.between())
	for i := range g.k.Protocols {
		p := &g.k.Protocols[i]
		r.add(float64(p.Base)+p.Hop*steps, bytes/p.Rate)
	}
}

// between returns the cost per byte of a tree between nodes, in one direction.
func (g *group) between() float64 {
	if !g.overNet {
		return 0
	}
	return share(g.nodes) / (g.ring * g.local * g.k.Tree)
}

func (g *group) pat(r *Route) {
	p := &g.k.Protocols[Simple]
	r.add(float64(p.Base)+p.Hop*g.hopsUp*g.far, g.between()/p.Rate)
}

func (g *group) nvls(r *Route) {
	p := &g.k.Protocols[LL128] // its hops take the plain latencies
	bytes := g.rounds * share(g.local) / g.switches
	if g.op == ir.OpAllReduce {
		bytes = max((1+1/g.local)/g.switches, 2*g.between())
	}
	r.add(float64(p.Base)+p.Hop*g.rounds*(g.hop+g.hopsUp*g.far), bytes)
}

func (g *group) direct(r *Route) {
	near, far := (g.local-1)/g.ranks, (g.ranks-g.local)/g.ranks
	if g.rails {
		near = share(g.local)
	}
	bytes := max(g.over(near/(g.near*g.k.Pair), g.local > 1), g.over(far/g.spread, g.overNet))
	r.pairs(g.k, (g.local-1)*g.hop+(g.nodes-1)*g.far, bytes)
}

func (g *group) shift(r *Route) {
	hop, rate := g.hop, g.near*g.k.Pair
	if g.overNet {
		hop, rate = g.far, g.ring
	}
	r.pairs(g.k, hop, 1/rate)
}

// pairs adds point-to-point messages, which do not use LL128.
func (r *Route) pairs(k *Comm, steps, bytes float64) {
	for _, i := range [...]int{LL, Simple} {
		p := &k.Protocols[i]
		r.add(float64(p.Base)+p.Hop*steps, bytes/p.Rate)
	}
}
