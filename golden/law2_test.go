package golden_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/ckpt"
)

// Law 2: planc equals PyTorch. Fixtures come from reference/; each is trained here by generated programs, in f64 and
// f32, on one rank and on several.

//go:embed testdata/law2main.go.txt
var law2Main []byte

// law2Case is one generated program. bound is relative: of losses and norms to themselves, of tensors to the larger
// of their norm and 1e-5 of the gradient's. Law 2 asks for 1e-5 and 1e-4; the fixtures are exact to 1e-15, so f64
// is held far tighter.
type law2Case struct {
	id, fixture string
	elem        ir.Elem
	dp, tp      int
	sp          bool
	zero        int
	micro       int
	loss, grad  float64
}

func law2Cases() []law2Case {
	const f64 = 1e-11
	return []law2Case{
		{id: "gpt2", fixture: "gpt2-tiny", elem: ir.F64, dp: 1, tp: 1, micro: 4, loss: f64, grad: f64},
		{id: "gpt2par", fixture: "gpt2-tiny", elem: ir.F64, dp: 2, tp: 4, sp: true, zero: 1, micro: 1, loss: f64, grad: f64},
		{id: "gpt2f32", fixture: "gpt2-tiny", elem: ir.F32, dp: 2, tp: 2, micro: 1, loss: 1e-5, grad: 1e-4},
		{id: "wide", fixture: "gpt2-wide", elem: ir.F64, dp: 1, tp: 1, micro: 1, loss: f64, grad: f64},
		{id: "widedp", fixture: "gpt2-wide", elem: ir.F32, dp: 3, tp: 1, zero: 1, micro: 1, loss: 1e-5, grad: 1e-4},
		{id: "llama", fixture: "llama-tiny", elem: ir.F64, dp: 1, tp: 1, micro: 4, loss: f64, grad: f64},
		{id: "llamapar", fixture: "llama-tiny", elem: ir.F64, dp: 2, tp: 4, sp: true, zero: 1, micro: 2, loss: f64, grad: f64},
		{id: "llamaf32", fixture: "llama-tiny", elem: ir.F32, dp: 4, tp: 1, micro: 1, loss: 1e-5, grad: 1e-4},
	}
}

// law2Trace is a line that the module's main prints.
type law2Trace struct {
	ID, Err       string
	Losses, Norms []float64
	Valid         float64
	Grads, Params map[string][]float64
	Logits        [][]float64
}

func TestLawPlancEqualsPyTorch(t *testing.T) {
	cases := law2Cases()
	fixtures := map[string]*fixture{}
	dirs := map[string]string{}
	files := map[string][]byte{"main.go": law2Main}
	for _, c := range cases {
		if fixtures[c.fixture] == nil {
			f := readFixture(t, c.fixture)
			fixtures[c.fixture], dirs[c.fixture] = f, f.write(t)
		}
		files[c.id+"/train.go"] = law2Source(t, c, fixtures[c.fixture])
	}
	files["programs.go"] = law2Table(cases, dirs)
	for i, line := range runModule(t, "law2", files) {
		var got law2Trace
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.Err != "" {
			t.Errorf("%s: %s", got.ID, got.Err)
			continue
		}
		compareLaw2(t, cases[i], fixtures[cases[i].fixture], &got)
	}
}

