package laws_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/ir"
	rt "github.com/planc-dev/planc/runtime"
)

// Law 1 for GPUs: a draw's program for the CUDA target, on emulated GPUs, trains to the results of the one-rank
// program on the CPU, within the law's bounds. The draws are those of TestLawDraws that GPUs support. PLANC_DRAWS and
// PLANC_SEED have the same meaning. PLANC_EMULATED_ORDER is the order of work that no event orders; without it, each
// of the three orders is used.

// gpuDraws and gpuExpertDraws are the numbers of programs of dense models and of models with experts, and gpuRanks
// their maximum number of ranks.
const (
	gpuDraws       = 12
	gpuExpertDraws = 3
	gpuRanks       = 8
)

func TestLawOnEmulatedGPUs(t *testing.T) {
	elems := []ir.Elem{ir.F64, ir.F32, ir.BF16, ir.F16}
	lawOnGPUs(t, gpuDraws, func(n int, c *lawCase) bool { // the same number for each compute type
		return c.model.Experts == 0 && c.plan.Precision.Compute == elems[n%len(elems)]
	})
}

// Only in f64: in other types rounding changes routing choices, and only CPUs replay those of the reference.
func TestLawOfExpertsOnEmulatedGPUs(t *testing.T) {
	lawOnGPUs(t, gpuExpertDraws, func(_ int, c *lawCase) bool { return c.model.Experts > 0 && c.elem == ir.F64 })
}

