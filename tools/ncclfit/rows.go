package main

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

//go:embed rows.csv
var table string

// peakBytes is the assumed size of rows that state the bandwidth of large messages without their size.
const peakBytes = 8 * costmodel.GiB

// row is a measurement.
type row struct {
	*platform
	op    ir.Op
	at    costmodel.Placement
	bytes costmodel.Bytes
	took  costmodel.Seconds
	held  string // why it is in no fit; "" if it is in the fit
}

// platform is a machine of the table, as a cluster.
type platform struct {
	name     string
	gpu      string // prefix of the table's column gpu
	part     string // text in its column algo
	cluster  string // name in the catalogue
	rates    string // of its NICs, if the row does not have them
	nodes    int    // of rows with peaks, which do not have them
	local    int    // members per node, for rows with peaks
	noSharp  bool
	kin      bool // others of its kind remain if it is left out
	links    float64
	everyOne bool // also sizes of groups that no plan has
}

// platforms are in the order of the table; the first match counts. They add what the table does not say.
var platforms = []platform{
	{name: "p4de, EFA", gpu: "A100-SXM-80GB (p4de", cluster: "p4de"},
	{name: "p5, EFA", gpu: "H100-SXM (p5", cluster: "p5", kin: true},
	{name: "p5en, EFA", gpu: "H200-SXM (p5en", cluster: "p5en", kin: true},
	{name: "H100, InfiniBand", gpu: "H100-SXM (8x400G NDR", cluster: "dgx-h100", kin: true},
	{name: "GB200 NVL72", gpu: "GB200", cluster: "gb200-nvl72"},
	{name: "H100, a node", gpu: "H100-SXM", cluster: "dgx-h100", kin: true},
	{name: "A100, a node (vTrain)", gpu: "A100-SXM", part: "default", cluster: "dgx-a100-80g", kin: true},
	{name: "V100, a node", gpu: "V100-SXM2", cluster: "v100-32g"},
	{name: "A100, a node (Galvatron)", gpu: "A100 (Galvatron default", cluster: "dgx-a100-80g", kin: true},
	// 94 GB/s, so 8 × 100 Gb/s; not stated
	{name: "A100, 4 nodes", gpu: "A100-SXM? (4 nodes", cluster: "dgx-a100-80g", rates: "100Gb/s", kin: true},
	{name: "peaks", gpu: "PCIe Gen4", cluster: "l40s", nodes: 1, local: 8},
	{name: "peaks", gpu: "PCIe Gen5", cluster: "l40s", nodes: 1, local: 8, links: 63e9},
	{name: "peaks", gpu: "V100 NVLink2", cluster: "v100-32g", nodes: 1, local: 8},
	{name: "peaks", gpu: "A100 NVLink3", cluster: "dgx-a100-80g", nodes: 1, local: 8},
	{name: "peaks", gpu: "H100 NVLink4", part: "no SHARP", cluster: "dgx-h100", nodes: 1, local: 8, noSharp: true},
	{name: "peaks", gpu: "H100 NVLink4", part: "NVLink SHARP", cluster: "dgx-h100", nodes: 1, local: 8},
	{name: "peaks", gpu: "200Gb RDMA", cluster: "dgx-a100-80g", nodes: 16, local: 1},
	{name: "peaks", gpu: "400Gb RDMA", cluster: "dgx-h100", nodes: 16, local: 1},
	{name: "peaks", gpu: "DGX A100", cluster: "dgx-a100-80g", nodes: 16, local: 8},
	{name: "peaks", gpu: "DGX H100 8x400Gb", cluster: "dgx-h100", nodes: 16, local: 8, noSharp: true},
}

// unused are rows of the table that no platform matches, and the reasons.
var unused = []struct{ gpu, part, why string }{
	{"DGX H100 8x400Gb", "SHARP", "SHARP of the network's switches, which the model does not have"},
	{"100GbE TCP sockets", "", "no RDMA"},
	{"A100 (Galvatron, GPU not stated)", "", "the size is not stated"},
}

// record is a line of the table by its columns.
type record map[string]string

func records() ([]record, error) {
	lines, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("rows.csv: %w", err)
	}
	var out []record
	for _, line := range lines[1:] {
		r := record{}
		for i, name := range lines[0] {
			r[name] = line[i]
		}
		out = append(out, r)
	}
	return out, nil
}

