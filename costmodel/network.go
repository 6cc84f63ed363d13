package costmodel

import "math"

// reach is the latency and nominal bandwidth, in one direction, from a device to the other nodes of a group. The
// devices of a node that communicate with other nodes at the same time, each in a group of the same kind, share its
// NICs.
type reach struct {
	latency Seconds        // end to end, of the highest tier on the path
	ring    BytesPerSecond // if each node sends to the next one
	spread  BytesPerSecond // if each node sends to all others
}

// reach finds the tiers between the nodes of a group. The path goes up to the first tier that connects them all or, if
// they are on several rails, to a tier above the rails. Above an oversubscribed tier there is less bandwidth per node,
// but not all traffic goes there. In a ring, only one of a group's nodes below the tier sends upwards, and the others
// send among themselves. In an all-to-all, only messages to nodes elsewhere go up.
func (c *Cluster) reach(p Placement) reach {
	r := reach{ring: BytesPerSecond(math.Inf(1)), spread: BytesPerSecond(math.Inf(1))}
	nics, bandwidth, over, below := 1, BytesPerSecond(0), 1.0, 0
	for i := range c.Network {
		t := &c.Network[i]
		nics, bandwidth = or(t.NICs, nics), or(t.Bandwidth, bandwidth)
		over *= max(1, t.Oversubscription)
		per := BytesPerSecond(float64(bandwidth) * c.Node.nicsFor(nics, p.Crossing) / over)
		together := 1.0 // number of the group's nodes in one part of the tier below
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
	if host := c.Node.Host.Bandwidth; host > 0 { // NICs are limited by the host's bandwidth
		r.ring, r.spread = min(r.ring, host), min(r.spread, host)
	}
	slower := BytesPerSecond(factor(c.Measured.Network))
	r.ring, r.spread = r.ring*slower, r.spread*slower
	return r
}

// nicsFor returns the number of a node's NICs per device, if crossing devices use them at the same time; 0 means all
// devices. A single crossing device uses one NIC, or its share if there are more NICs than devices.
func (n *Node) nicsFor(nics, crossing int) float64 {
	own := float64(nics) / float64(max(1, n.Devices))
	if crossing == 0 {
		return own
	}
	return min(float64(nics)/float64(crossing), max(1, own))
}

// linkRate returns the nominal bandwidth of each of some devices of a node among themselves: all of it with a switch,
// the fraction that leads to the group's other devices in a mesh.
func (n *Node) linkRate(devices int) BytesPerSecond {
	l := &n.Link
	whole := max(n.Devices, n.FullDevices)
	if (l.Kind == "nvlink" || l.Kind == "xgmi") && devices > 1 && whole > devices {
		return l.Bandwidth * BytesPerSecond(float64(devices-1)/float64(whole-1))
	}
	return l.Bandwidth
}