func law2Source(t *testing.T, c law2Case, f *fixture) []byte {
	t.Helper()
	plan := ir.SerialPlan(f.config.Layers, c.micro, ir.FullPrecision(c.elem))
	plan.DP, plan.TP, plan.SP, plan.Zero = c.dp, c.tp, c.sp, c.zero
	plan.MicroBatches = f.rows / c.dp / c.micro
	model := zoo.Build(c.id, *f.config, zoo.Options{SeqLen: f.seq, Batch: 1, Elem: c.elem})
	prog, err := passes.Compile(model, plan, ir.Recipe{Optimizer: "adamw"}, passes.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	settings := rt.Settings{Train: rt.TrainSettings{Steps: 3, Seed: 1, OnNonfinite: "stop",
		Optimizer: rt.OptimizerSettings{LR: 1e-2, Betas: [2]float64{0.9, 0.95}, Eps: 1e-4, WeightDecay: 0.1, ClipNorm: 1},
		Schedule:  rt.ScheduleSettings{Kind: "constant"}, Eval: rt.EvalSettings{Batches: 1}}}
	src, err := codegen.Go(codegen.Input{Program: prog, Package: c.id, Job: c.id, Hash: c.id, Settings: settings,
		Model: rt.Model{Name: c.id, Vocab: f.config.Vocab, SeqLen: f.seq, Layers: f.config.Layers}, Plan: rt.Plan{Text: plan.String()}, Predict: rt.Predict{}})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func law2Table(cases []law2Case, dirs map[string]string) []byte {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for _, c := range cases {
		fmt.Fprintf(&b, "\t%q\n", "planc.generated/law2/"+c.id)
	}
	b.WriteString(")\n\nvar programs = []program{\n")
	for _, c := range cases {
		fmt.Fprintf(&b, "\t{%q, %q, %s.Run},\n", c.id, dirs[c.fixture], c.id)
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

// compareLaw2 holds a trace against its fixture.
func compareLaw2(t *testing.T, c law2Case, f *fixture, got *law2Trace) {
	t.Helper()
	worst := map[string]float64{}
	scalar := func(what string, got, want []float64) {
		for i := range want {
			d := math.Inf(1)
			if i < len(got) {
				d = math.Abs(got[i]-want[i]) / math.Abs(want[i])
			}
			if worst["loss"] = max(worst["loss"], d); !(d <= c.loss) {
				t.Errorf("%s: %s %d is %v, PyTorch has %v", c.id, what, i, got[i], want[i])
			}
		}
	}
	scalar("loss", got.Losses, f.values("steps.loss"))
	scalar("gradient norm", got.Norms, f.values("steps.grad_norm"))
	scalar("final loss", []float64{got.Valid}, f.values("final_loss"))
	vocab := f.config.Vocab
	logits := f.values("logits")
	for pos, row := range got.Logits {
		tensorClose(t, c, worst, fmt.Sprintf("logits at %d", pos), row, logits[pos*vocab:(pos+1)*vocab], 0)
	}
	norm := f.values("grad_norm")[0]
	grads, params, start := joinBiases(got.Grads), joinBiases(got.Params), joinBiases(f.ours(""))
	for name, want := range joinBiases(f.ours("grad.")) {
		tensorClose(t, c, worst, "gradient of "+name, grads[name], want, norm)
	}
	for name, want := range joinBiases(f.ours("final.")) {
		// Of a parameter the distance that it moved counts, not where it was.
		moved := append([]float64{}, want...)
		is := append([]float64{}, params[name]...)
		for i := range moved {
			moved[i] -= start[name][i]
			is[i] -= start[name][i]
		}
		tensorClose(t, c, worst, "update of "+name, is, moved, 0)
	}
	t.Logf("%-9s worst: losses and norms %.2g, tensors %.2g", c.id, worst["loss"], worst["tensor"])
}

// joinBiases makes one tensor of the biases of q, k and v, as Hugging Face's GPT-2 has them: the gradient of the
// key's is zero by mathematics, so that alone it is nothing but rounding.
func joinBiases(x map[string][]float64) map[string][]float64 {
	out := maps.Clone(x)
	for name := range x {
		if base, ok := strings.CutSuffix(name, ".q_bias"); ok {
			out[name] = slices.Concat(x[name], x[base+".k_bias"], x[base+".v_bias"])
			delete(out, base+".k_bias")
			delete(out, base+".v_bias")
		}
	}
	return out
}

// tensorClose wants |got-want| <= bound · max(|want|, 1e-5·norm), in the Euclidean norm.
func tensorClose(t *testing.T, c law2Case, worst map[string]float64, what string, got, want []float64, norm float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %s has %d elements, want %d", c.id, what, len(got), len(want))
		return
	}
	var diff, size float64
	for i := range want {
		diff += (got[i] - want[i]) * (got[i] - want[i])
		size += want[i] * want[i]
	}
	d := math.Sqrt(diff) / max(math.Sqrt(size), 1e-5*norm)
	if worst["tensor"] = max(worst["tensor"], d); !(d <= c.grad) {
		t.Errorf("%s: %s is %.3g off", c.id, what, d)
	}
}

// fixture is one file of reference/testdata, with its model.
type fixture struct {
	config    *spec.Config
	rows, seq int
	file      *ckpt.File
	t         *testing.T
}

func readFixture(t *testing.T, name string) *fixture {
	t.Helper()
	base := filepath.Join("reference", "testdata", name)
	config, err := spec.LoadModel(base+".config.json", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	file, err := ckpt.OpenFile(base + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	// The fixtures were made without dropout, whatever their configuration says.
	config.DropEmbd, config.DropResid, config.DropAttn = 0, 0, 0
	f := &fixture{config: config, file: file, t: t}
	x, _, err := file.Tensor("mask")
	if err != nil {
		t.Fatal(err)
	}
	f.rows, f.seq = int(x.Shape[0]), int(x.Shape[1])
	return f
}

// values reads a float tensor.
func (f *fixture) values(name string) []float64 {
	f.t.Helper()
	x, r, err := f.file.Tensor(name)
	if err != nil {
		f.t.Fatal(err)
	}
	out := make([]float64, x.Elems())
	if err := ckpt.ReadFloats(r, x.DType, 0, out); err != nil {
		f.t.Fatal(err)
	}
	return out
}
