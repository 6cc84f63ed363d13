package laws_test

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
	rt "github.com/planc-dev/planc/runtime"
)

// Law 1: every legal plan trains to the same losses, gradients and parameters as one rank. The bound is 1e-10
// relative in f64; f32 is a second tier. Every plan of up to 8 ranks becomes a generated package. All are built as
// one module and run once.

//go:embed testdata/lawmain.go.txt
var lawMain []byte

//go:embed testdata/lawsplit.go.txt
var lawSplit []byte

//go:embed testdata/lawchoices.go.txt
var lawChoices []byte

// lawBound is far above rounding errors in f64 and far below any real fault.
const lawBound = 1e-10

const (
	lawBatch = 8 // sequences per step
	lawSeq   = 8
)

// lawPlans returns all legal plans of dp, tp, sp, ZeRO 0 and 1 (its state over all replicas or over pairs) and
// accumulation on 1, 2, 4 and 8 ranks, the serial one first.
func lawPlans(layers int) []ir.Plan {
	var out []ir.Plan
	add := func(dp, tp int, sp bool, zero, group, micro int) {
		p := ir.SerialPlan(layers, micro, ir.FullPrecision(ir.F64))
		p.DP, p.TP, p.SP, p.Zero, p.ZeroGroup, p.MicroBatches = dp, tp, sp, zero, group, lawBatch/dp/micro
		out = append(out, p)
	}
	for _, ranks := range []int{1, 2, 4, 8} {
		for dp := ranks; dp >= 1; dp /= 2 {
			for micro := lawBatch / dp; micro >= 1; micro /= 2 {
				for _, sp := range []bool{false, true}[:1+min(ranks/dp-1, 1)] {
					for zero := range 1 + min(dp-1, 1) {
						add(dp, ranks/dp, sp, zero, max(1, zero*dp), micro)
					}
					if dp > 2 { // state sharded over pairs of replicas
						add(dp, ranks/dp, sp, 1, 2, micro)
					}
				}
			}
		}
	}
	return out
}

// lawCase is one generated program.
type lawCase struct {
	id, group string
	model     lawModel
	plan      ir.Plan
	optimizer string
	elem      ir.Elem
	yard      bool                    // is a yardstick in 16 bits
	split     int                     // number of parts into which the sums of its GEMMs are split
	as        string                  // id of the case whose program this one runs; "" for its own
	spoil     func(src []byte) []byte // inserts a fault into the generated code
	on        codegen.Target          // target platform
	// id of the program whose checkpoint after step 2 this one resumes; "" for a complete run
	before string
	apart  bool // projections are separate GEMMs, as planc compiles them for CPUs
}

// lossBound returns the bound of losses, norms and gradients. In f32 it is the rounding of one addition times the
// length of the longest chain of sums from input to loss, which bounds the error of summing in another order.
func (c *lawCase) lossBound() float64 {
	if c.elem == ir.F64 {
		return lawBound
	}
	if c.rounds() { // yardsticks decide
		return math.Inf(1)
	}
	m := c.model
	block := 2*m.Hidden + lawSeq + m.Heads*m.HeadDim + 2*m.FFN
	chain := m.Layers*block + m.Hidden + m.Vocab + lawBatch*lawSeq
	return 2 * float64(chain) * math.Pow(2, -24) // forward and backward
}

// paramBound returns the bound of parameters after the last step. In f32 an optimizer may turn the rounding of a
// gradient near zero into a step, so only f64 has a bound.
func (c *lawCase) paramBound() float64 {
	if c.elem == ir.F64 {
		return lawBound
	}
	return math.Inf(1)
}

// exact returns the type whose bounds apply to a case, for the log.
func (c *lawCase) exact() ir.Elem {
	if c.rounds() {
		return ir.BF16
	}
	return c.elem
}

