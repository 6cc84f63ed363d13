package machine

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

// GPUInventory describes a machine's NVIDIA GPUs, as reported by nvidia-smi (which uses NVML) or by the system's files.
// Unknown values are zero.
type GPUInventory struct {
	By     string // source: "nvidia-smi" or the system's files
	Driver string // version
	GPUs   []GPU
	Paths  [][]string // connection of GPUs i and j, as nvidia-smi topo -m prints it: NV18, PIX, NODE, SYS
	Direct bool       // all pairs of GPUs have peer access
	NVLink float64    // GB/s, sum of one GPU's links in one direction; 0 unless it is equal for all GPUs
	NICs   nics
}

// GPU is one GPU.
type GPU struct {
	Name, Bus, Capability  string
	MemoryMiB, ReservedMiB float64 // total, and the driver's reserve
	Watts                  float64 // power limit
	Gen, Width             int     // maximal PCIe generation and number of lanes
	MIG                    bool    // the GPU is divided into MIG instances
}

// smiField is a field that nvidia-smi reports. A field without read describes the driver, not a GPU.
type smiField struct {
	name string
	read func(g *GPU, text string)
}

// smiFields lists the fields to query. Fields that an old nvidia-smi does not know are left out of the query.
var smiFields = []smiField{
	{"name", func(g *GPU, s string) { g.Name = s }},
	{"pci.bus_id", func(g *GPU, s string) { g.Bus = strings.ToLower(s) }},
	{"compute_cap", func(g *GPU, s string) { g.Capability = s }},
	{"memory.total", func(g *GPU, s string) { g.MemoryMiB = decimal(s) }},
	{"memory.reserved", func(g *GPU, s string) { g.ReservedMiB = decimal(s) }},
	{"power.limit", func(g *GPU, s string) { g.Watts = decimal(s) }},
	{"pcie.link.gen.max", func(g *GPU, s string) { g.Gen = int(decimal(s)) }},
	{"pcie.link.width.max", func(g *GPU, s string) { g.Width = int(decimal(s)) }},
	{"mig.mode.current", func(g *GPU, s string) { g.MIG = s == "Enabled" }},
	{"driver_version", nil},
}

// decimal parses a number. It returns 0 if nvidia-smi reports none: [N/A], [Not Supported].
func decimal(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

// commandRunner runs a command and returns its standard output, and also its standard error if it fails.
type commandRunner func(name string, args ...string) (string, error)

// smiTimeout limits nvidia-smi. Without persistence mode it loads the driver, which takes seconds per GPU.
const smiTimeout = 60 * time.Second

// RunSystem is the commandRunner of the real system.
func RunSystem(name string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), smiTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "LC_ALL=C"), time.Second
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	return string(out), err
}

// InspectGPUs returns an inventory of the machine's GPUs. It fails if there are GPUs but neither nvidia-smi nor the
// system's files describe them.
func InspectGPUs(root fs.FS, m Machine, ask commandRunner) (b GPUInventory, err error) {
	b.Driver = m.Driver
	if why := b.querySMI(ask); why != nil {
		b.readDriverFiles(root)
		if len(b.GPUs) == 0 && len(m.GPUs) > 0 {
			return b, fmt.Errorf("there %s, but neither nvidia-smi (%w) nor /proc/driver/nvidia describes them: put "+
				"nvidia-smi, which comes with the driver, on PATH",
				isOrAre(len(m.GPUs), "NVIDIA GPU"), why)
		}
	}
	b.NICs = findNICs(root)
	return b, nil
}

// isOrAre returns "is 1 GPU", "are 2 GPUs" and so on.
func isOrAre(n int, word string) string {
	if n == 1 {
		return "is 1 " + word
	}
	return fmt.Sprintf("are %d %ss", n, word)
}

// querySMI fills the inventory from nvidia-smi. It fails if nvidia-smi is missing or reports no GPUs.
func (b *GPUInventory) querySMI(ask commandRunner) error {
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
			if message := strings.TrimSpace(firstLine(out)); message != "" {
				err = fmt.Errorf("%w: %s", err, message)
			}
			return err
		}
	}
	return errors.New("nvidia-smi knows none of the queried fields")
}

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// parseSMI parses the output of a query, one line per GPU, and queries the topology. Names of GPUs contain no commas.
func (b *GPUInventory) parseSMI(fields []smiField, out string, ask commandRunner) error {
	for line := range strings.Lines(strings.TrimSpace(out)) {
		values := strings.Split(strings.TrimSpace(line), ",")
		if len(values) != len(fields) {
			return fmt.Errorf("nvidia-smi printed %q instead of %d values", strings.TrimSpace(line), len(fields))
		}
		var g GPU
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

// readDriverFiles fills the inventory from the driver's files, which contain only the names of the GPUs.
func (b *GPUInventory) readDriverFiles(root fs.FS) {
	found, _ := fs.Glob(root, "proc/driver/nvidia/gpus/*/information") // the pattern is valid
	for _, file := range found {
		info := readKeyValues(root, file)
		if info["Model"] != "" {
			b.GPUs = append(b.GPUs, GPU{Name: info["Model"], Bus: path.Base(path.Dir(file))})
		}
	}
	b.By = "/proc/driver/nvidia"
}

// KeepVisible removes the GPUs that CUDA_VISIBLE_DEVICES hides from programs. It keeps all if the variable is empty or
// names GPUs by UUID.
func (b *GPUInventory) KeepVisible(text string) {
	if text == "" {
		return
	}
	var gpus []GPU
	var paths [][]string
	indices := []int{}
	for word := range strings.SplitSeq(text, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return // a UUID
		}
		if i < 0 || i >= len(b.GPUs) {
			break // the driver ignores the rest of the list too
		}
		indices = append(indices, i)
	}
	for _, i := range indices {
		gpus = append(gpus, b.GPUs[i])
		var row []string
		for _, j := range indices {
			if i < len(b.Paths) && j < len(b.Paths[i]) {
				row = append(row, b.Paths[i][j])
			}
		}
		paths = append(paths, row)
	}
	b.GPUs, b.Paths = gpus, paths
}
