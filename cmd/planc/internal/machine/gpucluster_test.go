package machine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/planc-dev/planc/costmodel"
)

// smiBox is a recorded machine: nvidia-smi's answers, and the system's files.
func smiBox(t *testing.T, name string) (root fstest.MapFS, ask commandRunner) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "smi", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	root, answers := fstest.MapFS{}, map[string]string{}
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "sys/") {
			root[f.Name] = &fstest.MapFile{Data: f.Data}
		} else {
			answers[f.Name] = string(f.Data)
		}
	}
	return root, func(name string, args ...string) (string, error) {
		key := strings.Join(args, " ")
		if strings.HasPrefix(key, "--query-gpu=") {
			key = "query"
		}
		if out, ok := answers[key]; ok && name == "nvidia-smi" {
			return out, nil
		}
		return "", errors.New("exit status 1")
	}
}

// detectedBox is the cluster of a recorded machine, read again from its file.
func detectedBox(t *testing.T, root fstest.MapFS, ask commandRunner, gpus int) (*costmodel.Cluster, string) {
	t.Helper()
	m := Machine{Cores: 112, Memory: 2048 << 30, GPUs: make([]string, gpus)}
	b, err := InspectGPUs(root, m, ask)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ClusterOfGPUs(m, b)
	if err != nil {
		t.Fatal(err)
	}
	text := GPUClusterText(c, b.Driver)
	read, err := costmodel.ParseCluster("here.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return read, text
}

// A machine that the catalogue has is detected as the catalogue has it, but for its price and disks.
func TestDetectsDGX(t *testing.T) {
	root, ask := smiBox(t, "dgx-h100")
	got, text := detectedBox(t, root, ask, 8)
	want := clusterOfRow("dgx-h100")
	want.GPU.Name, want.Name = "H100 80GB HBM3", "here"
	if g := got.GPU; g.Name != want.GPU.Name || g.Arch != want.GPU.Arch ||
		g.MemoryBandwidth != want.GPU.MemoryBandwidth || g.Watts != 700 || g.PeakTFLOPS["fp8"] != 1979 ||
		g.MemoryGiB < 79.1 || g.MemoryGiB > 79.2 {
		t.Errorf("GPU %+v", g)
	}
	if got.Node.Link != want.Node.Link || !got.Node.SHARP || got.Node.Devices != 8 || got.Node.Host != want.Node.Host {
		t.Errorf("node %+v, want %+v", got.Node, want.Node)
	}
	if len(got.Network) != 1 || got.Network[0] != want.Network[0] {
		t.Errorf("network %+v, want %+v", got.Network, want.Network)
	}
	for _, line := range []string{"# This machine's GPUs, driver 550.54.15.",
		`node.link.bandwidth: "nvidia-smi nvlink -s, sum of each GPU's links"`,
		`gpu.peak_tflops: "catalogue: dgx-h100, which has this GPU"`} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// Every figure of a detected file has a source, whatever the machine; what differs from the catalogue is the machine's.
func TestDetectsOthers(t *testing.T) {
	for _, c := range []struct {
		name, arch, kind string
		gpus             int
		link, host       float64 // GB/s
		memory           float64
		source           string // of the peaks
		nics             int
	}{
		{"rtx-4090", "sm_89", "pcie", 2, 10, 25, 23.64, "catalogue: rtx-4090, which has this GPU", 1},
		{"a100-quad", "sm_80", "nvlink", 4, 300, 25, 39.59, "catalogue: dgx-a100-40g, which has this GPU", 0},
		{"h100-nvl", "sm_90a", "", 1, 0, 55, 93.04,
			"unknown GPU: assumed to be as in H100-SXM-96GB-500W, the nearest GPU of its generation (catalogue: " +
				"h100-96g)", 0},
	} {
		root, ask := smiBox(t, c.name)
		got, text := detectedBox(t, root, ask, c.gpus)
		l := got.Node.Link
		if got.GPU.Arch != c.arch || got.Node.Devices != c.gpus || l.Kind != c.kind ||
			float64(l.Bandwidth) != c.link*1e9 || float64(got.Node.Host.Bandwidth) != c.host*1e9 ||
			got.GPU.MemoryGiB != c.memory {
			t.Errorf("%s:\n%s", c.name, text)
		}
		if got.Source["gpu.peak_tflops"] != c.source {
			t.Errorf("%s: peaks are of %q", c.name, got.Source["gpu.peak_tflops"])
		}
		if nics := len(got.Network); nics != min(c.nics, 1) || nics > 0 && got.Network[0].NICs != c.nics {
			t.Errorf("%s: network %+v", c.name, got.Network)
		}
		for key := range got.Deciding() {
			parts := strings.Split(strings.TrimPrefix(key, "network.0."), ".")
			if key == "name" || key == "nodes" || key == "node.sharp" || parts[0] == "name" || parts[0] == "rails" {
				continue
			}
			sourced := slices.ContainsFunc(sourceOrder, func(s string) bool {
				return (strings.HasPrefix(key, s) || strings.HasPrefix(s, "network.") && strings.HasSuffix(key,
					strings.TrimPrefix(s, "network"))) && got.Source[s] != ""
			})
			if !sourced {
				t.Errorf("%s: %s has no source in\n%s", c.name, key, text)
			}
		}
	}
}

// The kind of link (switch, mesh, or bridges between some devices) is derived from NVLinks alone.
func TestLinked(t *testing.T) {
	row := func(words string) []string { return strings.Fields(words) }
	for _, c := range []struct {
		name  string
		sum   float64
		paths [][]string
		want  string
	}{
		{"switches", 450, [][]string{row("X NV18 NV18"), row("NV18 X NV18"), row("NV18 NV18 X")}, "nvswitch"},
		{"fewer links, as H800", 200, [][]string{row("X NV8 NV8"), row("NV8 X NV8"), row("NV8 NV8 X")}, "nvswitch"},
		{"switches, rates unknown", 0, [][]string{row("X NV12 NV12"), row("NV12 X NV12"), row("NV12 NV12 X")},
			"nvswitch"},
		{"mesh", 150, [][]string{row("X NV2 NV2 NV2"), row("NV2 X NV2 NV2"), row("NV2 NV2 X NV2"),
			row("NV2 NV2 NV2 X")}, "nvlink"},
		{"bridge of two", 300, [][]string{row("X NV12"), row("NV12 X")}, "nvlink"},
		{"bridges of pairs", 300, [][]string{row("X NV12 SYS SYS"), row("NV12 X SYS SYS"), row("SYS SYS X NV12"),
			row("SYS SYS NV12 X")}, "pcie"},
		{"unknown", 0, nil, ""},
	} {
		b := GPUInventory{GPUs: make([]GPU, len(c.paths)), Paths: c.paths, NVLink: c.sum}
		if got := b.linkKind(25); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// An nvidia-smi that does not know a field is asked without it; where there is none, the driver's files name the GPUs;
// and where nobody does, it is said what to do.
func TestLooksAtGPUs(t *testing.T) {
	asked := 0
	old := func(_ string, args ...string) (string, error) {
		asked++
		for _, field := range []string{"compute_cap", "memory.reserved"} {
			if strings.Contains(args[0], field) {
				return "Field \"" + field + "\" is not a valid field to query.\n\n", errors.New("exit status 2")
			}
		}
		return "Tesla V100-SXM2-16GB, 00000000:06:00.0, 16160, 300.00, 3, 16, [N/A], 470.182.03\n", nil
	}
	c, text := detectedBox(t, fstest.MapFS{}, old, 1)
	if asked != 3 || c.GPU.Arch != "sm_70" || c.GPU.MemoryGiB != 15.78 || c.Node.Host.Bandwidth != 12*costmodel.GBs {
		t.Errorf("asked %d times:\n%s", asked, text)
	}
	none := func(string, ...string) (string, error) { return "", errors.New("not found") }
	files := fstest.MapFS{"proc/driver/nvidia/gpus/0000:01:00.0/information": {
		Data: []byte("Model: \t\t NVIDIA H200\nIRQ:   \t\t 24\n")}}
	c, text = detectedBox(t, files, none, 1)
	if c.GPU.MemoryGiB != 139.8 || !strings.Contains(text, `gpu.name: "/proc/driver/nvidia"`) {
		t.Error(text)
	}
	m := Machine{GPUs: make([]string, 2)}
	if _, err := InspectGPUs(fstest.MapFS{}, m, none); err == nil ||
		!strings.Contains(err.Error(), "there are 2 NVIDIA GPUs, but neither nvidia-smi (not found) nor "+
			"/proc/driver/nvidia describes them") {
		t.Errorf("%v", err)
	}
	mixed := GPUInventory{GPUs: []GPU{{Name: "NVIDIA L4"}, {Name: "Tesla T4"}}}
	if _, err := ClusterOfGPUs(m, mixed); err == nil ||
		!strings.Contains(err.Error(), "GPU 0 is NVIDIA L4 and GPU 1 is Tesla T4") {
		t.Errorf("%v", err)
	}
	if _, err := ClusterOfGPUs(m, GPUInventory{GPUs: []GPU{{Name: "Tesla K80", Capability: "3.7"}}}); err == nil ||
		!strings.Contains(err.Error(), "no GPU like Tesla K80") {
		t.Errorf("%v", err)
	}
	mixed.KeepVisible("1")
	if len(mixed.GPUs) != 1 || mixed.GPUs[0].Name != "Tesla T4" {
		t.Errorf("of GPU 1 alone: %+v", mixed.GPUs)
	}
}

// The driver's names lead to rows that are there, the narrower before the wider.
func TestKnownGPUs(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "dgx-h100", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA H100 NVL": "",
		"NVIDIA H200": "dgx-h200", "NVIDIA H200 NVL": "", "NVIDIA GH200 480GB": "gh200",
		"NVIDIA A100-SXM4-80GB": "dgx-a100-80g", "NVIDIA A100-SXM4-40GB": "dgx-a100-40g",
		"NVIDIA A100 80GB PCIe": "a100-pcie", "NVIDIA A100-PCIE-40GB": "", "NVIDIA A800-SXM4-80GB": "dgx-a800",
		"Tesla V100-SXM2-16GB": "v100-16g", "Tesla V100-SXM3-32GB": "dgx-2", "Tesla V100-PCIE-16GB": "",
		"NVIDIA GB200": "gb200-nvl72", "NVIDIA B200": "dgx-b200", "NVIDIA A10G": "", "NVIDIA A10": "a10",
		"NVIDIA L4": "l4", "NVIDIA L40S": "l40s", "NVIDIA L40": "", "NVIDIA RTX A6000": "a6000",
		"NVIDIA GeForce RTX 4090": "rtx-4090", "Tesla T4": "t4", "NVIDIA GeForce RTX 3060": "",
	} {
		if got := knownRow(name); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	for _, k := range knownGPUs {
		if _, err := os.Stat(filepath.Join("..", "..", "..", "..", "costmodel",
			"catalogue", k.row+".yaml")); k.row != "" &&
			err != nil {
			t.Error(err)
		}
	}
}
