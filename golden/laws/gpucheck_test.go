package laws_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	rt "github.com/planc-dev/planc/runtime"
)

// Law 1 on a GPU: scripts/gpu-check build runs this test to build the draws' programs as one binary. bench/gpu takes
// it to a machine that has a GPU and no Go. A draw is a group, preceded by the one-rank CPU programs that it is
// compared with. PLANC_GPUCHECK is the output folder: laws, laws.json, and kernels, which package bench/gpu tries one
// by one. In its folder chains the models' fused groups are compiled.

// checkGroup and checkCase are LawGroup and LawCase of bench/gpu, where their fields are documented.
type checkGroup struct {
	Name, Plan, Kinds string
	Ranks             int
	Cases             []checkCase
}

type checkCase struct {
	ID          string
	GPU         bool
	Type        string
	Loss, Param float64
	Yard        bool
	Rounds      bool
	Arena       int64
}

// checkDraws is the number of programs of dense models for a GPU, and checkExpertDraws of models with experts.
const checkDraws, checkExpertDraws = 40, 8

func TestProgramsForGPUCheck(t *testing.T) {
	dir := os.Getenv("PLANC_GPUCHECK")
	if dir == "" {
		t.Skip("PLANC_GPUCHECK names no folder")
	}
	arch := cmp.Or(os.Getenv("PLANC_GPUCHECK_ARCH"), "90a")
	buildCheck(t, dir, checkCases(checkDraws, checkExpertDraws), arch)
	buildCheck2(t, dir, check2Fixtures, arch)
	buildChains(t, dir, arch)
}

// checkCases returns the draws in one list. The last case of each group is for a GPU.
func checkCases(dense, experts int) (cases []lawCase) {
	elems := []ir.Elem{ir.F64, ir.F32, ir.BF16, ir.F16}
	for _, some := range [][][]lawCase{
		gpuCases(dense, 1, 1, func(n int, c *lawCase) bool {
			return c.model.Experts == 0 && c.plan.Precision.Compute == elems[n%len(elems)]
		}),
		gpuCases(experts, 1, 1, func(_ int, c *lawCase) bool { return c.model.Experts > 0 && c.elem == ir.F64 }),
	} {
		cases = append(cases, some[0]...)
	}
	return cases
}

// buildCheck builds the cases' programs, with their shared kernels once.
func buildCheck(t *testing.T, dir string, cases []lawCase, arch string) {
	t.Helper()
	files, kernels := lawFiles(), map[string][]byte{}
	files["shared/shared.go"] = []byte(sharedKernels)
	arenas := map[string]int64{}
	for i := range cases {
		c := &cases[i]
		if c.as != "" {
			continue
		}
		src, arena := c.source(t)
		arenas[c.id] = int64(arena)
		if c.on == codegen.GPU {
			for name, fatbin := range gpuKernels(t, c, arch) {
				if name != "chains.fatbin" {
					kernels[name] = fatbin
					name = "../../shared/kernels/" + name
				}
				files[path.Join(c.id, "kernels", name)] = fatbin
			}
			src = sharing(t, src)
		}
		files[c.id+"/train.go"] = src
	}
	files["programs.go"] = lawTable("gpucheck", cases)
	binary := filepath.Join(dir, "laws")
	r := build.Request{Files: files, Runtime: rt.Sources, CUDA: cuda.Sources, Module: "planc.generated/gpucheck",
		Plain: true, Cache: t.TempDir(), Out: binary}
	if _, err := build.Build(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	writeCheck(t, dir, kernels, checkGroups(cases, arenas))
}

// sharedKernels is a package of the module with the kernels that all programs share.
const sharedKernels = `// Package shared has the kernels of all programs.
package shared

import (
	"embed"
	"io/fs"
)

//go:embed kernels
var kernels embed.FS

// With are they beside a program's own.
func With(own fs.FS) fs.FS { return both{own} }

type both struct{ own fs.FS }

func (b both) Open(name string) (fs.File, error) {
	if f, err := b.own.Open(name); err == nil && name != "kernels" {
		return f, nil
	}
	return kernels.Open(name)
}

func (b both) ReadDir(name string) ([]fs.DirEntry, error) {
	of, err := fs.ReadDir(kernels, name)
	if more, missing := fs.ReadDir(b.own, name); missing == nil && name == "kernels" {
		of = append(of, more...)
	}
	return of, err
}
`

// sharing makes a program load its kernels from both places.
func sharing(t *testing.T, src []byte) []byte {
	t.Helper()
	out := bytes.Replace(src, []byte("&program, kernels"), []byte("&program, shared.With(kernels)"), -1)
	out = bytes.Replace(out, []byte("import (\n"), []byte("import (\n\t\"planc.generated/gpucheck/shared\"\n"), 1)
	if bytes.Count(out, []byte("shared.With")) == 0 || !bytes.Contains(out, []byte("gpucheck/shared\"")) {
		t.Fatal("generated code passes its kernels in another way now")
	}
	return out
}

// checkGroups describes the programs and their bounds.
func checkGroups(cases []lawCase, arenas map[string]int64) (groups []checkGroup) {
	bound := func(x float64) float64 {
		if math.IsInf(x, 1) {
			return -1
		}
		return x
	}
	for i := range cases {
		c := &cases[i]
		if len(groups) == 0 || groups[len(groups)-1].Name != c.group {
			groups = append(groups, checkGroup{Name: c.group})
		}
		g := &groups[len(groups)-1]
		if c.on == codegen.GPU {
			g.Plan, g.Kinds, g.Ranks = c.model.name+" "+c.optimizer+": "+c.plan.String(), strings.Join(c.kinds(),
				", "), c.plan.Ranks()
		}
		g.Cases = append(g.Cases, checkCase{ID: c.id, GPU: c.on == codegen.GPU,
			Type: c.plan.Precision.Compute.String(), Loss: bound(c.lossBound()), Param: bound(c.paramBound()),
			Yard: c.yard, Rounds: c.rounds(), Arena: arenas[c.id]})
	}
	return groups
}

func writeCheck(t *testing.T, dir string, kernels map[string][]byte, groups []checkGroup) {
	t.Helper()
	text, err := json.MarshalIndent(groups, "", "\t")
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "kernels"), 0o777)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "laws.json"), text, 0o666)
	}
	for name, fatbin := range kernels {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "kernels", name), fatbin, 0o666)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d groups", len(groups))
}

