package main

import (
	"fmt"
	"io/fs"
	"strings"
)

// linkFindings are how the machine's GPUs reach each other and other machines; nothing where there are none.
func linkFindings(root fs.FS, m machine, ask commandRunner) []finding {
	if len(m.GPUs) == 0 {
		return nil
	}
	b, err := inspectGPUs(root, m, ask)
	if err != nil || b.By != "nvidia-smi" {
		return []finding{{"nvidia-smi", stateMissing, "not on PATH, or it does not answer",
			"planc detect and planc calibrate do not know how the GPUs are connected: install the driver's " +
				"utilities; " +
				"in a container, start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility"}}
	}
	found := []finding{okFinding("nvidia-smi", strings.Join(b.kinds(), ", "))}
	if len(b.GPUs) > 1 {
		found = append(found, b.peerFinding(), sharedFinding(freeDisk))
	}
	return append(found, b.networkFinding())
}

// kinds are the GPUs, those of a kind together, in their order.
func (b *gpuInventory) kinds() (words []string) {
	for i := 0; i < len(b.GPUs); {
		n := i
		for n < len(b.GPUs) && b.GPUs[n].Name == b.GPUs[i].Name {
			n++
		}
		words = append(words, fmt.Sprintf("%d × %s", n-i, b.GPUs[i].Name))
		i = n
	}
	return words
}

// peerFinding is whether GPUs read each other's memory, and over what.
func (b *gpuInventory) peerFinding() finding {
	over := map[string]string{"nvswitch": "NVLinks through switches", "nvlink": "NVLinks", "pcie": "PCIe",
		"": "what nvidia-smi does not say"}[b.linkKind(linkRateOf(archOf(b.GPUs[0])))]
	if b.NVLink > 0 {
		over += fmt.Sprintf(", %s GB/s of a GPU", figure(b.NVLink))
	}
	if b.Direct {
		return okFinding("peers", "each GPU reads the memory of each other, over "+over)
	}
	return finding{"peers", stateMissing, "not each GPU reads the memory of each other",
		fmt.Sprintf("what GPUs exchange goes through the host's memory, at about %s of what PCIe carries: such GPUs "+
			"are for plans with little communication, and "+
			"PCIe's access control (ACS, IOMMU) keeps others from it", percent(throughHost))}
}

// minShared is too little of /dev/shm for NCCL, which takes some MiB a pair of GPUs there.
const minShared = gib / 2

// sharedFinding is the memory by which NCCL joins GPUs that do not reach each other, and processes.
func sharedFinding(free func(dir string) (bytes int64, known bool)) finding {
	const dir = "/dev/shm"
	switch bytes, known := free(dir); {
	case !known:
		return finding{dir, stateMissing, "not there",
			"NCCL does not join GPUs that do not read each other's memory, nor processes: mount a tmpfs there"}
	case bytes < minShared:
		return finding{dir, stateMissing, size(bytes) + " free",
			"NCCL may not find room to join GPUs: in a container, start it with --shm-size=8g or --ipc=host"}
	default:
		return okFinding(dir, size(bytes)+" free")
	}
}

// networkFinding is what carries gradients between machines.
func (b *gpuInventory) networkFinding() finding {
	n := b.NICs
	switch {
	case n.Count == 0:
		return finding{"network", stateMissing, "no port that is up and says its speed",
			"planc detect writes a cluster of one node: training on several needs a network"}
	case n.Kind == "Ethernet" && n.Gbps < slowNetwork:
		return finding{"network", stateMissing, fmt.Sprintf("%d × %s of Ethernet", n.Count, rateOf(n.Gbps)),
			"training on several nodes mostly waits for it: plans keep large exchanges within a node"}
	}
	return okFinding("network", fmt.Sprintf("%d × %s of %s", n.Count, rateOf(n.Gbps), n.Kind))
}

// slowNetwork is what a node's GPUs wait for: a hundredth of their links, in Gb/s.
const slowNetwork = 50

// rateOf is a port's rate as vendors print it.
func rateOf(gbps float64) string { return figure(gbps) + " Gb/s" }