// lawOnGPUs checks law 1 on n draws that take accepts, given how many are still missing.
func lawOnGPUs(t *testing.T, n int, take func(wanted int, c *lawCase) bool) {
	t.Helper()
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	seed := uint64(1)
	if s, err := strconv.Atoi(os.Getenv("PLANC_DRAWS")); err == nil {
		n = s
	}
	if s, err := strconv.ParseUint(os.Getenv("PLANC_SEED"), 10, 64); err == nil {
		seed = s
	}
	orders := []string{"early", "late", "1"}
	if order := os.Getenv("PLANC_EMULATED_ORDER"); order != "" {
		orders = []string{order}
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, cases := range gpuCases(n, seed, len(orders), take) {
		if len(cases) == 0 {
			continue
		}
		t.Run(orders[i], func(t *testing.T) {
			judgeGPUs(t, cases, gpuModule(t, cases, machine, orders[i]))
		})
	}
}

// gpuCases returns n draws, distributed over the modules, each preceded by the one-rank programs that it is compared
// with. Masks of documents are not supported on GPUs.
func gpuCases(n int, seed uint64, modules int, take func(int, *lawCase) bool) [][]lawCase {
	out := make([][]lawCase, modules)
	for i := uint64(0); n > 0; i++ {
		c := drawCases([]uint64{seed + i})
		draw := &c[len(c)-1]
		if draw.plan.Ranks() > gpuRanks || draw.plan.Ranks() == 1 || draw.model.documents || !take(n, draw) {
			continue
		}
		draw.on = codegen.GPU
		for j := range c { // a module has a group once for each draw
			c[j].group += "-" + draw.id
			c[j].id = draw.id + c[j].id
			if c[j].as != "" {
				c[j].as = draw.id + c[j].as
			}
		}
		n--
		at := n % modules
		out[at] = append(out[at], c...)
	}
	return out
}

// gpuExperts are plans of expertPlans that GPUs support, one for each of expertModels.
var gpuExperts = []string{"dp 2 ep 2 slack 1", "dp 2 tp 2 sp ep 4 slack 1.25", "dp 2 pp 2 ep 2 zero 2 zb-h1",
	"dp 2 tp 2 etp 2 ep 2 slack 1", "cp 2 gather ep 2"}

// Law 1 for models with experts on emulated GPUs, as in TestLawExperts.
func TestLawExpertsOnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	var cases []lawCase
	for i, m := range expertModels() {
		opt := []string{"sgd", "adamw"}[i%2]
		c := lawCase{id: fmt.Sprintf("x%dref", i), group: m.name + "-" + opt, model: m, optimizer: opt, elem: ir.F64,
			plan: ir.SerialPlan(m.Layers, lawBatch, ir.FullPrecision(ir.F64))}
		cases = append(cases, c)
		c.id, c.plan, c.on = fmt.Sprintf("x%dgpu", i), expertPlan(gpuExperts[i], m.Layers), codegen.GPU
		cases = append(cases, c)
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	judgeGPUs(t, cases, gpuModule(t, cases, machine, "late"))
}

// Every schedule of stages, with preposted receives. Chunks of zb-v follow each other on one stage: the link between
// them has one rank on that stage, and none on others.
func TestLawSchedulesOnEmulatedGPUs(t *testing.T) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	c := lawCase{id: "sref", group: "schedules", model: modelNamed(t, "llama-tied"), optimizer: "sgd", elem: ir.F64}
	c.model.Layers = 4
	c.plan = ir.SerialPlan(4, lawBatch, ir.FullPrecision(ir.F64))
	cases := []lawCase{c}
	for i, s := range []struct {
		pp       int
		schedule string
	}{{2, "gpipe"}, {3, "1f1b"}, {2, "interleaved"}, {3, "zb-h1"}, {2, "zb-v"}} {
		c.id, c.on, c.plan = fmt.Sprintf("s%dgpu", i), codegen.GPU, cases[0].plan
		staged(s.pp, s.schedule)(&c.plan)
		if s.schedule == "interleaved" {
			c.plan.VPP, c.plan.StageLayers = 2, "1,1,1,1"
		}
		cases = append(cases, c)
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	judgeGPUs(t, cases, gpuModule(t, cases, machine, "late"))
}

// gpuModule builds and runs the cases.
func gpuModule(t *testing.T, cases []lawCase, m emulated.Machine, order string) []lawVerdict {
	t.Helper()
	t.Setenv("PATH", m.Bin()+string(os.PathListSeparator)+os.Getenv("PATH"))
	files := lawFiles()
	for i := range cases {
		if cases[i].on == codegen.GPU {
			for name, fatbin := range gpuKernels(t, &cases[i], "90") {
				files[path.Join(cases[i].id, "kernels", name)] = fatbin
			}
		}
	}
	return lawVerdictsOf(t, "gpulaws", cases, files,
		func(t *testing.T, module string, files map[string][]byte) []string {
			r := build.Request{Files: files, Runtime: rt.Sources, CUDA: cuda.Sources,
				Module: "planc.generated/" + module}
			return runRequest(t, r, m.Env("PLANC_EMULATED_ORDER="+order)...)
		})
}

// gpuKernels compiles the kernels of a case for an architecture.
func gpuKernels(t *testing.T, c *lawCase, arch string) map[string][]byte {
	t.Helper()
	return kernelsOf(t, c.input(c.program(t)), arch)
}

// kernelsOf compiles the kernels of a program for an architecture.
func kernelsOf(t *testing.T, in codegen.Input, arch string) map[string][]byte {
	t.Helper()
	var chains bytes.Buffer
	if err := codegen.CUDA(&chains, in); err != nil {
		t.Fatal(err)
	}
	sources := map[string][]byte{"chains.cu": chains.Bytes()}
	names, err := fs.Glob(kernels.Sources, "*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		sources[name], err = fs.ReadFile(kernels.Sources, name)
		if err != nil {
			t.Fatal(err)
		}
	}
	nvcc, err := build.FindNVCC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k, err := nvcc.CompileKernels(context.Background(), build.KernelRequest{Files: sources, Archs: []string{arch}})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for name, fatbin := range k.Fatbins {
		out[strings.TrimSuffix(name, ".cu")+".fatbin"] = fatbin
	}
	return out
}

// judgeGPUs compares the verdicts with the law's bounds.
func judgeGPUs(t *testing.T, cases []lawCase, verdicts []lawVerdict) {
	t.Helper()
	worst, n := map[ir.Elem]float64{}, 0
	faults := lawFaults(cases, verdicts)
	for i, v := range verdicts {
		if cases[i].on != codegen.GPU {
			continue
		}
		n++
		if faults[i] != "" {
			t.Errorf("law broken: %s %v (%s): %s", cases[i].group, cases[i].plan, cases[i].id, faults[i])
		}
		worst[cases[i].exact()] = max(worst[cases[i].exact()], v.Losses, v.Norms, v.Valid, v.Grad)
	}
	logNarrow(t, cases, verdicts)
	t.Logf("%d programs, worst deviation %.3g in f64, %.3g in f32", n, worst[ir.F64], worst[ir.F32])
}
