package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/amount"
)

// FileExists is reported for a file that a command would write and that is there already.
//
// Example:
//
//	planc init ../../examples/opticks
const FileExists ir.Code = "FileExists"

func (a *app) detectCommand() *cobra.Command {
	var out, target string
	c := &cobra.Command{
		Use:   "detect [-o FILE]",
		Short: "a cluster file for this machine",
		Long: "detect prints a cluster file for this machine: its NVIDIA GPUs, how they are connected and its " +
			"network ports, as\n" +
			"nvidia-smi and the system report them, and for rates the catalogue's; where there is no GPU, or with " +
			"--target cpu,\n" +
			"its CPU. Each figure's source says what is assumed. Nothing is measured: planc calibrate does that. Of " +
			"a CPU's bf16\n" +
			"nothing is assumed, as it is below f32's rate on some and several times that on others: until it is " +
			"measured, products\n" +
			"in bf16 are priced as those in f32.",
		Example: "planc detect -o here.yaml && planc plan --set cluster.node=here.yaml",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := a.describeMachine(inspectMachine(os.DirFS("/")), target)
			if err != nil {
				return err
			}
			if out == "" {
				return a.print(text)
			}
			return a.writeNew(out, text, "planc plan --set "+shellWord("cluster.node="+filePath(out)))
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "write to `FILE`, which must not be there yet")
	c.Flags().StringVar(&target, "target", "", "`PLATFORM` to describe: cpu, cuda; else cuda where there are GPUs")
	return c
}

// onGPUs tells whether a command is about this machine's GPUs: as --target says, else where there are some.
func onGPUs(target string, m machine) (bool, error) {
	if target == "" {
		return len(m.GPUs) > 0, nil
	}
	on, err := targetNamed(target)
	return on == codegen.GPU, err
}

// describeMachine is the cluster file of what the target names.
func (a *app) describeMachine(m machine, target string) (string, error) {
	gpus, err := onGPUs(target, m)
	if err != nil {
		return "", err
	}
	if !gpus {
		return clusterFileOf(m, nil), nil
	}
	c, b, err := a.describeGPUs(m)
	if err != nil {
		return "", err
	}
	return gpuClusterText(c, b.Driver), nil
}

// describeGPUs are this machine's GPUs as a cluster, and as they are described.
func (a *app) describeGPUs(m machine) (*costmodel.Cluster, gpuInventory, error) {
	b, err := inspectGPUs(os.DirFS("/"), m, runSystem)
	if err == nil {
		b.keepVisible(os.Getenv("CUDA_VISIBLE_DEVICES"))
		if len(b.GPUs) == 0 {
			err = errors.New("there is no NVIDIA GPU that programs may use here: look at nvidia-smi and " +
				"CUDA_VISIBLE_DEVICES; --target cpu is about the CPU")
		}
	}
	if err != nil {
		return nil, b, err
	}
	for i, g := range b.GPUs {
		if g.MIG {
			a.notef("note: GPU %d is cut into instances (MIG); the file is of whole GPUs", i)
		}
	}
	c, err := clusterOfGPUs(m, b)
	return c, b, err
}

// filePath is a path that a job takes for a file and not for a name.
func filePath(name string) string {
	if costmodel.IsFile(name) {
		return name
	}
	return "./" + name
}

// writeNew writes a file that must not be there yet, and says what to do next.
func (a *app) writeNew(name, text, next string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return newFileError(name, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("%s cannot be written: %w", name, err), os.Remove(name))
	}
	a.notef("wrote    %s", filepath.ToSlash(name))
	a.notef("next     %s", next)
	return nil
}

// newFileError is why a file cannot be a new one.
func newFileError(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return inputErrorf(FileExists, "", "%s is there already, and nothing is overwritten; remove it, or choose "+
			"another name", name)
	}
	return fmt.Errorf("%s cannot be written: %w", name, errors.Unwrap(err))
}

// checkNewFile tells before long work what writeNew would say after it: the file is there, or its folder is not.
func checkNewFile(name string) error {
	if _, err := os.Lstat(name); err == nil {
		return newFileError(name, fs.ErrExist)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return newFileError(name, err)
	}
	return nil
}

// clusterFileOf is a machine's CPU as a cluster file; what was not measured is the catalogue's.
func clusterFileOf(m machine, r *rates) string {
	assumed, err := costmodel.Resolve(costmodel.Ref{Node: "cpu", Devices: 1}, nil, nil)
	if err != nil {
		panic("planc: the catalogue's cpu: " + err.Error())
	}
	name, memory, memorySource := m.CPU, float64(m.Memory)/gib, "the system's total, or the container's limit"
	if name == "" {
		name = "CPU"
	}
	if m.Memory == 0 {
		memory, memorySource = assumed.Node.Host.MemoryGiB, notMeasured
	}
	if r == nil {
		r = assumedRates()
	}
	memoryText := strconv.FormatFloat(memory, 'f', 1, 64)
	var b strings.Builder
	b.WriteString("# This machine's CPU. A device is a core, for one rank; more devices than cores share them.\n")
	if m.ISA != "" {
		fmt.Fprintf(&b, "# Its widest vectors are %s.\n", m.ISA)
	}
	fmt.Fprintf(&b, "gpu:\n  name: %s\n  arch: cpu\n  memory_gib: %s\n", strconv.Quote(name), memoryText)
	half := ""
	if r.Half > 0 {
		half = ", bf16: " + amount.Digits(r.Half, 3)
	}
	fmt.Fprintf(&b, "  memory_bandwidth: %v\n  peak_tflops: {f32: %s, f64: %s%s}\n", round(r.Memory),
		amount.Digits(r.Single, 3), amount.Digits(r.Double, 3), half)
	fmt.Fprintf(&b, "node:\n  devices: %d\n", m.Cores)
	fmt.Fprintf(&b, "  link: {kind: memory, bandwidth: %v, latency_us: %s}\n", round(r.Link),
		amount.Digits(r.LatencyUS, 2))
	fmt.Fprintf(&b, "  host: {memory_gib: %s, cores: %d, bandwidth: %v}\n", memoryText, m.Cores, round(r.Memory))
	b.WriteString("nodes: 1\nsource:\n")
	for _, s := range [][2]string{
		{"gpu.name", "the system"}, {"gpu.memory_gib", memorySource}, {"gpu.memory_bandwidth", r.By},
		{"gpu.peak_tflops", r.By},
		{"node.devices", "the cores that programs may use here"}, {"node.link", r.By}, {"node.host.memory_gib",
			memorySource},
		{"node.host.cores", "the cores that programs may use here"}, {"node.host.bandwidth", r.By},
	} {
		fmt.Fprintf(&b, "  %s: %q\n", s[0], s[1])
	}
	return b.String()
}

// assumedRates are those of the catalogue's cpu with a core to itself.
func assumedRates() *rates {
	file, err := costmodel.ClusterFile("cpu")
	if err != nil {
		panic("planc: the catalogue's cpu: " + err.Error())
	}
	c, err := costmodel.ParseCluster("cpu.yaml", file)
	if err != nil {
		panic("planc: the catalogue's cpu: " + err.Error())
	}
	return &rates{By: notMeasured, Single: c.GPU.PeakTFLOPS["f32"], Double: c.GPU.PeakTFLOPS["f64"],
		Memory: c.GPU.MemoryBandwidth,
		Link:   c.Node.Link.Bandwidth, LatencyUS: c.Node.Link.LatencyUS}
}

// notMeasured is the source of what detect takes from the catalogue.
const notMeasured = "not measured: assumed as of the catalogue's cpu"
