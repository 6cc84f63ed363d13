package interop_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/interop/launcher"
	"github.com/planc-dev/planc/passes/search/space"
	"github.com/planc-dev/planc/passes/validate"
)

// memoryPage compares estimates of memory.
const memoryPage = "docs/memory.md"

// memoryRows are the measured runs that the page compares, by the table of tools/validate/rows and the row's number.
var memoryRows = []struct {
	file    string
	numbers []int
}{
	{"bigscience_v100.csv", []int{1, 4, 7, 11, 12, 58}},
	{"bigscience_bloom_a100.csv", []int{1, 14, 20, 23, 38, 41}},
	{"korthikanti_memory_analytic.csv", []int{2, 4, 6}},
	{"megatron_bridge_skills.csv", []int{11, 12, 17}},
	{"torchtitan.csv", []int{1, 5, 8, 11}},
}

// memoryEstimate is what the trainers' own estimators say of a run, in GiB; "" if they say nothing.
type memoryEstimate struct{ megatron, deepspeed string }

// memoryErrors are the relative errors of estimates of measured runs, without their signs.
type memoryErrors struct{ planc, megatron, deepspeed []float64 }

// add adds the errors for a run of measured GiB. planc is planc's error.
func (m *memoryErrors) add(t *testing.T, measured, planc float64, e memoryEstimate) {
	m.planc = append(m.planc, math.Abs(planc))
	for _, other := range []struct {
		text string
		to   *[]float64
	}{{e.megatron, &m.megatron}, {e.deepspeed, &m.deepspeed}} {
		if other.text == "" || other.text == "refused" {
			continue
		}
		estimate, err := strconv.ParseFloat(other.text, 64)
		if err != nil {
			t.Fatal(err)
		}
		*other.to = append(*other.to, math.Abs(estimate/measured-1))
	}
}

// sentence returns the medians.
func (m *memoryErrors) sentence() string {
	median := func(name string, errors []float64) string {
		if len(errors) == 0 {
			return name + " has no estimate"
		}
		slices.Sort(errors)
		n := len(errors)
		middle := (errors[n/2] + errors[(n-1)/2]) / 2
		return fmt.Sprintf("%s %.0f %% (%s)", name, 100*middle, launcher.Count(n, "run"))
	}
	return "Median error over the measured runs that an estimator answers: " + median("planc", m.planc) + ",\n" +
		median("Megatron-LM", m.megatron) + ", " + median("DeepSpeed", m.deepspeed) + "."
}

// memoryTable matches the page's table, memorySummary its sentence about errors, and memoryCells the estimators' cells
// of the table's rows.
var (
	memorySummary = regexp.MustCompile(`(?s)<!-- errors -->\n.*?<!-- end errors -->`)
	memoryTable   = regexp.MustCompile(`(?s)<!-- memory -->\n.*?<!-- end -->`)
	memoryCells   = regexp.MustCompile(`(?m)^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$`)
)

