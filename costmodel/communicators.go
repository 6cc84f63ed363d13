package costmodel

import (
	"math/bits"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Buffers of NCCL 2.28.9 on a GPU, in bytes. The runtime makes NCCL connect rings, trees and NVLS when it creates a
// communicator (NCCL_RUNTIME_CONNECT=0), so that all of them are allocated.
//
// Registering the arena with a communicator (ncclCommRegister) maps its memory for others and allocates none.
const (
	// A connection between two GPUs of a node, in one direction, for one channel: the receiver's buffers of the
	// protocols Simple (NCCL_BUFFSIZE, 4 MiB), LL128 (4.69 MiB) and LL (0.5 MiB), and flags of the sender, in pages of
	// 2 MiB (DEFAULT_BUFFSIZE and the like in src/init.cc; p2pSendSetup and p2pRecvSetup in src/transport/p2p.cc). On
	// 8 H100, NCCL's log had allocations of exactly 10 and 2 MiB (github.com/NVIDIA/nccl/issues/1685).
	linkBuffers = (10 + 2) << 20
	// Both directions of a connection through a network card, for one channel: Simple and LL128 on each side, in pages
	// of 2 MiB (src/transport/net.cc). LL is in the host's memory.
	networkBuffers = (10 + 10) << 20
	// Chunks of the buffers that all sends, or all receives, through network cards share. Each of their channels has
	// [poolSteps] of them (NCCL_SHARED_STEPS and sharedNetBuffersInit in src/transport/net.cc).
	poolSteps = 16
	// Sizes of chunks: NCCL_P2P_NVL_CHUNKSIZE if NVLink connects all members, otherwise NCCL_P2P_PCI_CHUNKSIZE or
	// NCCL_P2P_NET_CHUNKSIZE (computeBuffSizes in src/init.cc).
	linkChunk, networkChunk = 512 << 10, 128 << 10
	// NVLink SHARP: 2 buffers of 8 steps of NCCL_NVLS_CHUNKSIZE, 128 KiB, for each channel and GPU of a node
	// (ncclNvlsBufferSetup in src/transport/nvls.cc).
	nvlsBuffers = 2 << 20
	// Ranks that a rank is connected with in trees across nodes, on average: the inner ranks of one of the two trees
	// are leaves of the other (src/graph/trees.cc).
	treePeers = 2
)

// channels is the number of channels that NCCL uses.
type channels struct {
	ring  int // of collectives within a node
	peers int // of messages between two GPUs
	nvls  int // of collectives that a switch adds up
}

// channelsOf returns the channels for a node's links. NCCL 2.20 and later logs "24 coll channels, 16 nvls channels,
// 32 p2p channels, 32 p2p channels per peer" on nodes of 8 H100. PCIe has 2
// (github.com/NVIDIA/nccl-tests/issues/307). The numbers for NVLink without a switch are assumed: 12 explain that 4
// A100 need 144 MB more than 2 (github.com/NVIDIA/nccl/issues/964). NCCL's number depends on the links of each pair.
func channelsOf(c *Cluster) channels {
	switch c.Node.Link.Kind {
	case "nvswitch":
		return channels{24, 32, nvlsChannels(c.GPU.Arch)}
	case "pcie":
		return channels{2, 2, 0}
	}
	return channels{12, 8, 0}
}

// nvlsChannels returns the channels of NVLink SHARP, which sm_90 and later have (NVLS_NCHANNELS in
// src/transport/nvls.cc).
func nvlsChannels(arch string) int {
	switch {
	case strings.HasPrefix(arch, "sm_10"):
		return 24
	case strings.HasPrefix(arch, "sm_9"):
		return 16
	}
	return 0
}

// networkChannels returns the channels of a group's collectives across nodes. NCCL uses 2 for each network card of the
// group's devices. On sm_90 and later it doubles them if they are fewer than 16 (ncclTopoPostset in
// src/graph/connect.cc): 2 nodes with 2 H20 had 8 (github.com/NVIDIA/nccl/issues/1189). The limit of 16 is assumed for
// nodes with more cards.
func networkChannels(c *Cluster, p Placement) int {
	cards := p.Local
	if len(c.Network) > 0 && c.Network[0].NICs > 0 {
		cards = max(1, p.Local*c.Network[0].NICs/max(1, c.Node.Devices, c.Node.FullDevices))
	}
	n := 2 * cards
	if n < 16 && nvlsChannels(c.GPU.Arch) > 0 {
		n *= 2
	}
	return min(16, n)
}

// CommunicatorBytes returns the memory that NCCL allocates on a rank's GPU for a communicator.
func (c *Cluster) CommunicatorBytes(m ir.Mesh, x *ir.Communicator) int64 {
	if c.IsCPU() {
		return 0
	}
	p, messages := c.Place(m, x.Axes), x.Messages
	switch x.Kind {
	case ir.PipeCommunicator:
		p, messages = c.Node.placePair(m, x.Axes[0], false), true
	case ir.EndsCommunicator:
		p = c.PlaceEnds(m, x.Axes)
	}
	n := channelsOf(c)
	if p.Nodes > 1 {
		n.ring = networkChannels(c, p)
	}
	if x.Kind == ir.NumberCommunicator { // the runtime limits it to one channel
		n.ring, n.nvls = 1, min(1, n.nvls)
	}
	pool := n.poolBytes(c.Node.Link.Kind, p)
	bytes := n.collectiveBytes(p) + pool*int64(poolUsers(c.Node.Link.Kind, p))
	if messages {
		bytes += n.peerBytes(p)
		if p.Nodes > 1 { // the sends' pool exists already
			bytes += pool
		}
	}
	return bytes
}

// collectiveBytes returns the buffers for collectives of a group: its rings and trees, and NVLink SHARP.
func (n channels) collectiveBytes(p Placement) int64 {
	channel := 0
	switch {
	case p.Local == 2 && p.Nodes == 1: // the tree has the ring's connections
		channel = linkBuffers
	case p.Local > 1: // to and from two neighbours
		channel = 2 * linkBuffers
	}
	if p.Nodes > 1 {
		peers := 1
		if p.Nodes > 2 {
			peers += treePeers
			if p.Local == 1 { // PAT connects ranks at distances that are powers of two
				peers += bits.Len(uint(p.Nodes-1)) - 1
			}
		}
		channel += peers * networkBuffers / p.Local
	}
	bytes := int64(n.ring) * int64(channel)
	if p.Local > 1 {
		bytes += int64(n.nvls) * int64(p.Local) * nvlsBuffers
	}
	return bytes
}

// peerBytes returns the buffers for messages to and from all other members on the node.
func (n channels) peerBytes(p Placement) int64 {
	return int64(p.Local-1) * int64(n.peers) * linkBuffers
}

// poolBytes returns the size of the pool for sends through network cards. If NCCL connects at the start, each
// communicator has one in the GPU's memory, even within a node (ncclProxyMsgSharedInit in src/init.cc). It has as many
// channels as collectives, rounded up to a power of two (ncclTopoComputeP2pChannels in src/graph/paths.cc).
func (n channels) poolBytes(link string, p Placement) int64 {
	chunk := networkChunk
	if p.Nodes == 1 && link != "pcie" {
		chunk = linkChunk
	}
	return int64(1) << bits.Len(uint(n.ring-1)) * poolSteps * int64(chunk)
}

// poolUsers returns the number of pools on a GPU. Across nodes, GPUs that NVLink connects send to a GPU of another node
// through the one with the same number in their own node, which has a pool for each of them (PXN; ncclTopoGetPxnRanks
// in src/graph/paths.cc). A host is assumed to have at most 8 GPUs.
func poolUsers(link string, p Placement) int {
	if p.Nodes == 1 || link == "pcie" {
		return 1
	}
	return min(8, p.Local)
}
