package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gpuInventory is a machine's NVIDIA GPUs, as nvidia-smi, which asks NVML, or else the system's files describe them.
// What nobody says is zero.
type gpuInventory struct {
	By     string // who said it
	Driver string
	GPUs   []smiGPU
	Paths  [][]string // between GPUs i and j, as nvidia-smi topo -m writes it: NV18, PIX, NODE, SYS
	Direct bool       // each GPU reads the memory of each other
	NVLink float64    // GB/s of a GPU's links together, one direction; 0 unless all GPUs say alike
	NICs   nics
}

// smiGPU is one GPU.
type smiGPU struct {
	Name, Bus, Capability  string
	MemoryMiB, ReservedMiB float64 // all, and what the driver keeps for itself
	Watts                  float64 // its limit
	Gen, Width             int     // of its PCIe connection, at best
	MIG                    bool    // is cut into instances
}

// smiField is a field of nvidia-smi's; one without read is of the driver, not of a GPU.
type smiField struct {
	name string
	read func(g *smiGPU, text string)
}

// smiFields are what nvidia-smi is asked for; one that does not know a field is asked without it.
var smiFields = []smiField{
	{"name", func(g *smiGPU, s string) { g.Name = s }},
	{"pci.bus_id", func(g *smiGPU, s string) { g.Bus = strings.ToLower(s) }},
	{"compute_cap", func(g *smiGPU, s string) { g.Capability = s }},
	{"memory.total", func(g *smiGPU, s string) { g.MemoryMiB = decimal(s) }},
	{"memory.reserved", func(g *smiGPU, s string) { g.ReservedMiB = decimal(s) }},
	{"power.limit", func(g *smiGPU, s string) { g.Watts = decimal(s) }},
	{"pcie.link.gen.max", func(g *smiGPU, s string) { g.Gen = int(decimal(s)) }},
	{"pcie.link.width.max", func(g *smiGPU, s string) { g.Width = int(decimal(s)) }},
	{"mig.mode.current", func(g *smiGPU, s string) { g.MIG = s == "Enabled" }},
	{"driver_version", nil},
}

// decimal reads a number, 0 where nvidia-smi has none: [N/A], [Not Supported].
func decimal(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

// commandRunner runs a command and returns what it prints, on both outputs where it fails.
type commandRunner func(name string, args ...string) (string, error)

// smiPatience is how long nvidia-smi may take: it wakes the driver, which takes seconds a GPU where nothing keeps it
// awake.
const smiPatience = 60 * time.Second

// runSystem is an asker.
func runSystem(name string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), smiPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "LC_ALL=C"), time.Second
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	return string(out), err
}

// inspectGPUs describes the machine's GPUs. It fails where there are some that nobody describes.
func inspectGPUs(root fs.FS, m machine, ask commandRunner) (b gpuInventory, err error) {
	b.Driver = m.Driver
	if why := b.querySMI(ask); why != nil {
		b.readDriverFiles(root)
		if len(b.GPUs) == 0 && len(m.GPUs) > 0 {
			return b, fmt.Errorf("there %s, and neither nvidia-smi (%w) nor /proc/driver/nvidia says which: put "+
				"nvidia-smi, which comes with the driver, on PATH",
				isOrAre(len(m.GPUs), "NVIDIA GPU"), why)
		}
	}
	b.NICs = findNICs(root)
	return b, nil
}

// isOrAre is "is 1 GPU", "are 2 GPUs".
func isOrAre(n int, word string) string {
	if n == 1 {
		return "is 1 " + word
	}
	return fmt.Sprintf("are %d %ss", n, word)
}

// querySMI asks nvidia-smi; the error is that it is not there, or does not say.
func (b *gpuInventory) querySMI(ask commandRunner) error {
	for fields := slices.Clone(smiFields); len(fields) > 0; {
		var names []string
		for _, f := range fields {
			names = append(names, f.name)
		}
		out, err := ask("nvidia-smi", "--query-gpu="+strings.Join(names, ","), "--format=csv,noheader,nounits")
		if err == nil {
			return b.parseSMI(fields, out, ask)
		}
		known := len(fields)
		fields = slices.DeleteFunc(fields, func(f smiField) bool { return strings.Contains(out, `"`+f.name+`"`) })
		if len(fields) == known {
			if said := strings.TrimSpace(firstLine(out)); said != "" {
				err = fmt.Errorf("%w: %s", err, said)
			}
			return err
		}
	}
	return errors.New("nvidia-smi knows none of the fields that it is asked for")
}

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// parseSMI reads a line a GPU, and asks how they are connected. Names of GPUs have no commas.
func (b *gpuInventory) parseSMI(fields []smiField, out string, ask commandRunner) error {
	for line := range strings.Lines(strings.TrimSpace(out)) {
		values := strings.Split(strings.TrimSpace(line), ",")
		if len(values) != len(fields) {
			return fmt.Errorf("nvidia-smi says %q, where %d values are wanted", strings.TrimSpace(line), len(fields))
		}
		var g smiGPU
		for i, f := range fields {
			if value := strings.TrimSpace(values[i]); f.read != nil {
				f.read(&g, value)
			} else {
				b.Driver = value
			}
		}
		b.GPUs = append(b.GPUs, g)
	}
	if len(b.GPUs) == 0 {
		return errors.New("nvidia-smi lists no GPU")
	}
	b.By = "nvidia-smi"
	b.queryTopology(ask)
	return nil
}

// readDriverFiles reads what the driver's files say where there is no nvidia-smi: the names, and no figures.
func (b *gpuInventory) readDriverFiles(root fs.FS) {
	found, _ := fs.Glob(root, "proc/driver/nvidia/gpus/*/information") // a good pattern
	for _, file := range found {
		info := readKeyValues(root, file)
		if info["Model"] != "" {
			b.GPUs = append(b.GPUs, smiGPU{Name: info["Model"], Bus: path.Base(path.Dir(file))})
		}
	}
	b.By = "/proc/driver/nvidia"
}

// keepVisible leaves the GPUs that CUDA_VISIBLE_DEVICES lets programs use, where it names them by number; all where it
// says nothing.
func (b *gpuInventory) keepVisible(text string) {
	if text == "" {
		return
	}
	var gpus []smiGPU
	var paths [][]string
	kept := []int{}
	for word := range strings.SplitSeq(text, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return // by UUID, which programs resolve
		}
		if i < 0 || i >= len(b.GPUs) {
			break // as the driver reads it
		}
		kept = append(kept, i)
	}
	for _, i := range kept {
		gpus = append(gpus, b.GPUs[i])
		var row []string
		for _, j := range kept {
			if i < len(b.Paths) && j < len(b.Paths[i]) {
				row = append(row, b.Paths[i][j])
			}
		}
		paths = append(paths, row)
	}
	b.GPUs, b.Paths = gpus, paths
}