// recipe returns the case's recipe. Adam with decoupled weight decay uses stochastic rounding where it may.
// Programs for GPUs and programs with ZeRO pad the vocabulary, to a small multiple so that tp splits it. Weights lie
// side by side in the same programs, except on CPUs that compute in 16 bits, whose kernels do not support it.
func (c *lawCase) recipe() ir.Recipe {
	p := c.plan.Precision
	r := ir.Recipe{Optimizer: c.optimizer, StochasticRounding: c.optimizer == "adamw" && p.Params == ir.BF16 &&
		p.Master == ir.BF16}
	if c.on == codegen.GPU || c.plan.Zero > 0 {
		r.VocabMultiple = 8
	}
	r.PrepostReceives = c.on == codegen.GPU
	r.Sides = !c.apart && (c.on == codegen.GPU || c.plan.Zero > 0 && !p.Compute.Narrow())
	return r
}

// program returns the case's program.
func (c *lawCase) program(t *testing.T) *ir.Program {
	t.Helper()
	model := zoo.Build(c.group, c.model.Config, zoo.Options{SeqLen: lawSeq, Batch: 1, Elem: c.plan.Precision.Compute,
		Documents: c.model.documents})
	scaleLearningRates(model)
	prog, err := passes.Compile(model, c.plan, c.recipe(), passes.Options{Check: true})
	if err != nil {
		t.Fatalf("%s %s: %v", c.group, c.plan.Text(), err)
	}
	return prog
}

// scaleLearningRates gives some parameters of a model another learning rate, as train.optimizer.lr_multipliers does.
func scaleLearningRates(m *ir.Model) {
	for _, s := range m.Segments {
		for _, w := range s.Forward.Weights() {
			switch w.Name {
			case "mlp.down", "attn.o":
				w.Param.LRMultiplier = 0.5
			case "ln1.gain", "ln.gain":
				w.Param.LRMultiplier = 3
			}
		}
	}
}

// source generates the case's package. It returns the arena size that the compiler laid out, with a CPU rank's
// scratch.
func (c *lawCase) source(t *testing.T) (src []byte, arena int) {
	t.Helper()
	prog := c.program(t)
	src, err := codegen.Go(c.input(prog))
	if err != nil {
		t.Fatal(err)
	}
	if c.spoil != nil {
		src = c.spoil(src)
	}
	if c.on == codegen.GPU { // CUDA kernels read and write 16 bits themselves
		return src, prog.ArenaBytes()
	}
	return src, prog.ArenaBytes() + prog.Scratch()
}

// input returns the input of the code generator for the case.
func (c *lawCase) input(prog *ir.Program) codegen.Input {
	return codegen.Input{Program: prog, Package: c.id, Target: c.on, Job: c.group, Hash: c.id,
		Settings: lawSettings(c.optimizer, c.plan.Precision),
		Model:    rt.Model{Name: c.group, Vocab: c.model.Vocab, SeqLen: lawSeq, Layers: c.model.Layers},
		Plan:     rt.Plan{DP: c.plan.DP, TP: c.plan.TP, Text: c.plan.String()}, Predict: rt.Predict{}}
}

func lawSettings(optimizer string, p ir.Precision) rt.Settings {
	o := rt.OptimizerSettings{LR: 1e-2, Betas: [2]float64{0.9, 0.95}, Eps: 1e-4, WeightDecay: 0.1, ClipNorm: 1}
	if optimizer == "sgd" {
		o.LR, o.Momentum = 0.1, 0.9
	}
	scale := rt.LossScaleSettings{}
	if p.Compute == ir.F16 {
		// the third step has another scale
		scale = rt.LossScaleSettings{Kind: "dynamic", Init: 1024, Window: 2, Hysteresis: 2, Min: 1}
		// sums of gradients have less headroom
		if p.Grads == ir.F16 || p.Reduce == ir.F16 {
			scale.Init = 16
		}
	}
	return rt.Settings{Train: rt.TrainSettings{Precision: rt.PrecisionSettings{LossScale: scale}, Epochs: 1, Seed: 7,
		Optimizer: o, OnNonfinite: "stop",
		Experts:  rt.ExpertSettings{BiasRate: 0.05},
		Schedule: rt.ScheduleSettings{Kind: "linear", Warmup: 2}, Eval: rt.EvalSettings{Batches: 1}}}
}