// The draws for a GPU have every kind of plan that the draws of the short run have and that GPUs support.
func TestGPUCheckHasEveryKind(t *testing.T) {
	had, two := map[string]bool{}, 0
	for _, c := range checkCases(checkDraws, checkExpertDraws) {
		if c.on == codegen.GPU && c.plan.Ranks() == 2 {
			two++
		}
		for _, kind := range c.kinds() {
			had[kind] = had[kind] || c.on == codegen.GPU
		}
	}
	for _, want := range []string{"zero 0", "zero 1", "zero 2", "zero 3", "recompute full", "recompute selective",
		"sp true", "ep true", "dp true", "tp true", "pp 2", "cp ring", "cp heads", "cp gather"} {
		if !had[want] {
			t.Errorf("none of them has %s", want)
		}
	}
	for _, list := range [][]string{{"1f1b", "gpipe", "interleaved", "zb-h1", "zb-v"}} {
		for _, name := range list {
			if !had["schedule "+name] {
				t.Errorf("none of them has schedule %s", name)
			}
		}
	}
	if two < 4 {
		t.Errorf("%d of them have two ranks, which NCCL can connect on one GPU", two)
	}
	t.Logf("%d kinds: %v", len(had), slices.Sorted(maps.Keys(had)))
}

// Everything that scripts/gpu-check does on a machine with a GPU runs on an emulated one, with tiny shapes: programs
// are built, parts run, and pages written. If PLANC_PYTHON names a Python that has PyTorch, the three calls of
// docs/measured/METHOD.md run, else only parts without PyTorch.
func TestGPUCheckOnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range machine.Env() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	dir, out := t.TempDir(), t.TempDir()
	buildCheck(t, dir, checkCases(2, 0), "90")
	buildCheck2(t, dir, check2Fixtures, "90")
	check := filepath.Join(dir, "gpu-check")
	runHere(t, "go", "build", "-tags", "cuda", "-o", check, "./bench/gpu")
	runHere(t, check, "build", "-tiny", "-dir", dir)
	buildChains(t, dir, "90")
	python := os.Getenv("PLANC_PYTHON")
	calls := [][]string{{"call1", "smoke", "train"}, {"call2", "kernels", "laws"}, {"call3", "train2", "curves"}}
	if python == "" {
		python, calls = "python3", [][]string{{"smoke", "smoke"}, {"kernels", "kernels"}, {"laws", "laws"}}
	}
	for _, call := range append(calls, []string{"sanitize", "sanitize"}) {
		cmd := exec.Command(check, call[0], "-tiny", "-dir", dir, "-out", out, "-python", python)
		text, err := cmd.CombinedOutput()
		t.Logf("%s\n%s", call[0], text)
		for _, part := range call[1:] {
			judgeCheck(t, filepath.Join(out, part+".json"), err)
		}
	}
	runHere(t, check, "report", "-out", t.TempDir(), filepath.Join(out, "smoke.json"), filepath.Join(out, "laws.json"))
}

// runHere runs a command in the module's root.
func runHere(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = harness.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// judgeCheck fails unless every check of a part is ok.
func judgeCheck(t *testing.T, file string, failed error) {
	t.Helper()
	var p struct {
		Results []struct{ Check, State, Why string }
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || len(p.Results) == 0 {
		t.Fatalf("%s: %v, %v", file, err, failed)
	}
	for _, r := range p.Results {
		if r.State != "ok" {
			t.Errorf("%s: %s is %s: %s", file, r.Check, r.State, r.Why)
		}
	}
}
