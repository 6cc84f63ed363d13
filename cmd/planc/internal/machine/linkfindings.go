package machine

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/planc-dev/planc/planner/quantity"
)

// linkFindings checks how the machine's GPUs are connected to each other and to other machines; nil without GPUs.
func linkFindings(root fs.FS, m Machine, ask commandRunner) []Finding {
	if len(m.GPUs) == 0 {
		return nil
	}
	b, err := InspectGPUs(root, m, ask)
	if err != nil || b.By != "nvidia-smi" {
		return []Finding{{"nvidia-smi", stateMissing, "not on PATH, or it fails",
			"planc detect and planc calibrate cannot find out how the GPUs are connected: install the driver's " +
				"utilities; start a container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"}}
	}
	found := []Finding{okFinding("nvidia-smi", strings.Join(b.kinds(), ", "))}
	if len(b.GPUs) > 1 {
		found = append(found, b.peerFinding(), sharedFinding(freeDisk))
	}
	return append(found, b.networkFinding())
}

// kinds describes the GPUs in their order; consecutive GPUs of one kind are counted.
func (b *GPUInventory) kinds() (words []string) {
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

// peerFinding checks whether GPUs have peer access to each other's memory, and over which link.
func (b *GPUInventory) peerFinding() Finding {
	link := map[string]string{"nvswitch": "NVSwitch", "nvlink": "NVLink", "pcie": "PCIe",
		"": "an unknown link"}[b.linkKind(linkRateOf(archOf(b.GPUs[0])))]
	if b.NVLink > 0 {
		link += fmt.Sprintf(", %s GB/s per GPU", figure(b.NVLink))
	}
	if b.Direct {
		return okFinding("peers", "all pairs of GPUs have peer access, over "+link)
	}
	return Finding{"peers", stateMissing, "some pairs of GPUs have no peer access",
		fmt.Sprintf("traffic between GPUs goes through host memory, at about %s of the PCIe bandwidth: use plans "+
			"with little communication; if the GPUs support peer access, PCIe access control (ACS, IOMMU) may block it",
			quantity.Percent(throughHost))}
}

// minShared is the minimal free size of /dev/shm in bytes. NCCL takes some MiB of it per pair of GPUs.
const minShared = 1 << 29

// sharedFinding checks the shared memory that NCCL uses between GPUs without peer access, and between processes.
func sharedFinding(free func(dir string) (bytes int64, known bool)) Finding {
	const dir = "/dev/shm"
	switch bytes, known := free(dir); {
	case !known:
		return Finding{dir, stateMissing, "not found",
			"NCCL cannot connect GPUs without peer access, nor processes: mount a tmpfs there"}
	case bytes < minShared:
		return Finding{dir, stateMissing, quantity.Bytes(bytes) + " free",
			"this may be too small for NCCL: start a container with --shm-size=8g or --ipc=host"}
	default:
		return okFinding(dir, quantity.Bytes(bytes)+" free")
	}
}

// networkFinding checks the network between machines.
func (b *GPUInventory) networkFinding() Finding {
	n := b.NICs
	switch {
	case n.Count == 0:
		return Finding{"network", stateMissing, "no active port that reports its speed",
			"training on several nodes needs a network; planc detect writes a cluster of one node"}
	case n.Kind == "Ethernet" && n.Gbps < slowNetwork:
		return Finding{"network", stateMissing, fmt.Sprintf("%d × %s Ethernet", n.Count, rateOf(n.Gbps)),
			"too slow for most training on several nodes: plans keep large transfers within a node"}
	}
	return okFinding("network", fmt.Sprintf("%d × %s %s", n.Count, rateOf(n.Gbps), n.Kind))
}

// slowNetwork is the rate in Gb/s below which Ethernet limits training on several nodes: a hundredth of GPU links.
const slowNetwork = 50

// rateOf formats a port's rate as vendors print it.
func rateOf(gbps float64) string { return figure(gbps) + " Gb/s" }
