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
		GPU:  GPU{Name: "x", Arch: "sm_90a", MemoryGiB: 80, MemoryBandwidth: 3000 * GBs, PeakTFLOPS: map[string]float64{"bf16": 1000, "f32": 60}},
		Node: Node{Devices: 8, Link: Link{Kind: "nvswitch", Bandwidth: 450 * GBs, LatencyUS: 2}},
		Network: []Tier{{Name: "rail", Nodes: 4, NICs: 4, Bandwidth: 50 * GBs, LatencyUS: 5},
			{Name: "spine", LatencyUS: 8, Oversubscription: 2}}}
}

var communicating = []ir.Op{ir.OpAllReduce, ir.OpReduceScatter, ir.OpAllGather, ir.OpAllToAll}

func TestCollectiveLaws(t *testing.T) {
	c := twoTier(64)
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		p := Placement{Local: 1 << r.IntN(4), Nodes: 1 << r.IntN(7)}
		p.Span = p.Nodes
		b := Bytes(math.Exp2(r.Float64() * 33))
		ar, rs, ag := c.CollectiveTime(ir.OpAllReduce, p, b), c.CollectiveTime(ir.OpReduceScatter, p, b), c.CollectiveTime(ir.OpAllGather, p, b)
		if ar != rs+ag {
			t.Errorf("%+v: all_reduce %v is not reduce_scatter %v + all_gather %v", p, ar, rs, ag)
		}
		for _, op := range communicating {
			now := c.CollectiveTime(op, p, b)
			if alone := c.CollectiveTime(op, Placement{1, 1, 1}, b); alone != 0 {
				t.Errorf("%v of one rank takes %v", op, alone)
			}
			if more := c.CollectiveTime(op, p, 1.5*b); more < now {
				t.Errorf("%v %+v: %v take %v, half as much again %v", op, p, b, now, more)
			}
			far := Placement{p.Local, 2 * p.Nodes, 2 * p.Span}
			if more := c.CollectiveTime(op, far, b); more < now {
				t.Errorf("%v of %v: %+v takes %v, %+v %v", op, b, p, now, far, more)
			}
			if near := (Placement{2 * p.Local, 1, 1}); p.Nodes == 1 && c.CollectiveTime(op, near, b) < now {
				t.Errorf("%v of %v: %d ranks of a node take %v, twice as many less", op, b, p.Local, now)
			}
		}
	}
}

// The formulas by hand: a ring in the node; then two nodes, whose NICs are the slower tier.
func TestCollectiveTime(t *testing.T) {
	c := twoTier(2)
	near := func(name string, got, want Seconds) {
		t.Helper()
		if math.Abs(float64(got/want)-1) > 1e-12 {
			t.Errorf("%s takes %v, want %v", name, float64(got), float64(want))
		}
	}
	const b = 1e9
	near("all_gather in a node", c.CollectiveTime(ir.OpAllGather, Placement{8, 1, 1}, b), 7*2e-6+7.0/8*b/(450e9*0.77))
	near("all_reduce over two nodes", c.CollectiveTime(ir.OpAllReduce, Placement{8, 2, 2}, b), 2*(7*2e-6+5e-6+1.0/2*b/8/(4*50e9*0.93/8)))
	near("all_to_all over two nodes", c.CollectiveTime(ir.OpAllToAll, Placement{8, 2, 2}, b), 7*2e-6+5e-6+1.0/2*b/(4*50e9*0.93/8))
	near("reduce_scatter over the spine", c.CollectiveTime(ir.OpReduceScatter, Placement{1, 8, 8}, b), 3*8e-6+7.0/8*b/(4*50e9*0.93/8/2))
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
		{8, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 8}), []ir.Axis{"tp"}, Placement{4, 1, 1}},
		{8, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 8}), []ir.Axis{"dp"}, Placement{2, 4, 4}},
		{8, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 8}), []ir.Axis{"dp", "tp"}, Placement{8, 4, 4}},
		{8, mesh(ir.Atom{Name: "tp", Size: 16}, ir.Atom{Name: "dp", Size: 2}), []ir.Axis{"tp"}, Placement{8, 2, 2}},
		{8, mesh(ir.Atom{Name: "tp", Size: 16}, ir.Atom{Name: "dp", Size: 2}), []ir.Axis{"dp"}, Placement{1, 2, 3}},
		{6, mesh(ir.Atom{Name: "tp", Size: 4}, ir.Atom{Name: "dp", Size: 3}), []ir.Axis{"tp"}, Placement{2, 2, 2}},
		{8, ir.Mesh{}, nil, Placement{1, 1, 1}},
	} {
		c := &Cluster{Nodes: 4, Node: Node{Devices: tt.devices}}
		if got := c.Place(tt.mesh, tt.axes); got != tt.want {
			t.Errorf("%v of %v on nodes of %d: %+v, want %+v", tt.axes, tt.mesh, tt.devices, got, tt.want)
		}
	}
}

// The table has a row exactly for what communicates.
func TestCollectivesTable(t *testing.T) {
	for _, op := range ir.Ops() {
		a := collectives[op]
		want := false
		for _, o := range communicating {
			want = want || o == op
		}
		if got := a.share != nil || a.parts != nil; got != want {
			t.Errorf("%v: row %v, want %v", op, got, want)
		}
	}
}
