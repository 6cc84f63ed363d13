package costmodel

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// Placement describes where the members of a group are: Local members on each of Nodes nodes, of which the first and
// the last are Span nodes apart, inclusive. Mixed means that the members are at different positions in their nodes, so
// that their messages change rails. Crossing is the number of a node's devices that communicate with other nodes at the
// same time, each in a group of this kind; 0 means all.
type Placement struct {
	Local, Nodes, Span int
	Mixed              bool
	Crossing           int
}

// Ranks returns the number of members.
func (p Placement) Ranks() int { return p.Local * p.Nodes }

// Place returns the placement of a group over the mesh's axes. Consecutive ranks fill a node, and the mesh's first atom
// varies fastest. If node borders cut groups differently, it returns that of the group that is cut worst.
func (c *Cluster) Place(m ir.Mesh, axes []ir.Axis) Placement {
	members := m.Expand(axes)
	p := Placement{Local: 1, Nodes: 1}
	stride, last, devices := 1, 0, max(1, c.Node.Devices)
	for _, a := range m.Atoms {
		if slices.Contains(members, a.Name) {
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

// PlaceEnds returns the placement of the first and last rank of a group over one atom of the mesh.
func (c *Cluster) PlaceEnds(m ir.Mesh, axes []ir.Axis) Placement {
	return c.Node.placePair(m, axes[0], true)
}

// placePair returns the placement of two neighbours on an axis, or of the ends of the axis, whichever are farthest
// apart.
func (n *Node) placePair(m ir.Mesh, axis ir.Axis, ends bool) Placement {
	stride, size, devices := 1, 1, max(1, n.Devices)
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
	apart, crossing := stride, stride // the last ranks of a node have their neighbour on the next one
	if ends {
		apart = stride * (size - 1)
		if group%devices != 0 { // a node may contain the end of one group and the start of another
			crossing = 2 * stride
		}
	}
	return Placement{Local: 1, Nodes: 2, Span: max(2, apart/devices+1), Mixed: apart%devices != 0,
		Crossing: min(crossing, devices)}
}

// inside returns how many of n ranks, stride apart, lie together on every node of d devices: the largest divisor of n
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
