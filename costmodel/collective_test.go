package costmodel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// twoTier is 8 devices a node, 4 NICs, a rail for 4 nodes and a spine at half its bandwidth.
func twoTier(nodes int) *Cluster {
	return &Cluster{Nodes: nodes,
		GPU: GPU{Name: "x", Arch: "sm_80", MemoryGiB: 80, MemoryBandwidth: 3000 * GBs,
			PeakTFLOPS: map[string]float64{"bf16": 1000, "f32": 60}},
		Node: Node{Devices: 8, Link: Link{Kind: "nvswitch", Bandwidth: 450 * GBs, LatencyUS: 2}},
		Network: []Tier{{Name: "rail", Nodes: 4, NICs: 4, Bandwidth: 50 * GBs, LatencyUS: 5},
			{Name: "spine", LatencyUS: 8, Oversubscription: 2}}}
}

var communicating = []ir.Op{ir.OpAllReduce, ir.OpReduceScatter, ir.OpAllGather, ir.OpAllToAll, ir.OpShift}

// lawClusters are the catalogue's with many nodes, one of two tiers, and one whose nodes are a device each, without
// links.
func lawClusters(t *testing.T) []*Cluster {
	alone := twoTier(256)
	alone.Node.Devices, alone.Node.Link = 1, Link{}
	all := []*Cluster{twoTier(256), alone}
	for _, name := range ClusterNames() {
		r := Ref{Node: name, Nodes: 256}
		if name == "cpu" {
			r.Nodes, r.Devices = 1, 8
		}
		c, err := Resolve(r, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// draw is a group of a cluster and a message.
func draw(r *rand.Rand, c *Cluster) (Placement, Bytes) {
	p := Placement{Local: 1, Nodes: 1, Span: 1}
	for p.Local*2 <= c.Node.Devices && r.IntN(2) == 0 {
		p.Local *= 2
	}
	for p.Nodes*2 <= c.Nodes && r.IntN(2) == 0 {
		p.Nodes *= 2
	}
	p.Span = min(c.Nodes, p.Nodes*(1+r.IntN(4)))
	p.Mixed = p.Nodes > 1 && r.IntN(4) == 0
	return p, Bytes(math.Exp2(r.Float64() * 33))
}

const rounding = 1 + 1e-12

// More bytes, and more nodes, never cost less; nothing is cheaper in two parts, nor as two collectives; one rank waits
// for nobody; nothing is faster than the hardware's nominal figures.
func TestCollectiveLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range lawClusters(t) {
		for range 400 {
			p, b := draw(r, c)
			for _, op := range communicating {
				now := c.CollectiveTime(op, p, b)
				if alone := c.CollectiveTime(op, Placement{Local: 1, Nodes: 1, Span: 1}, b); alone != 0 {
					t.Errorf("%s: %v of one rank takes %v", c.Name, op, alone)
				}
				part := b * Bytes(r.Float64())
				less, rest := c.CollectiveTime(op, p, part), c.CollectiveTime(op, p, b-part)
				if math.IsNaN(float64(now)) || less > now {
					t.Errorf("%s: %v %+v: %v take %v, %v %v", c.Name, op, p, part, less, b, now)
				}
				if p.Ranks() > 1 && now > (less+rest)*rounding {
					t.Errorf("%s: %v %+v: %v take %v, in two parts of which one is %v, %v and %v", c.Name, op, p, b,
						now, part, less, rest)
				}
				far := Placement{p.Local, 2 * p.Nodes, 2 * p.Span, p.Mixed, p.Crossing}
				if c.Nodes > 1 && c.CollectiveTime(op, far, b)*rounding < now {
					t.Errorf("%s: %v of %v: %+v takes %v, %+v %v", c.Name, op, b, p, now, far,
						c.CollectiveTime(op, far, b))
				}
				if least := c.nominal(p, b); now < least {
					t.Errorf("%s: %v %+v of %v takes %v, its bytes alone take %v", c.Name, op, p, b, now, least)
				}
			}
			rs, ag := c.CollectiveTime(ir.OpReduceScatter, p, b), c.CollectiveTime(ir.OpAllGather, p, b)
			if ar := c.CollectiveTime(ir.OpAllReduce, p, b); ar > (rs+ag)*rounding {
				t.Errorf("%s: %+v of %v: all_reduce takes %v, reduce_scatter and all_gather %v and %v", c.Name, p,
					b, ar, rs, ag)
			}
		}
	}
}

// nominal is what a node's part of the bytes takes of its NICs, or a device's of its links.
func (c *Cluster) nominal(p Placement, b Bytes) Seconds {
	if p.Nodes > 1 {
		nics := float64(c.Network[0].Bandwidth) * float64(c.Network[0].NICs) * float64(p.Local) /
			float64(c.Node.Devices)
		return Seconds(float64(b) * share(float64(p.Nodes)) / float64(p.Ranks()) / nics)
	}
	return Seconds(float64(b) * share(float64(p.Local)) / float64(p.Local) / float64(c.Node.Link.Bandwidth))
}

// Better hardware is never slower.
func TestBetterHardware(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, better := range map[string]func(*Cluster){
		"faster links":         func(c *Cluster) { c.Node.Link.Bandwidth *= 2 },
		"links without delay":  func(c *Cluster) { c.Node.Link.LatencyUS = 0 },
		"faster NICs":          func(c *Cluster) { c.Network[0].Bandwidth *= 2; c.Network[1].Bandwidth *= 2 },
		"a quick network":      func(c *Cluster) { c.Network[0].LatencyUS, c.Network[1].LatencyUS = 0, 0 },
		"a full spine":         func(c *Cluster) { c.Network[1].Oversubscription = 1 },
		"a switch for all":     func(c *Cluster) { c.Network = c.Network[:1]; c.Network[0].Nodes = 256 },
		"switches that reduce": func(c *Cluster) { c.GPU.Arch, c.Node.SHARP = "sm_90a", true },
	} {
		for range 500 {
			c := twoTier(256)
			c.inherit()
			if name == "switches that reduce" {
				c.GPU.Arch = "sm_90a"
			}
			p, b := draw(r, c)
			other := *c
			other.Network = append([]Tier(nil), c.Network...)
			better(&other)
			for _, op := range communicating {
				if now, slower := c.CollectiveTime(op, p, b), other.CollectiveTime(op, p, b); slower > now*rounding {
					t.Errorf("%s: %v %+v of %v takes %v instead of %v", name, op, p, b, slower, now)
				}
			}
		}
	}
}

// What groups are called does not matter, only where they are.
func TestAxesHaveNoNames(t *testing.T) {
	c := twoTier(16)
	for _, names := range [][3]ir.Axis{{"tp", "dp", "pp"}, {"a", "b", "c"}, {"pp", "tp", "dp"}} {
		m, err := ir.NewMesh([]ir.Atom{{Name: names[0], Size: 4}, {Name: names[1], Size: 8}, {Name: names[2], Size: 4}})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Place(m, []ir.Axis{names[1]}), (Placement{Local: 2, Nodes: 4, Span: 4}); got != want {
			t.Errorf("%v: %+v, want %+v", names, got, want)
		}
		if got := c.SendTime(m, names[2], 1e6); got != c.SendTime(m, names[2], 1e6) || got <= 0 {
			t.Errorf("%v: a message takes %v", names, got)
		}
	}
}

// The formulas by hand, where one algorithm is alone in question: large messages of Simple.
func TestCollectiveTime(t *testing.T) {
	c := twoTier(64)
	c.inherit()
	near := func(name string, op ir.Op, p Placement, alpha, beta float64) {
		t.Helper()
		const b = 16e9
		want := alpha + beta*b + math.Sqrt(alpha*beta*b)
		if got := c.CollectiveTime(op, p, b); math.Abs(float64(got)/want-1) > 1e-12 {
			t.Errorf("%s takes %v, want %v", name, float64(got), want)
		}
	}
	const link, nics = 450e9 * 0.81, 4 * 50e9
	near("all_gather in a node", ir.OpAllGather, Placement{8, 1, 1, false, 0}, 54e-6+7*2e-6, 7.0/8/link)
	near("all_reduce over two nodes, a tree", ir.OpAllReduce, Placement{8, 2, 2, false, 0}, 54e-6+2*(7*2e-6+5e-6),
		2*max(7.0/8/link, 1.0/2/(nics*0.89)))
	near("all_to_all over two nodes", ir.OpAllToAll, Placement{8, 2, 2, false, 0}, 54e-6+7*2e-6+5e-6, 8.0/16/(nics/8))
	near("reduce_scatter of one device a node, above the rail", ir.OpReduceScatter, Placement{1, 8, 8, false, 0},
		54e-6+7*8e-6, 7.0/8/(nics/8))
	near("reduce_scatter of every fourth node, over the spine", ir.OpReduceScatter, Placement{1, 8, 29, false, 0},
		54e-6+7*8e-6, 7.0/8/(nics/8/2))
	c.Network[0].Rails = true
	near("all_gather of mixed places, over the spine", ir.OpAllGather, Placement{1, 4, 4, true, 0}, 54e-6+3*8e-6,
		3.0/4/(nics/8/2))
	near("all_to_all on rails: by the links first", ir.OpAllToAll, Placement{8, 2, 2, false, 0}, 54e-6+7*2e-6+5e-6,
		8.0/16/(nics/8))
}

func TestPlace(t *testing.T) {
	mesh := func(view ...ir.Atom) ir.Mesh {
		m, err := ir.NewMesh(view)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tt := range []struct {
		devices int
		mesh    ir.Mesh
		axes    []ir.Axis
		want    Placement
	}{
		{8, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 8}), []ir.Axis{"tp"},
			Placement{4, 1, 1, false, 0}},
		{8, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 8}), []ir.Axis{"dp"},
			Placement{2, 4, 4, false, 0}},
		{8, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 8}), []ir.Axis{"dp", "tp"},
			Placement{8, 4, 4, false, 0}},
		{8, mesh(ir.Atom{Name: "tp", Size: 16}, ir.Atom{Name: "dp", Size: 2}), []ir.Axis{"tp"},
			Placement{8, 2, 2, false, 0}},
		{8, mesh(ir.Atom{Name: "tp", Size: 16}, ir.Atom{Name: "dp", Size: 2}), []ir.Axis{"dp"},
			Placement{1, 2, 3, false, 0}},
		{6, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 3}), []ir.Axis{"tp"},
			Placement{2, 2, 2, true, 0}},
		{8, ir.Mesh{}, nil, Placement{1, 1, 1, false, 0}},
	} {
		c := &Cluster{Nodes: 4, Node: Node{Devices: tt.devices}}
		if got := c.Place(tt.mesh, tt.axes); got != tt.want {
			t.Errorf("%v of %v on nodes of %d: %+v, want %+v", tt.axes, tt.mesh, tt.devices, got, tt.want)
		}
	}
}

