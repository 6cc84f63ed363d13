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

// Ref is a job's reference to a cluster. It has the same fields as spec.ClusterRef, so that one converts to the other.
type Ref struct {
	Node    string // catalogue name, GPU name, or file
	Nodes   int    // 0: the file's number
	Devices int    // per node; 0: the file's number
	Count   int    // N of the short form NxNAME: nodes if NAME is a node, devices if it is a GPU or cpu
}

// Codes of the input errors in a reference to a cluster.
const (
	// UnknownCluster is reported for a name that is not in the catalogue.
	//
	// Example:
	//
	//	cluster: 4xdgx-h10
	UnknownCluster ir.Code = "UnknownCluster"

	// BadCluster is reported for a number of devices or nodes that the hardware does not allow.
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

// IsFile reports whether a cluster's name is a path: it contains a slash or ends in .yaml or .yml.
func IsFile(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return strings.ContainsAny(name, `/\`) || ext == ".yaml" || ext == ".yml"
}

// Resolve finds the cluster of a job, with its nodes and devices. at returns the position of node, nodes and devices in
// the job, for messages; read returns the content of files. Input errors are an ir.Diags.
func Resolve(r Ref, at func(field string) ir.Pos, read func(string) ([]byte, error)) (*Cluster, error) {
	if at == nil {
		at = func(string) ir.Pos { return ir.Pos{} }
	}
	x := resolution{ref: r, at: at}
	if err := x.lookup(read); err != nil {
		return nil, err
	}
	return x.finish()
}

// resolution is the state of finding a job's cluster.
type resolution struct {
	ref   Ref
	at    func(field string) ir.Pos
	found *Cluster
	diags ir.Diags
}

// finish sets the job's nodes and devices in the cluster, and replaces nominal bandwidths by measured ones.
func (x *resolution) finish() (*Cluster, error) {
	x.size()
	if err := x.diags.Err(); err != nil {
		return nil, err
	}
	x.found.inherit()
	x.found.applyBandwidths(x.found.Measured)
	x.found.divideCPU()
	return x.found, nil
}

// lookup finds the cluster of a file or of the catalogue, and converts Count to Nodes or Devices.
func (x *resolution) lookup(read func(string) ([]byte, error)) error {
	r := &x.ref
	if IsFile(r.Node) {
		data, err := read(r.Node)
		if err != nil {
			x.diags.Addf(x.at("node"), NoFile, "cluster file %s cannot be read: %v", r.Node, ir.FileReason(err))
			return x.diags
		}
		x.found, err = ParseCluster(r.Node, data)
		if err != nil {
			return err
		}
		return x.readTable(read)
	}
	name, byGPU := strings.ToLower(r.Node), false
	if node, ok := gpuNodes[name]; ok {
		name, byGPU = node, true
	}
	data, err := ClusterFile(name)
	if err != nil {
		return append(x.diags, unknown(r.Node, x.at("node")))
	}
	c, err := ParseCluster(canonical(name)+".yaml", data)
	if err != nil {
		panic("costmodel: catalogue: " + err.Error())
	}
	x.found = c
	if r.Count > 0 {
		if byGPU || c.IsCPU() {
			x.spread()
		} else {
			r.Nodes = or(r.Nodes, r.Count)
		}
	}
	return x.diags.Err()
}

// turned is a short form with its number at the end: dgx-h100x4.
var turned = regexp.MustCompile(`^(.+)x([1-9][0-9]*)$`)

// NearestCluster returns the name that was probably meant by an unknown name, "" if none is similar.
func NearestCluster(name string) string {
	name = strings.ToLower(name)
	all := slices.Concat(ClusterNames(), slices.Sorted(maps.Keys(clusterAliases)), slices.Sorted(maps.Keys(gpuNodes)))
	if m := turned.FindStringSubmatch(name); m != nil && slices.Contains(all, m[1]) {
		return m[2] + "x" + m[1]
	}
	return ir.Nearest(name, all)
}

// unknown returns the diagnostic for an unknown name. It lists the names of the catalogue if none is similar.
func unknown(name string, at ir.Pos) ir.Diag {
	d := ir.Diag{Pos: at, Code: UnknownCluster, Fix: NearestCluster(name)}
	switch {
	case name == "":
		d.Msg = "the cluster has no name; use a name such as 4xdgx-h100, or the path of a file"
	case d.Fix == "":
		d.Msg = "the catalogue has no cluster " + name + " (" + strings.Join(ClusterNames(), ", ") +
			"), and it is not the path of a file"
	default:
		d.Msg = "the catalogue has no cluster " + name + ", and it is not the path of a file"
	}
	return d
}

// spread converts a number of devices to nodes and devices per node.
func (x *resolution) spread() {
	r, c := &x.ref, x.found
	per := or(r.Devices, c.Node.Devices)
	switch {
	case c.IsCPU():
		r.Devices = or(r.Devices, r.Count)
	case r.Count < per:
		r.Devices = r.Count
	case r.Count > maxDevices:
		x.diags.Addf(x.at("node"), BadCluster, "%d devices of %s; planc supports at most %d", r.Count, c.Name,
			maxDevices)
	case r.Count%per == 0:
		r.Nodes = or(r.Nodes, r.Count/per)
	default:
		x.diags.Addf(x.at("node"), BadCluster,
			"%d devices are not a whole number of nodes: %s has %d devices per node; use %d or %d devices",
			r.Count, c.Name, per, r.Count/per*per, (r.Count/per+1)*per)
	}
}

// maxDevices is the largest number of devices of a cluster. The largest published clusters have about 100,000.
const maxDevices = 1 << 17

// size sets the nodes and devices of the job.
func (x *resolution) size() {
	r, c := &x.ref, x.found
	if r.Devices > c.Node.Devices && !c.IsCPU() {
		x.diags.Addf(x.at("devices"), BadCluster, "a node of %s has %d devices, not %d", c.Name, c.Node.Devices,
			r.Devices)
	}
	c.Node.FullDevices = c.Node.Devices
	c.Node.Devices = or(r.Devices, c.Node.Devices)
	c.Nodes = or(r.Nodes, c.Nodes)
	if c.Devices() > maxDevices {
		place := x.at("nodes")
		if place == (ir.Pos{}) {
			place = x.at("node") // the short form contains the number
		}
		x.diags.Addf(place, BadCluster, "%d nodes of %d devices are %d devices; planc supports at most %d: use "+
			"at most %d nodes",
			c.Nodes, c.Node.Devices, c.Devices(), maxDevices, maxDevices/c.Node.Devices)
	}
	if c.Nodes > 1 && len(c.Network) == 0 {
		x.diags.Addf(x.at("nodes"), BadCluster, "%s has no network, so it can have only one node, not %d", c.Name,
			c.Nodes)
	}
}

// divideCPU divides a CPU among its devices. The file's figures are those of a device that has a core to itself; memory
// is the host's. A device with several cores runs a thread on each. Memory and links are shared, so their bandwidth
// does not grow with the cores.
func (c *Cluster) divideCPU() {
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

// cores returns the number of cores per device of a CPU, as its runtime divides them: whole cores if there are enough,
// otherwise a fraction of one.
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

// bandwidths are decoded with their unit
var _ strict.Unmarshaler = (*BytesPerSecond)(nil)
