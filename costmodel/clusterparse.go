package costmodel

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Missing is reported for a figure that a cluster file must contain.
//
// Example:
//
//	node: {devices: 8}
const Missing ir.Code = "Missing"

// ParseCluster reads a cluster file. The error is an ir.Diags with all input errors.
func ParseCluster(file string, data []byte) (*Cluster, error) {
	d, diags := strict.Parse(file, data)
	if len(diags) > 0 && d.Root.Kind != strict.Map {
		return nil, diags.Err()
	}
	if diag := rebase(d); diag != nil {
		return nil, append(diags, *diag)
	}
	c := &Cluster{Name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), Nodes: 1}
	diags = append(diags, d.Decode(c)...)
	if len(diags) == 0 {
		diags = missingFigures(c, d)
	}
	if err := diags.Err(); err != nil {
		return nil, err
	}
	if !c.Measured.Collectives.file() {
		c.table, _, _ = c.Measured.Collectives.routes() // decoding has checked the table
	}
	return c, nil
}

// rebase merges a file that has a base into the catalogue row of that name.
func rebase(d *strict.Doc) *ir.Diag {
	base := d.Root.Get("base")
	if base == nil || base.Kind != strict.String { // decoding reports it
		return nil
	}
	name := strings.ToLower(base.Text)
	name = canonical(or(gpuNodes[name], name))
	data, err := ClusterFile(name)
	if err != nil {
		diag := unknown(base.Text, base.Pos)
		return &diag
	}
	row, diags := strict.Parse(name+".yaml", data)
	if len(diags) > 0 {
		panic("costmodel: catalogue: " + diags.Err().Error())
	}
	if source := row.Root.Get("source"); source != nil {
		unsource(source, d.Root, "")
	}
	d.Root = over(row.Root, d.Root)
	return nil
}

// unsource removes the sources of figures that a file replaces, because they describe the old figures.
func unsource(source, above *strict.Node, prefix string) {
	for _, f := range above.Fields {
		path := prefix + f.Key
		if f.Value.Kind == strict.Map {
			unsource(source, f.Value, path+".")
			continue
		}
		source.Fields = slices.DeleteFunc(source.Fields, func(s strict.Field) bool {
			return s.Key == path || strings.HasPrefix(s.Key, path+".")
		})
	}
}

// WholeFile returns a cluster file in which the figures of the base are written out, so that it needs no base. A file
// without a base is returned unchanged. The error is an ir.Diags with all input errors.
func WholeFile(file string, data []byte) ([]byte, error) {
	if _, err := ParseCluster(file, data); err != nil {
		return nil, err
	}
	d, _ := strict.Parse(file, data)
	if d.Root.Get("base") == nil {
		return data, nil
	}
	rebase(d)
	d.Root.Fields = slices.DeleteFunc(d.Root.Fields, func(f strict.Field) bool { return f.Key == "base" })
	return d.YAML(), nil
}

// over returns a mapping with the fields of another written over it. Mappings in both are merged in the same way; lists
// are replaced.
func over(below, above *strict.Node) *strict.Node {
	m := below.Clone()
	for _, f := range above.Fields {
		if old := m.Get(f.Key); old != nil && old.Kind == strict.Map && f.Value.Kind == strict.Map {
			f.Value = over(old, f.Value)
		}
		m.Put(f)
	}
	return m
}

// missingFigures reports the figures that pricing needs and a cluster does not have.
func missingFigures(c *Cluster, d *strict.Doc) ir.Diags {
	var diags ir.Diags
	want := func(path string, present bool, example string) {
		if !present {
			diags.Addf(d.Pos(path), Missing, "%s is missing; an example is %s", path, example)
		}
	}
	want("gpu.name", c.GPU.Name != "", "H100-SXM-80GB")
	want("gpu.arch", c.GPU.Arch != "", "sm_90a")
	want("gpu.memory_gib", c.GPU.MemoryGiB > 0, "79.1")
	want("gpu.memory_bandwidth", c.GPU.MemoryBandwidth > 0, "3350GB/s")
	want("gpu.peak_tflops", len(c.GPU.PeakTFLOPS) > 0, "{bf16: 989, f32: 67}")
	want("node.devices", c.Node.Devices > 0, "8")
	if c.Node.Devices > 1 {
		want("node.link.kind", c.Node.Link.Kind != "", "nvswitch")
		want("node.link.bandwidth", c.Node.Link.Bandwidth > 0, "450GB/s")
	}
	if len(c.Network) > 0 {
		want("network[0].nics", c.Network[0].NICs > 0, "8")
		want("network[0].bandwidth", c.Network[0].Bandwidth > 0, "400Gb/s")
	}
	if c.Nodes > 1 && len(c.Network) == 0 {
		diags.Addf(d.Pos("nodes"), Missing,
			"network is missing, but there are %d nodes; an example is [{name: rail, nics: 8, bandwidth: "+
				"400Gb/s, latency_us: 5}]", c.Nodes)
	}
	return diags
}

// inherit fills in the fields that tiers leave out.
func (c *Cluster) inherit() {
	c.Network = append([]Tier(nil), c.Network...)
	for i := range c.Network {
		t := &c.Network[i]
		if i > 0 {
			below := c.Network[i-1]
			t.NICs = or(t.NICs, below.NICs)
			t.Bandwidth = or(t.Bandwidth, below.Bandwidth)
			t.LatencyUS = or(t.LatencyUS, below.LatencyUS)
		}
		t.Nodes = or(t.Nodes, c.Nodes)
		t.Oversubscription = or(t.Oversubscription, 1)
	}
}

func or[T int | float64 | BytesPerSecond | string](v, otherwise T) T {
	var none T
	if v == none {
		return otherwise
	}
	return v
}
