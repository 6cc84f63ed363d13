package machine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
)

// knownGPUs maps the driver's names of GPUs to rows of the catalogue: the first entry whose words all occur in the name
// applies. An entry without a row is a GPU that the catalogue lacks, but whose name contains the words of another
// entry.
var knownGPUs = []struct{ words, row string }{
	{"GB300", "gb300-nvl72"}, {"GB200", "gb200-nvl72"}, {"B300", "dgx-b300"}, {"B200", "dgx-b200"}, {"GH200", "gh200"},
	{"H200 NVL", ""}, {"H200", "dgx-h200"}, {"H800 PCIE", ""}, {"H800", "dgx-h800"},
	{"H100 PCIE", "h100-pcie"}, {"H100 NVL", ""}, {"H100", "dgx-h100"},
	{"A800 PCIE", ""}, {"A800", "dgx-a800"}, {"A100 PCIE 40GB", ""}, {"A100 PCIE", "a100-pcie"},
	{"A100 40GB", "dgx-a100-40g"}, {"A100 80GB", "dgx-a100-80g"},
	{"V100 SXM3 32GB", "dgx-2"}, {"V100 SXM2 16GB", "v100-16g"}, {"V100 SXM2 32GB", "v100-32g"},
	{"L40S", "l40s"}, {"L40", ""}, {"L4", "l4"}, {"A10G", ""}, {"A100", ""}, {"A10", "a10"}, {"A40", "a40"},
	{"RTX A6000", "a6000"}, {"T4", "t4"},
	{"RTX 5090", "rtx-5090"}, {"RTX 4090", "rtx-4090"}, {"RTX 3090", "rtx-3090"},
}

// knownRow returns the catalogue row of a GPU by its driver name; "" if the catalogue does not have the GPU.
func knownRow(name string) string {
	has := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == ' ' || r == '-' })
	for _, k := range knownGPUs {
		missing := func(w string) bool { return !slices.Contains(has, w) }
		if !slices.ContainsFunc(strings.Fields(k.words), missing) {
			return k.row
		}
	}
	return ""
}

// sameMemory is the relative difference that the memory sizes of one kind of GPU can have, between the driver's and the
// catalogue's figure.
const sameMemory = 0.06

// findCatalogued returns the catalogue's cluster for a GPU, and the source of its figures. For an unknown GPU it
// returns the cluster whose GPU has the same compute capability and the nearest memory size. ok is false if there is
// none.
func findCatalogued(g GPU) (c *costmodel.Cluster, source string, ok bool) {
	memory := (g.MemoryMiB - g.ReservedMiB) / 1024
	if name := knownRow(g.Name); name != "" {
		c = clusterOfRow(name)
		if g.MemoryMiB == 0 || math.Abs(memory/c.GPU.MemoryGiB-1) < sameMemory {
			return c, fmt.Sprintf("catalogue: %s, which has this GPU", name), true
		}
	}
	best := math.Inf(1)
	for _, name := range costmodel.ClusterNames() {
		row := clusterOfRow(name)
		alike := !row.IsCPU() && ArchNumber(row.GPU.Arch) == ArchNumber(archOf(g)) && row.Node.Host.Bandwidth < onPCIe
		if off := math.Abs(math.Log(row.GPU.MemoryGiB / memory)); alike && off < best {
			best, c, source = off, row,
				fmt.Sprintf("unknown GPU: assumed to be as in %s, the nearest GPU of its generation (catalogue: %s)",
					row.GPU.Name, name)
		}
	}
	return c, source, c != nil
}

// clusterOfRow returns a cluster of the catalogue.
func clusterOfRow(name string) *costmodel.Cluster {
	data, err := costmodel.ClusterFile(name)
	if err != nil {
		panic(err.Error())
	}
	c, err := costmodel.ParseCluster(name+".yaml", data)
	if err != nil {
		panic(fmt.Sprintf("cluster %s of the catalogue: %v", name, err))
	}
	return c
}

// archOf returns the architecture of a GPU: sm_90a for compute capability 9.0, "" if the capability is unknown.
func archOf(g GPU) string {
	major, minor, ok := strings.Cut(g.Capability, ".")
	if !ok {
		return ""
	}
	arch := "sm_" + major + minor
	if major == "9" || major == "10" { // kernels use architecture-specific instructions
		arch += "a"
	}
	return arch
}

// lanes maps the PCIe generation to the GB/s of one lane in one direction, without protocol overhead. 16 lanes give the
// 12, 25 and 55 GB/s of the catalogue.
var lanes = map[int]float64{1: 0.2, 2: 0.4, 3: 0.75, 4: 1.5625, 5: 3.4375, 6: 6.875}

