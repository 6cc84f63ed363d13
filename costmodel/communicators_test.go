package costmodel

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// node returns a node of GPUs, and a mesh of some of them.
func node(arch, link string, devices, ranks int) (*Cluster, ir.Mesh) {
	c := &Cluster{GPU: GPU{Name: "x", Arch: arch}, Node: Node{Devices: devices, Link: Link{Kind: link}}, Nodes: 1}
	return c, ir.Mesh{Atoms: []ir.Atom{{Name: "dp", Size: ranks}}}
}

// Predicted totals of a process with one communicator differ from those that users of NCCL measured as
// docs/concepts/overhead.md says.
func TestMeasuredProcesses(t *testing.T) {
	page, err := os.ReadFile("../docs/concepts/overhead.md")
	if err != nil {
		t.Fatal(err)
	}
	const mb = 1e6
	a100, h100 := channels{12, 8, 0}, channels{24, 32, 0}
	node := func(ranks int) Placement { return Placement{Local: ranks, Nodes: 1, Span: 1} }
	for _, c := range []struct {
		what, source string
		buffers      int64
		measured     float64
	}{
		{"1 RTX 3090", "pull/2366", channels{ring: 64}.poolBytes("nvlink", node(1)), 996 << 20},
		{"2 A100", "issues/964", a100.collectiveBytes(node(2)) + a100.poolBytes("nvlink", node(2)), 544 << 20},
		{"4 A100", "issues/964", a100.collectiveBytes(node(4)) + a100.poolBytes("nvlink", node(4)), 688 << 20},
		// connected at first use, so without NVLink SHARP and the pool
		{"8 H100", "issues/1685", h100.collectiveBytes(node(8)), 1060 * mb},
		{"8 H100 after an all-to-all", "issues/1685", h100.collectiveBytes(node(8)) + h100.peerBytes(node(8)),
			4340 * mb},
	} {
		got := float64(gpuContext + c.buffers)
		row := fmt.Sprintf("| %s | [%s](https://github.com/NVIDIA/nccl/%s) | %.0f | %.0f | %+.0f %% |", c.what,
			strings.NewReplacer("issues/", "issue ", "pull/", "pull request ").Replace(c.source), c.source,
			c.measured/(1<<20), got/(1<<20), 100*(got/c.measured-1))
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/concepts/overhead.md lacks the row %s", row)
		}
	}
}

// Communicators of docs/concepts/overhead.md.
func TestCommunicatorBytes(t *testing.T) {
	for _, c := range []struct {
		kind  ir.CommunicatorKind
		axis  ir.Axis
		ranks int
		want  int64
	}{
		{ir.TensorCommunicator, "dp", 8, 1088 << 20},
		{ir.TensorCommunicator, "dp", 2, 608 << 20},
		{ir.NumberCommunicator, "dp", 8, 48 << 20},
		{ir.PipeCommunicator, "dp", 8, 992 << 20},
		{ir.EndsCommunicator, "dp", 8, 608 << 20},
	} {
		k, m := node("sm_90", "nvswitch", 8, c.ranks)
		if got := k.CommunicatorBytes(m, &ir.Communicator{Kind: c.kind, Axes: []ir.Axis{c.axis}}); got != c.want {
			t.Errorf("kind %d of %d ranks: %d MiB, want %d", c.kind, c.ranks, got>>20, c.want>>20)
		}
	}
}

// Communicators across nodes share buffers for messages, and NCCL's channels depend on the network cards.
func TestCommunicatorBytesAcrossNodes(t *testing.T) {
	const pool = 128 << 10 * 16 // of a channel
	for _, c := range []struct {
		what, arch, link            string
		devices, ranks, cards       int
		kind                        ir.CommunicatorKind
		messages                    bool
		channels, links, net, pools int64
	}{
		// a ring, two peers of trees and two of PAT
		{"8 nodes of one H100", "sm_90", "nvswitch", 1, 8, 1, ir.TensorCommunicator, false, 4, 0, 5, 1},
		{"with messages", "sm_90", "nvswitch", 1, 8, 1, ir.TensorCommunicator, true, 4, 0, 5, 2},
		{"8 nodes of one A100", "sm_80", "nvlink", 1, 8, 1, ir.TensorCommunicator, false, 2, 0, 5, 1},
		{"4 nodes of 2 A100 with 4 cards", "sm_80", "nvlink", 2, 8, 4, ir.TensorCommunicator, false, 8, 1, 3, 2},
		{"4 nodes of 2 GPUs on PCIe", "sm_80", "pcie", 2, 8, 1, ir.TensorCommunicator, false, 2, 1, 3, 1},
	} {
		k, m := node(c.arch, c.link, c.devices, c.ranks)
		k.Network = []Tier{{NICs: c.cards}}
		x := ir.Communicator{Kind: c.kind, Axes: []ir.Axis{"dp"}, Messages: c.messages}
		want := c.channels * (c.links*2*linkBuffers + c.net*networkBuffers/int64(c.devices) + c.pools*pool)
		if got := k.CommunicatorBytes(m, &x); got != want {
			t.Errorf("%s: %d MiB, want %d", c.what, got>>20, want>>20)
		}
	}
}