// load reads the table. Clusters are shared by the rows of a platform, and by platforms of one cluster.
func load(clusters map[string]*costmodel.Cluster) (rows []row, skipped map[string]int, err error) {
	all, err := records()
	if err != nil {
		return nil, nil, err
	}
	skipped = map[string]int{}
	seen := map[string]bool{}
	for i, r := range all {
		if why := r.unused(); why != "" {
			skipped[why]++
			continue
		}
		p := r.platform()
		if p == nil {
			return nil, nil, fmt.Errorf("rows.csv:%d: no platform is %q, %q", i+2, r["gpu"], r["algo"])
		}
		if err := p.provide(clusters); err != nil {
			return nil, nil, err
		}
		x, err := r.row(p, clusters[p.key()])
		if err != nil {
			return nil, nil, fmt.Errorf("rows.csv:%d: %w", i+2, err)
		}
		key := fmt.Sprint(p.name, r["algo"], r["collective"], x.at, x.bytes, p.cluster, p.links, p.noSharp)
		if seen[key] {
			x.held = "a second run, which the first contradicts"
		}
		seen[key] = true
		rows = append(rows, x)
	}
	return rows, skipped, nil
}

func (r record) unused() string {
	for _, u := range unused {
		if strings.HasPrefix(r["gpu"], u.gpu) && (u.part == "" || r["algo"] == u.part) {
			return u.why
		}
	}
	return ""
}

func (r record) platform() *platform {
	for i := range platforms {
		if p := &platforms[i]; strings.HasPrefix(r["gpu"], p.gpu) && strings.Contains(r["algo"], p.part) {
			return p
		}
	}
	return nil
}

// key names the cluster of a platform.
func (p *platform) key() string {
	return fmt.Sprint(p.cluster, " ", p.rates, " ", p.links, " ", p.noSharp)
}

// provide creates a platform's cluster.
func (p *platform) provide(clusters map[string]*costmodel.Cluster) error {
	if clusters[p.key()] != nil {
		return nil
	}
	c, err := costmodel.Resolve(costmodel.Ref{Node: p.cluster, Nodes: 1024}, nil, nil)
	if err != nil {
		return err
	}
	if p.noSharp {
		c.Node.SHARP = false
	}
	if p.links > 0 {
		c.Node.Link.Bandwidth = costmodel.BytesPerSecond(p.links)
	}
	if p.rates != "" {
		c.Network[0].Bandwidth, err = costmodel.ParseBandwidth(p.rates)
		if err != nil {
			return err
		}
	}
	clusters[p.key()] = c
	return nil
}

// row returns a line as a measurement on its platform.
func (r record) row(p *platform, c *costmodel.Cluster) (row, error) {
	x := row{platform: p, op: ir.OpAllReduce, bytes: peakBytes}
	if r["collective"] == "alltoall" {
		x.op = ir.OpAllToAll
	}
	local, nodes := p.local, p.nodes
	if p.nodes == 0 {
		n, err := strconv.Atoi(r["gpus"])
		if err != nil {
			return x, err
		}
		local = min(n, c.Node.Devices)
		nodes = n / local
	}
	x.at = costmodel.Placement{Local: local, Nodes: nodes, Span: nodes}
	n := float64(local * nodes)
	if r["time_us"] == "" {
		bus, err := strconv.ParseFloat(r["busbw_GBps"], 64)
		x.took = costmodel.Seconds(float64(x.bytes) * 2 * (n - 1) / n / (bus * 1e9))
		return x, err
	}
	bytes, err := strconv.ParseFloat(r["bytes"], 64)
	if err != nil {
		return x, err
	}
	took, err := strconv.ParseFloat(r["time_us"], 64)
	x.bytes, x.took = costmodel.Bytes(bytes), costmodel.Seconds(took)*costmodel.Microsecond
	switch {
	case p.cluster == "v100-32g" && c.Node.Devices%local != 0:
		x.held = "a ring of such a size does not close in a V100 node's mesh; no plan has it"
	case p.cluster == "v100-32g" && local == 4:
		x.held = "the mesh of eight V100s has more links in its halves than the model says"
	case nodes > 16:
		x.held = "unexplained: twenty racks reach half of what two do"
	}
	return x, err
}