// ClusterOfGPUs returns a machine with GPUs as a cluster, with the source of each figure by its dotted name.
func ClusterOfGPUs(m Machine, b GPUInventory) (*costmodel.Cluster, error) {
	g := b.GPUs[0]
	for i, other := range b.GPUs {
		if other.Name != g.Name {
			return nil, fmt.Errorf("GPU 0 is %s and GPU %d is %s, but a cluster has one kind of GPU: set "+
				"CUDA_VISIBLE_DEVICES to GPUs of one kind", g.Name, i, other.Name)
		}
	}
	row, source, ok := findCatalogued(g)
	if !ok {
		return nil, fmt.Errorf("the catalogue has no GPU like %s (compute capability %q), so its rates are unknown: "+
			"write a cluster file by hand, starting from the output of planc clusters NAME", g.Name, g.Capability)
	}
	c := &costmodel.Cluster{GPU: row.GPU, Nodes: 1, Source: map[string]string{"gpu.memory_bandwidth": source,
		"gpu.peak_tflops": source, "node.devices": b.By}}
	c.GPU.Name = strings.TrimPrefix(g.Name, "NVIDIA ")
	c.Source["gpu.name"], c.Source["gpu.arch"], c.Source["gpu.memory_gib"], c.Source["gpu.watts"] = b.By, source,
		source, source
	if arch := archOf(g); arch != "" {
		c.GPU.Arch, c.Source["gpu.arch"] = arch, b.By+": compute capability "+g.Capability
	}
	if g.MemoryMiB > 0 && g.ReservedMiB > 0 {
		c.GPU.MemoryGiB, c.Source["gpu.memory_gib"] = (g.MemoryMiB-g.ReservedMiB)/1024,
			b.By+": total minus the driver's reserve"
	} else if g.MemoryMiB > 0 && !strings.HasPrefix(source, "catalogue:") {
		c.GPU.MemoryGiB, c.Source["gpu.memory_gib"] = g.MemoryMiB/1024*driverLeaves,
			b.By+": total minus a driver's usual reserve"
	}
	if g.Watts > 0 {
		c.GPU.Watts, c.Source["gpu.watts"] = g.Watts, b.By+": power limit"
	}
	c.Node = costmodel.Node{Devices: len(b.GPUs), SHARP: row.Node.SHARP,
		Host: costmodel.Host{MemoryGiB: float64(m.Memory) / (1 << 30), Cores: m.Cores}}
	c.Source["node.host.memory_gib"], c.Source["node.host.cores"] = "total memory, or the container's limit",
		"available cores"
	setHost(c, g, row, source)
	setLink(c, b, row, source)
	b.setNetwork(c)
	return c, nil
}

// driverLeaves is the fraction of a GPU's memory that the driver leaves free: 79.1 of an H100's 79.65 GiB.
const driverLeaves = 0.993

// onPCIe is an upper bound of the bandwidth of a GPU's PCIe link. A GPU with a faster host link, such as a GH200, is
// connected to the CPU by NVLink.
const onPCIe = 128 * costmodel.GBs

// setHost sets the bandwidth between the host and a GPU.
func setHost(c *costmodel.Cluster, g GPU, row *costmodel.Cluster, source string) {
	c.Node.Host.Bandwidth, c.Source["node.host.bandwidth"] = row.Node.Host.Bandwidth, source
	if per := lanes[g.Gen]; per > 0 && g.Width > 0 && row.Node.Host.Bandwidth < onPCIe {
		c.Node.Host.Bandwidth = costmodel.BytesPerSecond(per * float64(g.Width) * 1e9)
		c.Source["node.host.bandwidth"] = fmt.Sprintf("PCIe %d, %d lanes, minus protocol overhead; planc calibrate "+
			"measures it", g.Gen, g.Width)
	}
}

// linkRateOf returns the bandwidth of one NVLink in one direction, in GB/s.
func linkRateOf(arch string) float64 {
	if strings.HasPrefix(arch, "sm_10") {
		return 50
	}
	return 25
}

// setLink sets the link between the GPUs.
func setLink(c *costmodel.Cluster, b GPUInventory, row *costmodel.Cluster, source string) {
	if len(b.GPUs) < 2 {
		return
	}
	c.Node.Link = row.Node.Link
	for _, key := range []string{"kind", "bandwidth", "latency_us"} {
		c.Source["node.link."+key] = source
	}
	kind := b.linkKind(linkRateOf(c.GPU.Arch))
	if kind == "" {
		return
	}
	c.Node.Link.Kind, c.Source["node.link.kind"] = kind, b.By+" topo -m"
	switch {
	case kind != "pcie" && b.NVLink > 0:
		c.Node.Link.Bandwidth, c.Source["node.link.bandwidth"] = costmodel.BytesPerSecond(b.NVLink*1e9),
			b.By+" nvlink -s, sum of each GPU's links"
	case kind == "pcie" && b.Direct:
		c.Node.Link.Bandwidth, c.Source["node.link.bandwidth"] = c.Node.Host.Bandwidth,
			"same as to the host: the GPUs have peer access over PCIe; planc calibrate measures it"
	case kind == "pcie":
		c.Node.Link.Bandwidth, c.Source["node.link.bandwidth"] = c.Node.Host.Bandwidth*throughHost,
			"assumed: the GPUs have no peer access, so traffic goes through host memory; planc calibrate measures it"
	}
	if kind == "pcie" && row.Node.Link.Kind != kind {
		c.Node.Link.LatencyUS, c.Source["node.link.latency_us"] = pcieLatencyUS,
			"assumed: order of magnitude of a copy over PCIe"
	}
	if kind == "pcie" {
		c.Node.SHARP = false
	}
}

