package validate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// gpuRow maps a GPU, by the start of its name without punctuation, to a node of the catalogue. If the catalogue has no
// such node, figures of the nearest one are replaced, from the shared hardware table, transcribed 2026-11-20.
type gpuRow struct {
	name      string
	memory    [2]float64 // smallest and largest memory in GB that the row may state; 0: any
	node      string
	gpu       func(*costmodel.GPU)
	switched  bool   // a switch connects its devices, whereas those of the catalogue's node are a mesh
	perDomain int    // devices that NVLink connects, if a host has fewer
	network   string // a word that inter_bw_note must contain
}

var gpuRows = []gpuRow{
	{name: "a100", memory: [2]float64{1, 41}, node: "dgx-a100-40g"},
	{name: "a100", node: "dgx-a100-80g"},
	{name: "a800", node: "dgx-a100-80g"},
	{name: "h100sxm96gb500w", node: "dgx-h100", gpu: func(g *costmodel.GPU) {
		g.Name, g.MemoryGiB, g.MemoryBandwidth, g.Watts = "H100-SXM-96GB-500W", 95, 2400*costmodel.GBs, 500
	}},
	{name: "h100pcie", node: "h100-pcie"},
	{name: "h100", node: "dgx-h100"},
	{name: "gh200", node: "gh200"},
	{name: "h200", node: "dgx-h200"},
	{name: "h800", node: "dgx-h800"},
	{name: "gb200", node: "gb200-nvl72", perDomain: 72},
	{name: "gb300", node: "gb300-nvl72", perDomain: 72},
	{name: "b200", node: "dgx-b200"},
	{name: "b300", node: "dgx-b300"},
	{name: "v100sxm3dgx2", node: "v100-32g", switched: true},
	{name: "v100", memory: [2]float64{1, 17}, network: "omni-path", node: "jean-zay-v100-16g"},
	{name: "v100", network: "omni-path", node: "jean-zay-v100-32g"},
	{name: "v100", memory: [2]float64{1, 17}, node: "v100-16g"},
	{name: "v100", node: "v100-32g"},
	{name: "t4", node: "t4"},
	{name: "rtx3090", node: "rtx-3090"},
	{name: "rtx4090", node: "rtx-4090"},
	{name: "rtx5090", node: "rtx-5090"},
	{name: "l40s", node: "l40s"},
	{name: "l4", node: "l4"},
	{name: "a10", node: "a10"},
	{name: "a40", node: "rtx-3090", gpu: func(g *costmodel.GPU) {
		g.Name, g.MemoryGiB, g.MemoryBandwidth = "A40", 44.5, 696*costmodel.GBs
		g.PeakTFLOPS = map[string]float64{"f32": 37.4, "tf32": 74.8, "bf16": 149.7, "fp16": 149.7}
	}},
	{name: "a6000", node: "rtx-3090", gpu: func(g *costmodel.GPU) {
		g.Name, g.MemoryGiB, g.MemoryBandwidth = "RTX-A6000", 47.5, 768*costmodel.GBs
		g.PeakTFLOPS = map[string]float64{"f32": 38.7, "tf32": 77.4, "bf16": 154.8, "fp16": 154.8}
	}},
}

// moreFigures matches the digits that may follow a GPU's name: its memory. "H1000" is not an H100.
var moreFigures = regexp.MustCompile(`^[1-9][0-9]*g`)

// is reports whether a plain name denotes the row's GPU.
func (g *gpuRow) is(name string) bool {
	rest, ok := strings.CutPrefix(name, g.name)
	return ok && (rest == "" || rest[0] < '0' || rest[0] > '9' || moreFigures.MatchString(rest))
}

// plainName returns a GPU's name without punctuation and vendor.
func plainName(s string) string {
	s = strings.NewReplacer("-", "", " ", "", "_", "", "nvidia", "", "geforce", "", "tesla",
		"").Replace(strings.ToLower(s))
	return strings.TrimPrefix(s, "dgx")
}

