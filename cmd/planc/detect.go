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

// FileExists is reported for a file that a command would write, but that exists already.
//
// Example:
//
//	planc init ../../examples/opticks
const FileExists ir.Code = "FileExists"

func (a *app) detectCommand() *cobra.Command {
	var out, target string
	c := &cobra.Command{
		Use:   "detect [-o FILE]",
		Short: "write a cluster file for this machine",
		Long: `detect prints a cluster file for this machine: its NVIDIA GPUs, how they are connected and its network ports,
as nvidia-smi and the system report them, with rates from the catalogue. Without a GPU, or with --target cpu, it
describes the CPU. The source of each figure says what is assumed. Nothing is measured; planc calibrate does that. The
bf16 rate of a CPU is not assumed, because it is below the f32 rate on some CPUs and several times that rate on
others: until it is measured, bf16 matmuls are priced like f32 matmuls.`,
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
	c.Flags().StringVarP(&out, "output", "o", "", "write to the new `FILE` (default: standard output)")
	c.Flags().StringVar(&target, "target", "", "`PLATFORM` to describe: cpu or cuda (default: cuda if there are GPUs)")
	return c
}

// onGPUs reports whether a command is about this machine's GPUs: by --target, or by default if there are any.
func onGPUs(target string, m machine) (bool, error) {
	if target == "" {
		return len(m.GPUs) > 0, nil
	}
	on, err := targetNamed(target)
	return on == codegen.GPU, err
}

// describeMachine returns the cluster file of this machine's GPUs or of its CPU, by the target.
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

// describeGPUs returns this machine's GPUs as a cluster, and their inventory.
func (a *app) describeGPUs(m machine) (*costmodel.Cluster, gpuInventory, error) {
	b, err := inspectGPUs(os.DirFS("/"), m, runSystem)
	if err == nil {
		b.keepVisible(os.Getenv("CUDA_VISIBLE_DEVICES"))
		if len(b.GPUs) == 0 {
			err = errors.New("no NVIDIA GPU is available to programs here: check nvidia-smi and " +
				"CUDA_VISIBLE_DEVICES, or use --target cpu for the CPU")
		}
	}
	if err != nil {
		return nil, b, err
	}
	for i, g := range b.GPUs {
		if g.MIG {
			a.notef("note: GPU %d is divided into MIG instances; the file describes whole GPUs", i)
		}
	}
	c, err := clusterOfGPUs(m, b)
	return c, b, err
}

// filePath returns a path in a form that a job reads as a file and not as a catalogue name.
func filePath(name string) string {
	if costmodel.IsFile(name) {
		return name
	}
	return "./" + name
}

// writeNew writes a new file and prints the next command. It does not overwrite an existing file.
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

// newFileError returns the error of creating a new file.
func newFileError(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return inputErrorf(FileExists, "", "%s exists already and is not overwritten; remove it, or choose another "+
			"name", name)
	}
	return fmt.Errorf("%s cannot be written: %w", name, errors.Unwrap(err))
}

// checkNewFile checks before long work that writeNew can create the file: it does not exist, but its folder does.
func checkNewFile(name string) error {
	if _, err := os.Lstat(name); err == nil {
		return newFileError(name, fs.ErrExist)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return newFileError(name, err)
	}
	return nil
}

// clusterFileOf returns the cluster file of a machine's CPU. If rates are not given, they are the catalogue's.
func clusterFileOf(m machine, r *rates) string {
	assumed, err := costmodel.Resolve(costmodel.Ref{Node: "cpu", Devices: 1}, nil, nil)
	if err != nil {
		panic("planc: the catalogue's cpu: " + err.Error())
	}
	name, memory, memorySource := m.CPU, float64(m.Memory)/(1<<30), "total memory, or the container's limit"
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
	b.WriteString("# This machine's CPU. A device is one core and runs one rank; more devices than cores share the " +
		"cores.\n")
	if m.ISA != "" {
		fmt.Fprintf(&b, "# Widest vector instructions: %s.\n", m.ISA)
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
		{"node.devices", "available cores"}, {"node.link", r.By}, {"node.host.memory_gib",
			memorySource},
		{"node.host.cores", "available cores"}, {"node.host.bandwidth", r.By},
	} {
		fmt.Fprintf(&b, "  %s: %q\n", s[0], s[1])
	}
	return b.String()
}

// assumedRates returns the rates of the catalogue's cpu, for a rank that has a core to itself.
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

// notMeasured is the source of figures that detect takes from the catalogue.
const notMeasured = "not measured: assumed to be as in the catalogue's cpu"
