package costmodel

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

func TestParseBandwidth(t *testing.T) {
	for in, want := range map[string]BytesPerSecond{
		"450GB/s": 450e9, "400Gb/s": 50e9, " 12.5 GB/s": 12.5e9, "100Mb/s": 12.5e6, "1.6Tb/s": 200e9, "64kB/s": 64e3,
	} {
		if got, err := ParseBandwidth(in); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", in, float64(got), err, float64(want))
		}
	}
	for in, want := range map[string]string{
		"450":     "450 has no unit: use 450GB/s for bytes, or 450Gb/s for bits (56.25GB/s)",
		"fast":    `"fast" is not a bandwidth; use a form such as 450GB/s (bytes) or 400Gb/s (bits)`,
		"450GBps": `"450GBps" is not a bandwidth; use a form such as 450GB/s (bytes) or 400Gb/s (bits)`,
		"-1GB/s":  `"-1GB/s" must be a positive bandwidth`,
		"NaNGB/s": `"NaNGB/s" must be a positive bandwidth`,
	} {
		if _, err := ParseBandwidth(in); err == nil || err.Error() != want {
			t.Errorf("%q: %v; want %s", in, err, want)
		}
	}
}

func TestUnitsPrint(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{(71.4 * GiB).String(), "71.4 GiB"}, {Bytes(0).String(), "0 B"}, {Bytes(1536).String(), "1.5 KiB"},
		{Seconds(12.2).String(), "12.2 s"}, {Seconds(0.0021).String(), "2.1 ms"}, {Seconds(2e-6).String(), "2 µs"},
		{(450 * GBs).String(), "450GB/s"}, {(989 * TFLOPs).String(), "989 TFLOP/s"}, {FlopsPerSecond(5e9).String(),
			"5 GFLOP/s"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestCatalogueIsSound(t *testing.T) {
	for _, name := range ClusterNames() {
		c, err := Resolve(Ref{Node: name}, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Name != name || c.Devices() < 1 {
			t.Errorf("%s resolves to %s with %d devices", name, c.Name, c.Devices())
		}
		data, err := ClusterFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := strict.Parse(name, data)
		for _, leaf := range figures(d.Root, "") {
			if !sourced(leaf, c.Source) {
				t.Errorf("%s: %s has no source", name, leaf)
			}
		}
	}
}

// A row of a GPU says all that a plan may ask for: so any number of nodes works, and so does energy.
func TestCatalogueIsWhole(t *testing.T) {
	for _, name := range ClusterNames() {
		if name == "cpu" {
			continue
		}
		c, err := Resolve(Ref{Node: name, Nodes: 1000}, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := c.Network[0]
		if n.LatencyUS == 0 || n.Bandwidth == 0 || n.NICs == 0 || c.GPU.Watts == 0 || c.Node.Host.Bandwidth == 0 ||
			c.Node.Host.MemoryGiB == 0 || c.Node.Host.Cores == 0 {
			t.Errorf("%s is not whole: %+v", name, c)
		}
		if c.Node.Devices > 1 && (c.Node.Link.LatencyUS == 0 || NCCL.link(c).Kind != c.Node.Link.Kind) {
			t.Errorf("%s: the communication model knows no link like %+v", name, c.Node.Link)
		}
	}
}

// figures are the dotted names of the numbers of a cluster file that somebody must have found out.
func figures(n *strict.Node, path string) []string {
	var out []string
	for _, f := range n.Fields {
		if p := strings.TrimPrefix(path+"."+f.Key, "."); p != "source" && p != "nodes" {
			out = append(out, figures(f.Value, p)...)
		}
	}
	for _, item := range n.Items {
		out = append(out, figures(item, path)...)
	}
	if n.Kind == strict.Int || n.Kind == strict.Float || strings.HasSuffix(n.Text, "/s") {
		out = append(out, path)
	}
	return out
}

func sourced(leaf string, source map[string]string) bool {
	for ; leaf != ""; leaf = leaf[:max(0, strings.LastIndexByte(leaf, '.'))] {
		if source[leaf] != "" {
			return true
		}
	}
	return false
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		ref            Ref
		name           string
		nodes, devices int // of a node
	}{
		{Ref{Node: "dgx-h100"}, "dgx-h100", 1, 8},
		{Ref{Node: "dgx-a100", Nodes: 4}, "dgx-a100-80g", 4, 8},
		{Ref{Node: "dgx-h100", Count: 4}, "dgx-h100", 4, 8},
		{Ref{Node: "h100", Count: 64}, "dgx-h100", 8, 8},
		{Ref{Node: "h100", Count: 4}, "dgx-h100", 1, 4},
		{Ref{Node: "cpu", Count: 4}, "cpu", 1, 4},
		{Ref{Node: "cpu", Devices: 4}, "cpu", 1, 4},
		{Ref{Node: "dgx-h100", Devices: 2, Nodes: 3}, "dgx-h100", 3, 2},
		{Ref{Node: "my/lab.yaml"}, "lab", 2, 4},
	} {
		got, err := Resolve(c.ref, nil, lab)
		if err != nil {
			t.Errorf("%+v: %v", c.ref, err)
			continue
		}
		if got.Name != c.name || got.Nodes != c.nodes || got.Node.Devices != c.devices {
			t.Errorf("%+v: %d × %s of %d devices", c.ref, got.Nodes, got.Name, got.Node.Devices)
		}
	}
}

const labFile = `
gpu: {name: H100, arch: sm_90a, memory_gib: 79.1, memory_bandwidth: 3350GB/s, peak_tflops: {bf16: 989}}
node: {devices: 4, link: {kind: nvswitch, bandwidth: 450GB/s, latency_us: 2}}
nodes: 2
network: [{name: rail, nodes: 32, nics: 8, bandwidth: 400Gb/s, latency_us: 5, rails: true},
          {name: spine, oversubscription: 2.0, latency_us: 8}]
`

func lab(string) ([]byte, error) { return []byte(labFile), nil }

// A file may say only what differs from a row of the catalogue: figures of mappings one by one, lists as a whole.
func TestBase(t *testing.T) {
	read := func(string) ([]byte, error) {
		return []byte("base: h100\ngpu: {watts: 500, peak_tflops: {bf16: 900}}\nnode: {link: {bandwidth: " +
			"400GB/s}}\nnetwork: [{name: net, nics: 2, bandwidth: 200Gb/s}]\n"), nil
	}
	got, err := Resolve(Ref{Node: "ours.yaml", Nodes: 3}, nil, read)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Resolve(Ref{Node: "dgx-h100", Nodes: 3}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want.Name, want.Base, want.GPU.Watts, want.GPU.PeakTFLOPS["bf16"], want.Node.Link.Bandwidth = "ours", "h100",
		500, 900, 400e9
	want.Network = []Tier{{Name: "net", Nodes: 3, NICs: 2, Bandwidth: 25e9, Oversubscription: 1}}
	for _, own := range []string{"gpu.watts", "node.link.bandwidth", "network.nics", "network.bandwidth",
		"network.latency_us"} {
		if want.Source[own] == "" {
			t.Errorf("%s has no source to lose", own)
		}
		delete(want.Source, own)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The whole file needs no base and means the same.
func TestWholeFile(t *testing.T) {
	data := []byte("base: h100\ngpu: {watts: 500}\nnetwork: [{name: net, nics: 2, bandwidth: 200Gb/s}]\n")
	whole, err := WholeFile("ours.yaml", data)
	if err != nil || strings.Contains(string(whole), "base:") ||
		!strings.Contains(string(whole), "memory_bandwidth: 3350GB/s") {
		t.Fatalf("%v:\n%s", err, whole)
	}
	a, err := ParseCluster("ours.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseCluster("ours.yaml", whole)
	a.Base = ""
	if err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%v\nof its base %+v\nwhole       %+v", err, a, b)
	}
	if same, err := WholeFile("lab.yaml", []byte(labFile)); err != nil || string(same) != labFile {
		t.Errorf("%v: a file without a base became\n%s", err, same)
	}
	if _, err := WholeFile("x.yaml", []byte("base: h1000\n")); err == nil {
		t.Error("a base that is not there is none")
	}
}

func TestTiersInherit(t *testing.T) {
	c, err := Resolve(Ref{Node: "lab.yaml"}, nil, lab)
	if err != nil {
		t.Fatal(err)
	}
	want := []Tier{
		{Name: "rail", Nodes: 32, NICs: 8, Bandwidth: 50e9, LatencyUS: 5, Rails: true, Oversubscription: 1},
		{Name: "spine", Nodes: 2, NICs: 8, Bandwidth: 50e9, LatencyUS: 8, Oversubscription: 2},
	}
	if !reflect.DeepEqual(c.Network, want) {
		t.Errorf("network is %+v", c.Network)
	}
}

func TestCPUDevicesShareTheCores(t *testing.T) {
	two, err := Resolve(Ref{Node: "cpu", Count: 2}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	four, err := Resolve(Ref{Node: "cpu", Count: 4}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := two.GPU.Peak("f32")
	b, _ := four.GPU.Peak("f32")
	if 2*a != 4*b {
		t.Errorf("2 devices do %v each and 4 do %v: the sums differ", a, b)
	}
}

func TestWrongClusters(t *testing.T) {
	at := func(f string) ir.Pos { return ir.Pos{File: "job.yaml", Line: 1, Column: len(f)} }
	for _, c := range []struct {
		ref  Ref
		want string
	}{
		{Ref{Node: "dgx-h10"}, "job.yaml:1:4: the catalogue has no cluster dgx-h10, and it is not the path " +
			"of a file; did you mean dgx-h100? [UnknownCluster]"},
		{Ref{Node: "h100", Count: 12}, "job.yaml:1:4: 12 devices are not a whole number of nodes: dgx-h100 has 8 " +
			"devices per node; use 8 or 16 devices [BadCluster]"},
		{Ref{Node: "dgx-h100", Devices: 9}, "job.yaml:1:7: a node of dgx-h100 has 8 devices, not 9 [BadCluster]"},
		{Ref{Node: "cpu", Nodes: 2}, "job.yaml:1:5: cpu has no network, so it can have only one node, not 2 " +
			"[BadCluster]"},
	} {
		if _, err := Resolve(c.ref, at, nil); err == nil || err.Error() != c.want {
			t.Errorf("%+v:\n got %v\nwant %s", c.ref, err, c.want)
		}
	}
}

func TestWrongClusterFiles(t *testing.T) {
	for in, want := range map[string]string{
		"gpu: {name: X, arch: sm_80, memory_gib: 40, memory_bandwidth: 1555, peak_tflops: {bf1: 312}}\nnodes: 0": "" +
			"c.yaml:1:63: gpu.memory_bandwidth: 1555 has no unit: use 1555GB/s for bytes, or 1555Gb/s for bits " +
			"(194.4GB/s) " +
			"[NoUnit]\n" +
			"c.yaml:1:83: no key bf1 in gpu.peak_tflops; did you mean bf16? [UnknownKey]\n" +
			"c.yaml:2:8: nodes is 0; it must be at least 1 [OutOfRange]",
		"node: {devices: 8}": "" +
			"c.yaml:1:1: gpu.name is missing; an example is H100-SXM-80GB [Missing]\n" +
			"c.yaml:1:1: gpu.arch is missing; an example is sm_90a [Missing]\n" +
			"c.yaml:1:1: gpu.memory_gib is missing; an example is 79.1 [Missing]\n" +
			"c.yaml:1:1: gpu.memory_bandwidth is missing; an example is 3350GB/s [Missing]\n" +
			"c.yaml:1:1: gpu.peak_tflops is missing; an example is {bf16: 989, f32: 67} [Missing]\n" +
			"c.yaml:1:1: node.link.kind is missing; an example is nvswitch [Missing]\n" +
			"c.yaml:1:1: node.link.bandwidth is missing; an example is 450GB/s [Missing]",
		"": "c.yaml:1:1: the file is empty [Empty]",
		"base: dgx-h10": "c.yaml:1:7: the catalogue has no cluster dgx-h10, and it is not " +
			"the path of a file; did you mean dgx-h100? [UnknownCluster]",
		"base: dgx-h100\nnode: {lnk: 4}": "c.yaml:2:8: no key lnk in node; did you mean link? [UnknownKey]",
	} {
		if _, err := ParseCluster("c.yaml", []byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", in, err, want)
		}
	}
}

func FuzzParseCluster(f *testing.F) {
	f.Add(labFile)
	f.Add("gpu: {peak_tflops: {f32: 1e400}}")
	f.Add("base: b200\nnode: 7")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Resolve(Ref{Node: "lab.yaml", Nodes: 2}, nil, func(string) ([]byte, error) {
			return []byte(text), nil
		})
		if (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
	})
}

func TestCatalogueHasTheContractsRows(t *testing.T) {
	for _, name := range strings.Fields(
		`v100-16g v100-32g dgx-a100-40g dgx-a100-80g dgx-a100 dgx-h100 dgx-h200 dgx-h800 dgx-b200 gb200-nvl72
		p4d p4de p5 a3-high a3-mega nd-h100 l40s rtx-3090 rtx-4090 t4 cpu`) {
		if _, err := ClusterFile(name); err != nil {
			t.Error(err)
		}
	}
}

// A file of the catalogue is a screen too, of planc clusters NAME: each line fits 80 columns.
func TestCatalogueFits(t *testing.T) {
	files, err := filepath.Glob("catalogue/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s:%d: %d columns", file, i+1, n)
			}
		}
	}
}