// lawVerdict is a line that the module's main prints.
type lawVerdict struct {
	ID, Group, Err, Worst             string
	Losses, Norms, Valid, Grad, Param float64
	Copies                            float64
	Steps                             int
	FirstLoss, LastLoss               float64
	Arena                             int64
	Calls                             map[int]map[string]int // by rank, in the first step
	// expert rounds in the first step, by layer and rank, over its micro-batches
	Rounds map[string][]int
	// choices of experts that were replayed from the reference, and how many of them the program would have made
	// differently
	Replayed, Turned int
}

func TestLawParallelEqualsSerial(t *testing.T) {
	t.Parallel() // one test generates or runs code while another compiles
	runLawCases(t, "laws", lawCases(os.Getenv("PLANC_LAWS") == "long"))
}

// runLawCases builds the cases as one module, runs them, and compares each with the one-rank program of its group,
// which comes before it. It returns those that fail.
func runLawCases(t *testing.T, module string, cases []lawCase) (failed []lawCase) {
	t.Helper()
	verdicts := lawVerdicts(t, module, cases)
	worst := map[ir.Elem]float64{}
	for i, v := range verdicts {
		c := cases[i]
		worst[c.exact()] = max(worst[c.exact()], v.Losses, v.Norms, v.Valid, v.Grad)
		if c.elem == ir.F64 {
			worst[c.exact()] = max(worst[c.exact()], v.Param)
		}
	}
	callsAreThePrograms(t, cases, verdicts)
	for i, why := range lawFaults(cases, verdicts) {
		if why != "" {
			t.Errorf("law broken: %s %v (%s): %s", cases[i].group, cases[i].plan, cases[i].id, why)
			failed = append(failed, cases[i])
		}
	}
	logNarrow(t, cases, verdicts)
	logReplays(t, verdicts)
	t.Logf("%d programs, worst deviation %.3g in f64, %.3g in f32", len(cases), worst[ir.F64], worst[ir.F32])
	return failed
}

// lawVerdicts builds the cases as one module and runs them, the last one twice more.
func lawVerdicts(t *testing.T, module string, cases []lawCase) []lawVerdict {
	t.Helper()
	return lawVerdictsOf(t, module, cases, lawFiles(), runModule)
}

// lawVerdictsOf adds the cases to a module's files, builds and runs it.
func lawVerdictsOf(t *testing.T, module string, cases []lawCase, files map[string][]byte,
	run func(*testing.T, string, map[string][]byte) []string) []lawVerdict {
	t.Helper()
	arenas := map[string]int{}
	for i := range cases {
		if cases[i].as != "" {
			arenas[cases[i].id] = arenas[cases[i].as]
			continue
		}
		src, arena := cases[i].source(t)
		files[cases[i].id+"/train.go"] = src
		arenas[cases[i].id] = arena
	}
	files["programs.go"] = lawTable(module, cases)
	verdicts := parseVerdicts(t, run(t, module, files))
	if len(verdicts) != len(cases)+2 {
		t.Fatalf("%d programs ran, want %d", len(verdicts), len(cases)+2)
	}
	for _, v := range verdicts[len(cases):] {
		if v.Err != "" || v.Losses != 0 || v.Norms != 0 || v.Grad != 0 || v.Param != 0 {
			t.Errorf("the same program gave different bits in a second run: %+v", v)
		}
	}
	for i := range cases {
		if v := &verdicts[i]; v.Err == "" && v.Arena != int64(arenas[cases[i].id]) {
			v.Err = fmt.Sprintf("the rank took %d bytes, the compiler laid out %d", v.Arena, arenas[cases[i].id])
		}
	}
	return verdicts[:len(cases)]
}

