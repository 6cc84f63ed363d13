package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/runtime/amount"
)

func clustersCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "clusters [NAME|FILE|NxNAME]",
		Short: "list the cluster catalogue; NAME prints its file",
		Long: `clusters lists the nodes that a job can name. With a NAME it prints that node's cluster file with the source
of each figure, which you can edit and use as a job's cluster. With your own file it prints that file with all figures
that it inherits from its base. 4xNAME, the short form that a job takes, prints the file with that number of nodes or
devices.`,
		Example: "planc clusters dgx-h100 > mine.yaml",
		Args:    oneName("cluster"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printCluster(a, args[0])
			}
			return printClusters(a)
		},
		ValidArgsFunction: firstArg(costmodel.ClusterNames),
	}
	a.jsonFlag(c)
	return c
}

// clusterRow describes a node of the catalogue.
type clusterRow struct {
	Name      string             `json:"name"`
	Aliases   []string           `json:"aliases"`
	GPU       string             `json:"gpu"`
	Devices   int                `json:"devices"`    // per node
	MemoryGiB float64            `json:"memory_gib"` // per device
	Peak      map[string]float64 `json:"peak_tflops"`
	Link      string             `json:"link"`
	LinkBps   float64            `json:"link_bytes_per_s"` // per device, in one direction
	NICs      int                `json:"nics"`
	NICBps    float64            `json:"nic_bytes_per_s"` // per NIC, in one direction
	Source    map[string]string  `json:"source"`

	File string `json:"file,omitempty"` // text of the file, if one cluster is printed
}

// catalogueRow returns the row of a node of the catalogue.
func catalogueRow(name string) clusterRow {
	data, err := costmodel.ClusterFile(name)
	if err != nil {
		panic(err.Error())
	}
	c, err := costmodel.ParseCluster(name+".yaml", data)
	if err != nil {
		panic(fmt.Sprintf("cluster %s of the catalogue: %v", name, err))
	}
	return newClusterRow(name, c)
}

func newClusterRow(name string, c *costmodel.Cluster) clusterRow {
	r := clusterRow{Name: name, Aliases: []string{}, GPU: c.GPU.Name, Devices: c.Node.Devices,
		MemoryGiB: c.GPU.MemoryGiB, Peak: c.GPU.PeakTFLOPS,
		Link: c.Node.Link.Kind, LinkBps: float64(c.Node.Link.Bandwidth), Source: c.Source}
	if host := c.Node.Host.MemoryGiB; c.IsCPU() && host > 0 { // devices share the host's memory
		r.MemoryGiB = min(r.MemoryGiB, host/float64(c.Node.Devices))
	}
	if len(c.Network) > 0 {
		r.NICs, r.NICBps = c.Network[0].NICs, float64(c.Network[0].Bandwidth)
	}
	aliases := costmodel.ClusterAliases()
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if aliases[alias] == name && alias != name {
			r.Aliases = append(r.Aliases, alias)
		}
	}
	return r
}

func printClusters(a *app) error {
	var rows []clusterRow
	for _, name := range costmodel.ClusterNames() {
		rows = append(rows, catalogueRow(name))
	}
	if a.json {
		return a.PrintJSON(map[string]any{"schema": 1, "clusters": rows})
	}
	return a.Print(clustersScreen(rows))
}

// clustersScreen formats the catalogue as a table, with aliases below it.
func clustersScreen(rows []clusterRow) string {
	columns := []layout.Column{layout.Left("NODE"), layout.Left("DEVICES"), layout.Right("GiB"),
		layout.Right("TFLOP/s"), layout.Left("LINK GB/s"),
		layout.Left("NET Gb/s")}
	var cells [][]string
	var aliases []string
	for _, r := range rows {
		cells = append(cells, []string{r.Name, fmt.Sprintf("%d×%s", r.Devices, r.GPU), amount.Digits(r.MemoryGiB, 3),
			r.peakText(), r.linkText(), r.networkText()})
		for _, alias := range r.Aliases {
			aliases = append(aliases, alias+" = "+r.Name)
		}
	}
	return layout.Table(columns, cells) + "\n" + layout.Prose("", 0, "TFLOP/s: dense bf16 if available, else fp16, "+
		"else f32. LINK (gigabytes per second) is per device and NET (gigabits per second) per NIC, "+
		"each in one direction.") +
		layout.Flow("aliases", 9, " · ", aliases) +
		"\nplanc clusters NAME prints one as a file · planc plan --cluster NAME ...\n"
}

func (r clusterRow) peakText() string {
	for _, compute := range []string{"bf16", "fp16", "f32"} {
		if v := r.Peak[compute]; v >= 1 {
			return amount.Digits(v, 3)
		} else if v > 0 {
			return amount.Digits(v, 2)
		}
	}
	return "–"
}

func (r clusterRow) linkText() string {
	if r.LinkBps == 0 { // one device per node
		return "–"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %.0f", r.Link, r.LinkBps/1e9))
}

func (r clusterRow) networkText() string {
	if r.NICs == 0 {
		return "–"
	}
	return fmt.Sprintf("%d×%.0f", r.NICs, r.NICBps*8/1e9)
}

// printCluster prints one cluster as a file.
func printCluster(a *app, name string) error {
	if costmodel.IsFile(name) {
		return printClusterFile(a, name)
	}
	if count, node := spec.ShortCluster(name); count > 0 {
		return printShortCluster(a, name, costmodel.Ref{Node: node, Count: count})
	}
	full := strings.ToLower(name)
	if node, ok := costmodel.ClusterAliases()[full]; ok {
		full = node
	}
	data, err := costmodel.ClusterFile(full)
	if err != nil {
		return inputErrorf(costmodel.UnknownCluster, costmodel.NearestCluster(name),
			"the catalogue has no cluster %s; planc clusters lists its clusters", name)
	}
	if !a.json {
		return a.Print(string(data))
	}
	row := catalogueRow(full)
	row.File = string(data)
	return a.PrintJSON(row)
}

// printShortCluster prints the cluster of the short form NxNAME: the catalogue's file with that number of devices.
func printShortCluster(a *app, short string, ref costmodel.Ref) error {
	c, err := costmodel.Resolve(ref, nil, a.Read)
	if err != nil {
		return err
	}
	if c.Nodes == 1 && c.Node.Devices == c.Node.FullDevices {
		return printCluster(a, c.Name)
	}
	file := fmt.Appendf(nil, "base: %s\nnodes: %d\nnode: {devices: %d}\n", c.Name, c.Nodes, c.Node.Devices)
	return printExpandedCluster(a, short, file)
}

// printClusterFile prints a user's file with the figures that it inherits from its base.
func printClusterFile(a *app, name string) error {
	data, err := a.Read(name)
	if err != nil {
		return ir.Diags{{Pos: ir.Pos{File: name}, Code: costmodel.NoFile,
			Msg: fmt.Sprintf("the cluster file cannot be read: %v", ir.FileReason(err))}}.Err()
	}
	return printExpandedCluster(a, name, data)
}

// printExpandedCluster prints a cluster file with the figures that it inherits from its base.
func printExpandedCluster(a *app, name string, data []byte) error {
	whole, err := costmodel.WholeFile(name, data)
	if err != nil {
		return err
	}
	if !a.json {
		return a.Print(string(whole))
	}
	c, err := costmodel.ParseCluster(name, data)
	if err != nil {
		return err
	}
	row := newClusterRow(c.Name, c)
	row.File = string(whole)
	return a.PrintJSON(row)
}
