package costmodel

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Cluster is the hardware that a job runs on: a cluster file or a row of the catalogue, with the job's numbers of nodes
// and devices.
type Cluster struct {
	Name     string            `yaml:"-"` // of the catalogue row or the file
	Base     string            `yaml:"base" doc:"a cluster of the catalogue, which this file changes"`
	GPU      GPU               `yaml:"gpu" doc:"one device"`
	Node     Node              `yaml:"node" doc:"the devices that share a host"`
	Nodes    int               `yaml:"nodes" min:"1" max:"1e6" doc:"number of nodes; 1 if absent"`
	Network  []Tier            `yaml:"network" doc:"network tiers between nodes, the nearest first"`
	Measured Measured          `yaml:"measured" doc:"measured efficiencies of this cluster; absent: the catalogue's"`
	Source   map[string]string `yaml:"source" doc:"source of each figure, by its dotted name"`

	table map[tabled]Route `yaml:"-"` // routes of Measured.Collectives
	// the cluster with the catalogue's figures, if this machine's measured rates replace them
	named *Cluster `yaml:"-"`
}

// GPU is one device: a GPU, or a share of a CPU.
type GPU struct {
	Name            string             `yaml:"name" doc:"the vendor's name"`
	Arch            string             `yaml:"arch" doc:"sm_90a, ...; cpu"`
	MemoryGiB       float64            `yaml:"memory_gib" over:"0" doc:"memory that the driver reports"`
	MemoryBandwidth BytesPerSecond     `yaml:"memory_bandwidth" doc:"memory bandwidth, such as 3350GB/s"`
	Watts           float64            `yaml:"watts" min:"0" doc:"power at full load"`
	PeakTFLOPS      map[string]float64 `yaml:"peak_tflops" keys:"f64,f32,tf32,bf16,fp16,fp8,fp4,int8" over:"0" doc:"dense peak, by compute type"`
}

// Node is a host and its devices.
type Node struct {
	Devices      int     `yaml:"devices" min:"1" max:"4096" doc:"devices per node"`
	FullDevices  int     `yaml:"-"` // devices that the node has, of which the job uses Devices
	Link         Link    `yaml:"link" doc:"between the devices of a node"`
	SHARP        bool    `yaml:"sharp" doc:"the switches can reduce"`
	Host         Host    `yaml:"host" doc:"CPU and its memory"`
	NVMe         NVMe    `yaml:"nvme" doc:"local disks"`
	PricePerHour float64 `yaml:"price_per_hour" min:"0" doc:"price of a node per hour"`
	Currency     string  `yaml:"currency" doc:"currency of the price, such as USD; absent: prices are printed without one"`
}

// Link connects the devices of a node. Its bandwidth is one direction of one device.
type Link struct {
	Kind      string         `yaml:"kind" enum:"nvswitch,nvlink,pcie,memory,xgmi" doc:"nvswitch (all to all), nvlink (bridges or a mesh), pcie, memory (ranks of one CPU)"`
	Bandwidth BytesPerSecond `yaml:"bandwidth" doc:"one direction, per device"`
	LatencyUS float64        `yaml:"latency_us" min:"0" doc:"microseconds per hop"`
}

// Host is the CPU side of a node.
type Host struct {
	MemoryGiB float64        `yaml:"memory_gib" min:"0" doc:"per node"`
	Cores     int            `yaml:"cores" min:"0" max:"65536" doc:"per node"`
	Bandwidth BytesPerSecond `yaml:"bandwidth" doc:"host to device, one direction, per device"`
}

// NVMe is the local storage of a node.
type NVMe struct {
	GiB   float64        `yaml:"gib" min:"0" doc:"per node"`
	Read  BytesPerSecond `yaml:"read" doc:"per node"`
	Write BytesPerSecond `yaml:"write" doc:"per node"`
}

// Tier is a tier of the network. Its bandwidth is one direction of one NIC. After Resolve every field except Name and
// Rails is set: an absent field is copied from the previous tier, Nodes defaults to all nodes, and Oversubscription to
// 1.
type Tier struct {
	Name             string         `yaml:"name" doc:"rail, spine, ..."`
	Nodes            int            `yaml:"nodes" min:"1" max:"1e6" doc:"nodes that the tier connects; absent: all"`
	NICs             int            `yaml:"nics" min:"1" max:"4096" doc:"per node"`
	Bandwidth        BytesPerSecond `yaml:"bandwidth" doc:"one direction, per NIC"`
	LatencyUS        float64        `yaml:"latency_us" min:"0" doc:"microseconds end to end"`
	Rails            bool           `yaml:"rails" doc:"NIC i of each node is on switch i"`
	Oversubscription float64        `yaml:"oversubscription" min:"1" doc:"bandwidth below the tier over bandwidth above it; 1 if absent"`
}

// Devices returns the number of devices of the whole cluster.
func (c *Cluster) Devices() int { return c.Nodes * c.Node.Devices }

// IsCPU reports whether the devices are shares of a CPU.
func (c *Cluster) IsCPU() bool { return c.GPU.Arch == "cpu" }

// Memory returns a device's memory.
func (g GPU) Memory() Bytes { return Bytes(g.MemoryGiB) * GiB }

// Peak returns the dense peak in a compute type ("bf16"); ok is false if the device has none.
func (g GPU) Peak(compute string) (rate FlopsPerSecond, ok bool) {
	t, ok := g.PeakTFLOPS[compute]
	return FlopsPerSecond(t) * TFLOPs, ok
}

// Latency returns the time of a hop.
func (l Link) Latency() Seconds { return Seconds(l.LatencyUS) * Microsecond }

// Latency returns the end-to-end latency.
func (t Tier) Latency() Seconds { return Seconds(t.LatencyUS) * Microsecond }

// NoUnit is reported for a bandwidth without a unit, which could be bits or bytes.
//
// Example:
//
//	node: {link: {bandwidth: 450}}
const NoUnit ir.Code = "NoUnit"

// UnmarshalNode reads a bandwidth such as "450GB/s".
func (b *BytesPerSecond) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind == strict.Map || n.Kind == strict.List {
		c.Addf(n.Pos, strict.WrongType, "%s is %v; it must be a bandwidth such as 450GB/s", path, n.Kind)
		return
	}
	v, err := ParseBandwidth(n.Text)
	switch {
	case err == nil:
		*b = v
	case n.Kind == strict.Int || n.Kind == strict.Float:
		c.Addf(n.Pos, NoUnit, "%s: %v", path, err)
	default:
		c.Addf(n.Pos, strict.WrongType, "%s: %v", path, err)
	}
}