// lawFaults returns what is wrong with each case, "" for nothing.
func lawFaults(cases []lawCase, verdicts []lawVerdict) []string {
	out := narrowFaults(cases, verdicts)
	for i, v := range verdicts {
		c := cases[i]
		off := max(v.Losses, v.Norms, v.Valid, v.Grad)
		if v.Err != "" || !(off <= c.lossBound()) || !(v.Param <= c.paramBound()) || v.Steps != 3 {
			out[i] += fmt.Sprintf("losses %.3g, norms %.3g, valid %.3g, gradients %.3g, parameters %.3g off after %d "+
				"steps; worst %s %s",
				v.Losses, v.Norms, v.Valid, v.Grad, v.Param, v.Steps, v.Worst, v.Err)
		}
		if v.Copies != 0 && c.spoil == nil {
			out[i] += fmt.Sprintf("copies of a parameter are %.3g apart", v.Copies)
		}
		if c.turnsMany(v) {
			out[i] += fmt.Sprintf("%d of %d choices of experts are not the reference's", v.Turned, v.Replayed)
		}
	}
	return out
}

// lawFiles returns the files of the module that do not depend on cases.
func lawFiles() map[string][]byte {
	return map[string][]byte{"main.go": lawMain, "split.go": lawSplit, "choices.go": lawChoices}
}

// lawTable lists the packages for the module's main.
func lawTable(module string, cases []lawCase) []byte {
	var b bytes.Buffer
	b.WriteString("package main\n\nimport (\n")
	for _, c := range cases {
		if c.as == "" {
			fmt.Fprintf(&b, "\t%q\n", "planc.generated/"+module+"/"+c.id)
		}
	}
	b.WriteString(")\n\nvar programs = []program{\n")
	source := map[string]string{}
	for _, c := range cases {
		before := "nil"
		if c.before != "" {
			before = c.before + ".Run"
		}
		fmt.Fprintf(&b, "\t{%q, %q, %s.Run, %s, %d, %v, %v},\n", c.id, c.group, cmp.Or(c.as, c.id), before, c.split,
			c.elem == ir.F16, c.replays())
		if c.model.alone {
			source[c.id] = lawSource(&c.model)
		} else {
			source[c.group] = lawSource(&c.model)
		}
	}
	// One program with several ranks runs twice: the same plan on the same machine gives the same bits.
	last := cases[len(cases)-1]
	for range 2 {
		fmt.Fprintf(&b, "\t{%q, %q, %s.Run, nil, 0, false, false},\n", last.id, "twice", cmp.Or(last.as, last.id))
	}
	source["twice"] = lawSource(&last.model)
	b.WriteString("}\n\nvar sourceOf = map[string]source{\n")
	for _, group := range slices.Sorted(maps.Keys(source)) {
		fmt.Fprintf(&b, "\t%q: %s,\n", group, source[group])
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// parseVerdicts parses the output of a module.
func parseVerdicts(t *testing.T, lines []string) (vs []lawVerdict) {
	t.Helper()
	for _, line := range lines {
		var v lawVerdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		vs = append(vs, v)
	}
	return vs
}

// runModule builds planc.generated/NAME, runs it and returns the lines that it prints. Its packages are merged into a
// few, and the short run compiles without optimization (see [build.Request]).
func runModule(t *testing.T, name string, files map[string][]byte) []string {
	t.Helper()
	return runRequest(t, build.Request{Files: together(t, name, files), Runtime: rt.Sources,
		Module: "planc.generated/" + name, Plain: !harness.Long()})
}

// runAsUsers is runModule for programs that are optimized as users' programs are.
func runAsUsers(t *testing.T, name string, files map[string][]byte) []string {
	t.Helper()
	return runRequest(t, build.Request{Files: together(t, name, files), Runtime: rt.Sources,
		Module: "planc.generated/" + name})
}

// runRequest builds a module and runs it with additional environment variables.
func runRequest(t *testing.T, r build.Request, env ...string) []string {
	t.Helper()
	r.Cache = t.TempDir()
	res, err := build.Build(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(res.Binary)
	cmd.Env = append(append(os.Environ(), "GOGC=100"), env...) // as users run it, because its memory is measured
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
