package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// The values of init's job are of fields that there are.
func TestInitValues(t *testing.T) {
	fields := spec.Fields()
	for path := range initValues {
		if !slices.ContainsFunc(fields, func(f spec.Field) bool { return f.Path == path }) {
			t.Errorf("no field %s", path)
		}
	}
}

// A line that is switched on by taking its "# " away is a field that the job takes, or one that is refused as not
// there yet, or as one of two that exclude each other.
func TestInitLinesCanBeSwitchedOn(t *testing.T) {
	lines := strings.Split(initFile(), "\n")
	for _, f := range spec.Fields() {
		if _, on := initValues[f.Path]; on || f.Group || strings.HasPrefix(f.Path, "train.precision.") {
			continue
		}
		at := slices.IndexFunc(lines, func(l string) bool { return lineOf(l, f.Path) })
		if at < 0 {
			t.Errorf("no line of %s", f.Path)
			continue
		}
		text := slices.Clone(lines)
		text[at] = strings.TrimPrefix(text[at], "# ")
		for depth, name := range strings.Split(f.Path, ".")[:strings.Count(f.Path, ".")] { // the mappings that it is in
			for i := range at {
				if strings.HasPrefix(text[i], "# "+strings.Repeat("  ", depth)+name+":") {
					text[i] = strings.TrimPrefix(text[i], "# ")
				}
			}
		}
		_, err := spec.Load("planc.yaml", func(string) ([]byte, error) { return []byte(strings.Join(text, "\n")), nil })
		var diags ir.Diags
		if err != nil && !errors.As(err, &diags) {
			t.Errorf("%s: %v", f.Path, err)
		}
		for _, d := range diags {
			if d.Code != strict.NotYet && d.Code != spec.Conflict {
				t.Errorf("%s: %v", text[at], d)
			}
		}
	}
}

// lineOf says whether a line of the file is a field's, with a value.
func lineOf(line, path string) bool {
	keys := strings.Split(path, ".")
	value, ok := strings.CutPrefix(line, "# "+strings.Repeat("  ", len(keys)-1)+keys[len(keys)-1]+": ")
	return ok && !strings.HasPrefix(strings.TrimSpace(value), "#")
}

// Each file of the catalogue that clusters prints reads back as the cluster that its name is.
func TestPrintedClustersReadBack(t *testing.T) {
	for _, name := range costmodel.ClusterNames() {
		code, out, errs := call("clusters", name)
		if code != 0 || errs != "" {
			t.Errorf("clusters %s: %d %s", name, code, errs)
		}
		file, err := costmodel.Resolve(costmodel.Ref{Node: "./" + name + ".yaml"}, nil, func(string) ([]byte, error) {
			return []byte(out), nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		row, err := costmodel.Resolve(costmodel.Ref{Node: name}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprintf("%+v", file), fmt.Sprintf("%+v", row); a != b {
			t.Errorf("%s is\n%s\nand its file is\n%s", name, b, a)
		}
		if len(file.Source) == 0 {
			t.Errorf("%s has no sources", name)
		}
	}
}

// A name written the wrong way round is corrected alike by clusters and by a plan's flag.
func TestTurnedCluster(t *testing.T) {
	for _, args := range [][]string{{"clusters", "DGX-H100x4"}, {"plan", "--model", "gpt2-124m", "--cluster",
		"DGX-H100x4", "--global-batch", "8", "--seq-len", "128"}} {
		if code, _, errs := call(args...); code == 0 || !strings.Contains(errs, "did you mean 4xdgx-h100?") {
			t.Errorf("planc %v: %d %s", args, code, errs)
		}
	}
}

// What detect prints is a cluster: the machine's cores and memory, and each figure with its source.
func TestDetectedReadsBack(t *testing.T) {
	for _, m := range []machine.Machine{{CPU: `odd: "CPU" #1`, Cores: 6, Memory: 12 << 30}, {Cores: 1}} {
		text := machine.CPUClusterText(m, nil)
		c, err := costmodel.ParseCluster("here.yaml", []byte(text))
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		if m.CPU != "" && c.GPU.Name != m.CPU || c.Node.Devices != m.Cores ||
			m.Memory > 0 && int64(c.GPU.Memory()) != m.Memory {
			t.Errorf("%+v is\n%s", m, text)
		}
		if !c.IsCPU() || c.Source["gpu.peak_tflops"] != machine.NotMeasured {
			t.Errorf("sources %v", c.Source)
		}
	}
	if !strings.Contains(machine.CPUClusterText(machine.Inspect(os.DirFS("/")), nil), "arch: cpu") {
		t.Error("this machine is no CPU")
	}
}
