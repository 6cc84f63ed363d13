package costmodel

import (
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Ref is how a job names its cluster. It has the fields of spec.ClusterRef, so one converts to the other.
type Ref struct {
	Node    string // catalogue name, GPU name, or file
	Nodes   int    // 0: as the file says
	Devices int    // of a node; 0: as the file says
	Count   int    // N of the short form NxNAME: nodes of a node name, devices of a GPU's name or cpu
}

// The kinds of mistake in a reference to a cluster.
const (
	// UnknownCluster is reported for a name that is not in the catalogue.
	//
	// Example:
	//
	//	cluster: 4xdgx-h10
	UnknownCluster ir.Code = "UnknownCluster"

	// BadCluster is reported for a number of devices or nodes that the hardware cannot have.
	//
	// Example:
	//
	//	cluster: {node: dgx-h100, devices: 9}
	BadCluster ir.Code = "BadCluster"

	// NoFile is reported for a file that cannot be read.
	//
	// Example:
	//
	//	cluster: {node: no/such/cluster.yaml}
	NoFile ir.Code = "NoFile"
)

// IsFile says whether a cluster's name is a path: it has a slash or ends in .yaml or .yml.
func IsFile(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return strings.ContainsAny(name, `/\`) || ext == ".yaml" || ext == ".yml"
}

// Resolve finds the cluster that a job means, with its nodes and devices. at gives the place of node, nodes,
// devices in the job, for messages; read gives the content of files. A mistake is an ir.Diags.
func Resolve(r Ref, at func(field string) ir.Pos, read func(string) ([]byte, error)) (*Cluster, error) {
	if at == nil {
		at = func(string) ir.Pos { return ir.Pos{} }
	}
	c, err := lookup(&r, at, read)
	if err == nil {
		err = c.finish(r, at)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// finish puts a job's nodes and devices on a cluster that was looked up, and measured bandwidths in their place.
func (c *Cluster) finish(r Ref, at func(string) ir.Pos) error {
	var diags ir.Diags
	c.size(r, at, &diags)
	if err := diags.Err(); err != nil {
		return err
	}
	c.inherit()
	c.applyBandwidths(c.Measured)
	c.share()
	return nil
}

// lookup finds the cluster as its file has it, and turns Count into Nodes or Devices.
func lookup(r *Ref, at func(string) ir.Pos, read func(string) ([]byte, error)) (*Cluster, error) {
	var diags ir.Diags
	if IsFile(r.Node) {
		data, err := read(r.Node)
		if err != nil {
			diags.Addf(at("node"), NoFile, "cluster file %s cannot be read: %v", r.Node, ir.FileReason(err))
			return nil, diags
		}
		c, err := ParseCluster(r.Node, data)
		if err != nil {
			return nil, err
		}
		return c, c.readTable(r.Node, at("node"), read)
	}
	name, byGPU := strings.ToLower(r.Node), false
	if node, ok := gpuNodes[name]; ok {
		name, byGPU = node, true
	}
	data, err := ClusterFile(name)
	if err != nil {
		return nil, append(diags, unknown(r.Node, at("node")))
	}
	c, err := ParseCluster(canonical(name)+".yaml", data)
	if err != nil {
		panic("costmodel: catalogue: " + err.Error())
	}
	if r.Count > 0 {
		if byGPU || c.IsCPU() {
			c.spread(r, at, &diags)
		} else {
			r.Nodes = or(r.Nodes, r.Count)
		}
	}
	return c, diags.Err()
}

// turned is a short form with its number at the end: dgx-h100x4.
var turned = regexp.MustCompile(`^(.+)x([1-9][0-9]*)$`)

// NearestCluster is what was probably meant by a name that the catalogue does not have, "" if there is nothing like it.
func NearestCluster(name string) string {
	name = strings.ToLower(name)
	all := slices.Concat(ClusterNames(), slices.Sorted(maps.Keys(clusterAliases)), slices.Sorted(maps.Keys(gpuNodes)))
	if m := turned.FindStringSubmatch(name); m != nil && slices.Contains(all, m[1]) {
		return m[2] + "x" + m[1]
	}
	return ir.Nearest(name, all)
}

// unknown is the mistake of a name that stands for nothing. The catalogue's names are listed where none is near.
func unknown(name string, at ir.Pos) ir.Diag {
	d := ir.Diag{Pos: at, Code: UnknownCluster, Fix: NearestCluster(name)}
	switch {
	case name == "":
		d.Msg = "the cluster has no name; it is written as 4xdgx-h100, or a file's path"
	case d.Fix == "":
		d.Msg = "there is no cluster " + name + " in the catalogue (" + strings.Join(ClusterNames(), ", ") +
			"), and it is not the path of a file"
	default:
		d.Msg = "there is no cluster " + name + " in the catalogue, and it is not the path of a file"
	}
	return d
}

// spread turns a number of devices into nodes and devices of a node.
func (c *Cluster) spread(r *Ref, at func(string) ir.Pos, diags *ir.Diags) {
	per := or(r.Devices, c.Node.Devices)
	switch {
	case c.IsCPU():
		r.Devices = or(r.Devices, r.Count)
	case r.Count < per:
		r.Devices = r.Count
	case r.Count > mostDevices:
		diags.Addf(at("node"), BadCluster, "%d devices of %s; at most %d are planned", r.Count, c.Name, mostDevices)
	case r.Count%per == 0:
		r.Nodes = or(r.Nodes, r.Count/per)
	default:
		diags.Addf(at("node"), BadCluster,
			"%d devices are no whole number of nodes: %s has %d each (%d or %d devices would do)",
			r.Count, c.Name, per, r.Count/per*per, (r.Count/per+1)*per)
	}
}

// mostDevices is how many devices a cluster may have. The largest that were published have some 100,000.
const mostDevices = 1 << 17

// size sets the nodes and devices that the job asks for.
func (c *Cluster) size(r Ref, at func(string) ir.Pos, diags *ir.Diags) {
	if r.Devices > c.Node.Devices && !c.IsCPU() {
		diags.Addf(at("devices"), BadCluster, "a node of %s has %d devices, not %d", c.Name, c.Node.Devices, r.Devices)
	}
	c.Node.Whole = c.Node.Devices
	c.Node.Devices = or(r.Devices, c.Node.Devices)
	c.Nodes = or(r.Nodes, c.Nodes)
	if c.Devices() > mostDevices {
		place := at("nodes")
		if place == (ir.Pos{}) {
			place = at("node") // the short form says how many
		}
		diags.Addf(place, BadCluster, "%d nodes of %d devices are %d devices; at most %d are planned (%d "+
			"nodes would do)",
			c.Nodes, c.Node.Devices, c.Devices(), mostDevices, mostDevices/c.Node.Devices)
	}
	if c.Nodes > 1 && len(c.Network) == 0 {
		diags.Addf(at("nodes"), BadCluster, "%s has no network, so it is one node, not %d", c.Name, c.Nodes)
	}
}

// share makes the devices of a CPU shares of it: the file's figures are of a device with a core to itself, and memory
// is the host's. A device that has several cores runs a thread on each; what they share, memory and links, they do not
// have more of.
func (c *Cluster) share() {
	if !c.IsCPU() || c.Node.Host.Cores == 0 {
		return
	}
	n := float64(c.Node.Devices)
	if c.Node.Host.MemoryGiB > 0 {
		c.GPU.MemoryGiB = min(c.GPU.MemoryGiB, c.Node.Host.MemoryGiB/n)
	}
	part := c.cores()
	c.GPU.MemoryBandwidth *= BytesPerSecond(min(1, part))
	c.Node.Link.Bandwidth *= BytesPerSecond(min(1, part))
	for k, v := range c.GPU.PeakTFLOPS {
		c.GPU.PeakTFLOPS[k] = v * part
	}
}

// cores are those of a device of a CPU, as its runtime divides them: whole ones where there are enough, else a part of
// one.
func (c *Cluster) cores() float64 {
	if c.Node.Host.Cores == 0 {
		return 1
	}
	part := float64(c.Node.Host.Cores) / float64(c.Node.Devices)
	if part > 1 {
		part = math.Floor(part)
	}
	return part
}

// strict.Unmarshaler is what makes bandwidths carry their unit.
var _ strict.Unmarshaler = (*BytesPerSecond)(nil)