// docs/memory.md compares planc's estimates of memory with measured ones and with those of the trainers' own
// estimators. Without PLANC_ORACLE the estimators' figures are those of the page.
func TestMemoryPage(t *testing.T) {
	page := harness.DocPages(t)[memoryPage]
	shown := map[string]memoryEstimate{}
	for _, m := range memoryCells.FindAllStringSubmatch(page, -1) {
		shown[m[1]] = memoryEstimate{m[5], m[6]}
	}
	estimate := func(run string, _ *validate.Row, _ *validate.Priced) memoryEstimate { return shown[run] }
	if os.Getenv("PLANC_ORACLE") != "" {
		megatron, deepspeed := startOracle(t, "megatron"), startOracle(t, "deepspeed")
		estimate = func(_ string, r *validate.Row, p *validate.Priced) memoryEstimate {
			return memoryEstimate{megatronMemory(t, megatron, r, p), deepspeedMemory(t, deepspeed, p)}
		}
	}
	var rows []string
	var errors memoryErrors
	for _, table := range memoryRows {
		file := filepath.Join(harness.Root, "tools/validate/rows", table.file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all, err := validate.Parse(table.file, data)
		if err != nil {
			t.Fatal(err)
		}
		asker := validate.NewAsker()
		for _, n := range table.numbers {
			r := &all[n-1]
			p, err := asker.Price(r)
			if err != nil {
				t.Fatalf("%s row %d: %v", table.file, n, err)
			}
			run := fmt.Sprintf("%s, row %d: %s", strings.TrimSuffix(table.file, ".csv"), n, r.Text("model"))
			e := estimate(run, r, p)
			rows = append(rows, harness.TableRow(run, p.Asked.Plan.String(), gib(r.MemoryBytes()),
				gib(r.MemoryBytes()*(1+*p.MemoryError)), e.megatron, e.deepspeed))
			if !strings.Contains(table.file, "analytic") {
				errors.add(t, r.MemoryBytes()/(1<<30), *p.MemoryError, e)
			}
		}
	}
	lines := append([]string{"<!-- memory -->", "| run | plan | measured | planc | Megatron-LM | DeepSpeed |",
		"|---|---|---|---|---|---|"}, rows...)
	want := memoryTable.ReplaceAllLiteralString(page, strings.Join(append(lines, "<!-- end -->"), "\n"))
	want = memorySummary.ReplaceAllLiteralString(want, "<!-- errors -->\n"+errors.sentence()+"\n<!-- end errors -->")
	if len(rows) < 20 || page == "" {
		t.Errorf("%d runs, want at least 20", len(rows))
	}
	harness.HoldPage(t, memoryPage, page, want)
}

func gib(bytes float64) string { return fmt.Sprintf("%.1f", bytes/(1<<30)) }

// megatronMemory returns what report_theoretical_memory of Megatron-LM says of a run.
func megatronMemory(t *testing.T, o *oracle, r *validate.Row, p *validate.Priced) string {
	if strings.Contains(p.Engine, "fsdp") {
		return ""
	}
	plan, dims := &p.Asked.Plan, space.DimsOf(p.Asked.Problem.Model)
	var args []string
	add := func(isSet bool, more ...any) {
		for _, a := range more {
			if isSet {
				args = append(args, fmt.Sprint(a))
			}
		}
	}
	add(true, "--num-layers", dims.Layers, "--hidden-size", dims.Hidden, "--num-attention-heads", dims.Heads(),
		"--ffn-hidden-size", dims.FFN, "--seq-length", dims.Seq, "--max-position-embeddings", dims.Seq,
		"--micro-batch-size", plan.MicroBatch, "--global-batch-size", plan.MicroBatch*plan.MicroBatches*plan.DP,
		"--lr", "1e-4", "--train-iters", 1, "--tokenizer-type", "NullTokenizer", "--vocab-size", dims.Vocab,
		"--tensor-model-parallel-size", plan.TP, "--pipeline-model-parallel-size", plan.PP,
		"--context-parallel-size", plan.CP, "--transformer-impl", "local")
	add(dims.Group > 1, "--group-query-attention", "--num-query-groups", dims.KVHeads)
	add(r.Text("gated_mlp") == "1", "--swiglu", "--untie-embeddings-and-output-weights")
	add(plan.SP && plan.TP > 1, "--sequence-parallel")
	add(plan.Zero > 0, "--use-distributed-optimizer")
	add(plan.VPP > 1, "--num-virtual-stages-per-pipeline-rank", plan.VPP)
	add(r.Text("precision") == "bf16" || r.Text("precision") == "fp8", "--bf16")
	add(r.Text("precision") == "fp16", "--fp16")
	add(plan.Recompute == "selective", "--recompute-granularity", "selective")
	add(plan.Recompute == "full", "--recompute-granularity", "full", "--recompute-method", "uniform",
		"--recompute-num-layers", 1)
	multiple := 128 * plan.TP
	var answer struct{ MB float64 }
	refusal := o.ask(t, map[string]any{"call": "memory", "args": args, "world": plan.Ranks(),
		"micro_batches": plan.MicroBatches, "padded_vocab": (dims.Vocab + multiple - 1) / multiple * multiple,
		"env": map[string]string{"CUDA_DEVICE_MAX_CONNECTIONS": "1"}}, &answer)
	if refusal != "" {
		t.Logf("Megatron-LM refuses %v: %s", args, refusal)
		return "refused"
	}
	return gib(answer.MB * (1 << 20))
}

// deepspeedMemory returns what DeepSpeed's estimators say of the state of a run without a pipeline or tensor
// parallelism: they have none for other plans.
func deepspeedMemory(t *testing.T, o *oracle, p *validate.Priced) string {
	plan, dims := &p.Asked.Plan, space.DimsOf(p.Asked.Problem.Model)
	if plan.TP*plan.PP*plan.CP*plan.EP > 1 || !slices.Contains([]int{2, 3}, plan.Zero) {
		return ""
	}
	var answer struct{ Bytes float64 }
	// the embedding is taken as the largest layer
	refusal := o.ask(t, map[string]any{"call": "estimate", "params": p.Asked.Problem.Model.Params(),
		"largest": dims.Vocab * dims.Hidden, "stage": plan.Zero, "gpus": plan.Ranks()}, &answer)
	if refusal != "" {
		t.Fatal(refusal)
	}
	return gib(answer.Bytes)
}