// If two ranks on an axis are apart, only the devices in the same run of the node communicate with other nodes at the
// same time. The time does not grow with the number of the node's other devices.
func TestPairsShareTheirNICs(t *testing.T) {
	pipeline := func(stride, pp int) ir.Mesh {
		return ir.Mesh{Atoms: []ir.Atom{{Name: "tp", Size: stride}, {Name: "pp", Size: pp}}}
	}
	for _, tt := range []struct {
		devices, stride, pp int
		next, ends          int // crossing
	}{
		{1, 1, 3, 1, 1}, {7, 1, 21, 1, 1}, {7, 7, 3, 7, 7}, {8, 2, 8, 2, 2}, {8, 1, 12, 1, 2}, {8, 16, 2, 8, 8},
		{6, 4, 3, 4, 4}, {8, 8, 2, 8, 8}, {8, 2, 6, 2, 4},
		{8, 2, 4, 0, 0}, {8, 1, 2, 0, 0},
	} {
		c, m := &Cluster{Nodes: 4, Node: Node{Devices: tt.devices}}, pipeline(tt.stride, tt.pp)
		if got := c.Node.placePair(m, "pp", false).Crossing; got != tt.next {
			t.Errorf("%+v: %d devices send to another node, want %d", tt, got, tt.next)
		}
		if got := c.PlaceEnds(m, []ir.Axis{"pp"}).Crossing; got != tt.ends {
			t.Errorf("%+v: %d devices join their ends, want %d", tt, got, tt.ends)
		}
	}
	for _, nics := range []int{1, 2} {
		var alone, overlapped Seconds
		for _, devices := range []int{1, 2, 4, 8} {
			c := &Cluster{Nodes: 3, Node: Node{Devices: devices, Link: Link{Kind: "pcie", Bandwidth: 6e9,
				LatencyUS: 5}},
				Network: []Tier{{Name: "rail", NICs: nics, Bandwidth: 125e6, LatencyUS: 20}}}
			at := c.SendTime(pipeline(1, 3*devices), "pp", 1e8)
			if devices == 1 {
				alone = at
			} else if overlapped == 0 {
				overlapped = at
			} else if at != overlapped {
				t.Errorf("%d NICs: with %d devices a message takes %v, with two %v", nics, devices, at, overlapped)
			}
		}
		if nics == 1 && overlapped != alone {
			t.Errorf("one NIC: a message takes %v beside another device, %v alone", overlapped, alone)
		}
	}
}

// A collective is exactly an op that communicates between all of a group.
func TestCollectivesTable(t *testing.T) {
	for _, op := range ir.Ops() {
		want := false
		for _, o := range communicating {
			want = want || o == op
		}
		if got := rounds(op) > 0; got != want {
			t.Errorf("%v: %v, want %v", op, got, want)
		}
	}
}

// The search asks this often.
func TestCollectiveTimeAllocatesNothing(t *testing.T) {
	c := twoTier(64)
	if n := testing.AllocsPerRun(100, func() {
		c.CollectiveTime(ir.OpAllReduce, Placement{8, 8, 8, false, 0}, 1e8)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCollectiveTime(b *testing.B) {
	c := twoTier(64)
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			c.CollectiveTime(ir.OpAllReduce, Placement{8, 8, 8, false, 0}, 1e8)
		}
	})
	b.Run("route known", func(b *testing.B) {
		r := c.Route(ir.OpAllReduce, Placement{8, 8, 8, false, 0})
		for b.Loop() {
			r.Time(1e8)
		}
	})
}
