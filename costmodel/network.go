package costmodel

import "math"

// reach is what the network gives a device towards the other nodes of a group, one direction, of nominal bandwidth. The
// devices of a node that reach for other nodes at once, each in a group of the same kind, share its NICs.
type reach struct {
	latency Seconds        // from end to end of the highest tier on the way
	ring    BytesPerSecond // where each node hands on to the next
	spread  BytesPerSecond // where each node sends to all others
}

// reach finds the tiers between the nodes of a group. The way goes up to the first tier that joins them all, or, where
// they are on several rails, one above the rails. Above an oversubscribed tier there is less for each node, but not all
// traffic goes there: of the nodes that a group has below it, one hands on upwards while the others hand on among
// themselves; and of what all send to all only that to nodes elsewhere goes up.
func (c *Cluster) reach(p Placement) reach {
	r := reach{ring: BytesPerSecond(math.Inf(1)), spread: BytesPerSecond(math.Inf(1))}
	nics, bandwidth, over, below := 1, BytesPerSecond(0), 1.0, 0
	for i := range c.Network {
		t := &c.Network[i]
		nics, bandwidth = or(t.NICs, nics), or(t.Bandwidth, bandwidth)
		over *= max(1, t.Oversubscription)
		per := BytesPerSecond(float64(bandwidth) * c.nicsFor(nics, p.Crossing) / over)
		together := 1.0 // of the group's nodes, those that one part of the tier below has
		if i > 0 && !p.Mixed {
			together = math.Floor(float64(below) * float64(p.Nodes) / float64(max(1, p.Span)))
			together = min(max(1, together), float64(p.Nodes))
		}
		r.ring = min(r.ring, per*BytesPerSecond(together))
		if away := 1 - together/float64(p.Nodes); i == 0 {
			r.spread = per
		} else if away > 0 {
			r.spread = min(r.spread, per/BytesPerSecond(away))
		}
		r.latency = max(r.latency, t.Latency())
		if joined := t.Nodes == 0 || t.Nodes >= p.Span; joined && !(t.Rails && p.Mixed) {
			break
		}
		below = t.Nodes
	}
	if host := c.Node.Host.Bandwidth; host > 0 { // NICs are reached as the host is
		r.ring, r.spread = min(r.ring, host), min(r.spread, host)
	}
	slower := BytesPerSecond(factor(c.Measured.Network))
	r.ring, r.spread = r.ring*slower, r.spread*slower
	return r
}

// nicsFor is how many of a node's NICs a device has, where so many cross; 0: all do. One that crosses alone has one
// NIC, or those that are its own where there are more NICs than devices.
func (c *Cluster) nicsFor(nics, crossing int) float64 {
	own := float64(nics) / float64(max(1, c.Node.Devices))
	if crossing == 0 {
		return own
	}
	return min(float64(nics)/float64(crossing), max(1, own))
}

// link is what the links of a node give each of n of its devices among themselves, of nominal bandwidth: a switch all
// of it, a mesh the part that leads to the others of the group.
func (c *Cluster) link(n int) BytesPerSecond {
	l := &c.Node.Link
	whole := max(c.Node.Devices, c.Node.Whole)
	if (l.Kind == "nvlink" || l.Kind == "xgmi") && n > 1 && whole > n {
		return l.Bandwidth * BytesPerSecond(float64(n-1)/float64(whole-1))
	}
	return l.Bandwidth
}
