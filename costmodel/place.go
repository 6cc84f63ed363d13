package costmodel

import "github.com/planc-dev/planc/ir"

// Placement says where the members of a group are: Local on each of Nodes nodes, the first and the last of which are
// Span nodes apart, both counted. Mixed: the members of its nodes are not at the same places of their nodes, so that
// what they send each other leaves its rail. Crossing is how many of a node's devices reach for other nodes at once,
// each in a group of this kind; 0 is all of them.
type Placement struct {
	Local, Nodes, Span int
	Mixed              bool
	Crossing           int
}

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
	stride, last, devices := 1, 0, max(1, c.Node.Devices)
	for _, a := range m.Atoms {
		if member[a.Name] {
			in := inside(stride, a.Size, c.Node.Devices)
			p.Local, p.Nodes = p.Local*in, p.Nodes*(a.Size/in)
			p.Mixed = p.Mixed || in < a.Size && stride*in%devices != 0
			last += stride * (a.Size - 1)
		}
		stride *= a.Size
	}
	p.Span = max(p.Nodes, last/devices+1)
	return p
}

// PlaceEnds finds where the first and the last rank of a group over one atom of the mesh are.
func (c *Cluster) PlaceEnds(m ir.Mesh, axes []ir.Axis) Placement {
	return c.pair(m, axes[0], true)
}

// neighbours is where two neighbours on an axis are; those that are farthest apart count.
func (c *Cluster) neighbours(m ir.Mesh, axis ir.Axis) Placement {
	return c.pair(m, axis, false)
}

// pair is where two neighbours on an axis are, or the ends of the axis; those that are farthest apart count.
func (c *Cluster) pair(m ir.Mesh, axis ir.Axis, ends bool) Placement {
	stride, size, devices := 1, 1, max(1, c.Node.Devices)
	for _, a := range m.Atoms {
		if a.Name == axis {
			size = a.Size
			break
		}
		stride *= a.Size
	}
	group := stride * size
	if group <= devices && devices%group == 0 {
		return Placement{Local: 2, Nodes: 1, Span: 1}
	}
	apart, crossing := stride, stride // of a node, the last ranks have a neighbour on the next
	if ends {
		apart = stride * (size - 1)
		if group%devices != 0 { // a node may have the end of a group and the beginning of another
			crossing = 2 * stride
		}
	}
	return Placement{Local: 1, Nodes: 2, Span: max(2, apart/devices+1), Mixed: apart%devices != 0,
		Crossing: min(crossing, devices)}
}

// inside is how many of n ranks, stride apart, every node of d devices has together: the largest divisor of n
// whose run of ranks divides the node.
func inside(stride, n, d int) int {
	if d%stride != 0 {
		return 1
	}
	k, rest := n, d/stride
	for rest > 0 {
		k, rest = rest, k%rest
	}
	return k
}