// cluster returns the row's hardware.
func (r *Row) cluster() (*costmodel.Cluster, error) {
	name, gb := plainName(r.Text("gpu")), r.measure("gpu_mem_gb")
	var row *gpuRow
	for i := range gpuRows {
		g := &gpuRows[i]
		if g.is(name) && (g.memory[1] == 0 || gb >= g.memory[0] && gb <= g.memory[1]) &&
			strings.Contains(r.lower("inter_bw_note"), g.network) {
			row = g
			break
		}
	}
	gpus := r.count("num_gpus", 0)
	switch {
	case name == "":
		return nil, fmt.Errorf("gpu is missing")
	case row == nil:
		return nil, fmt.Errorf("GPU %s is not in the catalogue", r.Text("gpu"))
	case gpus < 1:
		return nil, fmt.Errorf("num_gpus is missing")
	}
	c, err := costmodel.Resolve(costmodel.Ref{Node: row.node}, func(string) ir.Pos { return ir.Pos{} }, nil)
	if err != nil {
		return nil, err
	}
	if row.gpu != nil {
		row.gpu(&c.GPU)
	}
	return c, r.nodes(c, row, gpus)
}

// nodes sets the numbers of devices and nodes, and the links that the row names.
func (r *Row) nodes(c *costmodel.Cluster, row *gpuRow, gpus int) error {
	host := max(1, r.count("gpus_per_node", c.Node.Devices))
	per := host
	if row.perDomain > 0 {
		for per = min(row.perDomain, gpus); gpus%per != 0; {
			per--
		}
	}
	per = min(per, gpus)
	if gpus%per != 0 {
		return fmt.Errorf("%d GPUs are not a whole number of nodes of %d", gpus, per)
	}
	if host != c.Node.Devices && len(c.Network) > 0 && row.perDomain == 0 {
		c.Network[0].NICs = max(1, c.Network[0].NICs*host/c.Node.Devices)
	}
	c.Node.Devices, c.Nodes, c.Node.FullDevices = per, gpus/per, max(per, host)
	if row.switched {
		c.Node.Link.Kind = "nvswitch"
	}
	if strings.Contains(r.lower("intra_bw_note"), "pcie") {
		c.Node.Link.Kind, c.Node.Link.Bandwidth = "pcie", min(c.Node.Link.Bandwidth, c.Node.Host.Bandwidth)
	}
	if c.Nodes > 1 {
		r.network(c)
	}
	for i := range c.Network {
		c.Network[i].Nodes = max(c.Network[i].Nodes, c.Nodes)
	}
	return nil
}

// Networks in the notations of rows: "8x400Gb/s", "4x Omni-Path 100Gb/s per node", "1600 Gbps node-node", "400 Gb/s
// RDMA per GPU", "8x50 GB/s".
var (
	manyNICs = regexp.MustCompile(`(\d+)\s*x(?:\s+[a-z-]+\s+|\s*)(\d+)\s*(gb|g)`)
	oneRate  = regexp.MustCompile(`(\d+)\s*(gbps|gb/s|gbit/s|g\b)`)
)

// network sets the network that the row describes. Without a description it is the catalogue's, or 8 NICs of 200 Gb/s.
func (r *Row) network(c *costmodel.Cluster) {
	text := r.Text("inter_bw_note")
	nics, gbits := 0, 0.0
	if m := manyNICs.FindStringSubmatch(strings.ToLower(text)); m != nil {
		nics, _ = strconv.Atoi(m[1])
		gbits, _ = strconv.ParseFloat(m[2], 64)
	} else if m := oneRate.FindStringSubmatch(strings.ToLower(text)); m != nil {
		nics = 1
		gbits, _ = strconv.ParseFloat(m[1], 64)
		if strings.Contains(strings.ToLower(text), "per gpu") {
			nics = c.Node.Devices
		}
	}
	if strings.Contains(text, "GB/s") { // bytes instead of bits
		gbits *= 8
	}
	if len(c.Network) == 0 {
		c.Network = []costmodel.Tier{{Name: "network", NICs: 1, Bandwidth: 25 * costmodel.GBs, LatencyUS: 10,
			Oversubscription: 1}}
	}
	if nics > 0 && gbits > 0 {
		c.Network = c.Network[:1]
		c.Network[0].NICs, c.Network[0].Bandwidth = nics, costmodel.BytesPerSecond(gbits*1e9/8)
	}
}