const (
	// throughHost is the fraction of the PCIe bandwidth that remains if each byte is copied to the host and back: 10 of
	// 25 GB/s for the catalogue's RTX 4090.
	throughHost   = 0.4
	pcieLatencyUS = 10 // assumed latency of a copy over PCIe, in µs
)

// setNetwork sets the network tier of the machine's ports.
func (b *GPUInventory) setNetwork(c *costmodel.Cluster) {
	n := b.NICs
	if n.Count == 0 {
		return
	}
	latency, why := 5.0, "estimate: order of magnitude of an InfiniBand round trip through two switches"
	if n.Kind != "InfiniBand" {
		latency, why = 20, "estimate: order of magnitude of RoCE or TCP over Ethernet"
	}
	c.Network = []costmodel.Tier{{Name: "rail", NICs: n.Count, Bandwidth: costmodel.BytesPerSecond(n.Gbps * 1e9 / 8),
		LatencyUS: latency, Rails: n.Count > 1 && n.Count == len(b.GPUs)}}
	c.Source["network.nics"], c.Source["network.bandwidth"] = "/sys/class: the fastest "+n.Kind+
		" ports that are up", "/sys/class"
	c.Source["network.latency_us"] = why
}

// GPUClusterText returns the cluster file of a cluster of GPUs.
func GPUClusterText(c *costmodel.Cluster, driver string) string {
	var b strings.Builder
	g, n := &c.GPU, &c.Node
	fmt.Fprintf(&b, "# This machine's GPUs, driver %s. Add node.price_per_hour for --objective cost.\n",
		orUnknown(driver))
	fmt.Fprintf(&b, "gpu:\n  name: %s\n  arch: %s\n  memory_gib: %s\n  memory_bandwidth: %s\n", strconv.Quote(g.Name),
		g.Arch, figure(g.MemoryGiB), bandwidthText(g.MemoryBandwidth))
	if g.Watts > 0 {
		fmt.Fprintf(&b, "  watts: %s\n", figure(g.Watts))
	}
	var peaks []string
	for _, key := range []string{"f64", "f32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"} {
		if v := g.PeakTFLOPS[key]; v > 0 {
			peaks = append(peaks, key+": "+figure(v))
		}
	}
	fmt.Fprintf(&b, "  peak_tflops: {%s}  # dense\n", strings.Join(peaks, ", "))
	fmt.Fprintf(&b, "node:\n  devices: %d\n", n.Devices)
	if l := n.Link; n.Devices > 1 {
		fmt.Fprintf(&b, "  link: {kind: %s, bandwidth: %s, latency_us: %s}\n", l.Kind, bandwidthText(l.Bandwidth),
			figure(l.LatencyUS))
		if n.SHARP {
			b.WriteString("  sharp: true\n")
		}
	}
	fmt.Fprintf(&b, "  host: {memory_gib: %s, cores: %d, bandwidth: %s}\n", figure(n.Host.MemoryGiB), n.Host.Cores,
		bandwidthText(n.Host.Bandwidth))
	b.WriteString("nodes: 1\n")
	for _, t := range c.Network {
		fmt.Fprintf(&b, "network:\n  - {name: %s, nics: %d, bandwidth: %sGb/s, latency_us: %s, rails: %t}\n", t.Name,
			t.NICs, figure(float64(t.Bandwidth)*8/1e9), figure(t.LatencyUS), t.Rails)
	}
	b.WriteString("source:\n")
	for _, key := range sourceOrder {
		if s := c.Source[key]; s != "" {
			fmt.Fprintf(&b, "  %s: %q\n", key, s)
		}
	}
	return b.String()
}

// sourceOrder lists the figures of such a file in the file's order.
var sourceOrder = []string{"gpu.name", "gpu.arch", "gpu.memory_gib", "gpu.memory_bandwidth", "gpu.watts",
	"gpu.peak_tflops", "node.devices",
	"node.link.kind", "node.link.bandwidth", "node.link.latency_us", "node.host.memory_gib", "node.host.cores",
	"node.host.bandwidth",
	"network.nics", "network.bandwidth", "network.latency_us"}

// figure formats a number with at most two decimals.
func figure(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// bandwidthText formats a bandwidth for a cluster file.
func bandwidthText(b costmodel.BytesPerSecond) string { return figure(float64(b)/1e9) + "GB/s" }

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// ArchNumber returns the number of an architecture: 90 for sm_90a.
func ArchNumber(arch string) int {
	n, _ := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(arch, "sm_"), "abcdefghijklmnopqrstuvwxyz"))
	return n
}
