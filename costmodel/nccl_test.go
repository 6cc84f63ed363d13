package costmodel

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// Measured all-reduces, one of each size and machine; all that is known is in docs/communication.md. The first two are
// of NVIDIA's dgxc-benchmarking, then vTrain's traces, CoreWeave's and AWS's nccl-tests; read 2026-11.
func TestPublishedAllReduces(t *testing.T) {
	for _, m := range []struct {
		node   string
		at     Placement
		bytes  Bytes
		took   Seconds // measured
		within float64 // the fit's error at this size, rounded up
	}{
		{"dgx-h100", Placement{Local: 8, Nodes: 1, Span: 1}, 4 * KiB / 2, 17.14e-6, 0.15},
		{"dgx-h100", Placement{Local: 8, Nodes: 1, Span: 1}, GiB, 4029.4e-6, 0.08},
		{"dgx-a100-80g", Placement{Local: 2, Nodes: 1, Span: 1}, 512 * MiB, 2838.4e-6, 0.12},
		{"dgx-a100-80g", Placement{Local: 8, Nodes: 1, Span: 1}, 512 * MiB, 4191.5e-6, 0.12},
		{"v100-32g", Placement{Local: 8, Nodes: 1, Span: 1}, GiB, 13969e-6, 0.08},
		{"dgx-h100", Placement{Local: 8, Nodes: 8, Span: 8}, 4 * GiB, 22181e-6, 0.05},
		{"gb200-nvl72", Placement{Local: 72, Nodes: 2, Span: 2}, 8 * GiB, 21493e-6, 0.08},
		{"p5", Placement{Local: 8, Nodes: 2, Span: 2}, GiB, 4607.6e-6, 0.08},
		{"p4de", Placement{Local: 8, Nodes: 2, Span: 2}, 1 * KiB, 165e-6, 0.08},
		{"p4de", Placement{Local: 8, Nodes: 2, Span: 2}, GiB, 26217e-6, 0.08},
	} {
		c, err := Resolve(Ref{Node: m.node, Nodes: m.at.Nodes}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.CollectiveTime(ir.OpAllReduce, m.at, m.bytes); math.Abs(float64(got/m.took)-1) > m.within {
			t.Errorf("%s %+v: %v take %v, measured %v", m.node, m.at, m.bytes, got, m.took)
		}
	}
}

// On a CPU a collective costs what was measured with planc's threads: a ring's hops and bytes, nothing else.
func TestThreads(t *testing.T) {
	c, err := Resolve(Ref{Node: "cpu", Count: 2}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for op, want := range map[ir.Op]Seconds{
		ir.OpAllReduce: 2 * (2e-6 + 0.5*1e6/10e9), ir.OpAllGather: 2e-6 + 0.5*1e6/10e9,
		ir.OpAllToAll: 2e-6 + 0.5*1e6/10e9,
	} {
		if got := c.CollectiveTime(op, Placement{Local: 2, Nodes: 1, Span: 1},
			1e6); math.Abs(float64(got/want)-1) > 1e-12 {
			t.Errorf("%v takes %v, want %v", op, got, want)
		}
	}
}
