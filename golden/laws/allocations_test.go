package laws_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
)

//go:embed testdata/allocmain.go.txt
var allocMain []byte

// allocPlans has a plan of each kind, in the notation of expertPlan. Plans with experts use a model with experts.
var allocPlans = []struct{ model, plan string }{
	{"gpt2", ""}, {"gpt2", "micro 2"}, {"llama", "dp 2"}, {"llama", "dp 2 zero 1"}, {"llama", "dp 2 zero 2"},
	{"llama", "dp 2 zero 3"},
	{"gemma2", "pp 2"}, {"gemma2", "pp 2 zb-h1"}, {"llama", "tp 2"}, {"llama", "tp 2 sp"}, {"llama", "full"},
	{"llama", "selective"},
	{"gpt2", "cp 2 gather"}, {"gpt2", "cp 2 heads"}, {"gpt2", "cp 2 ring"}, {"gpt2", "dp 2 tp 2 sp zero 1"},
	{"mixtral", ""}, {"mixtral", "dp 2 ep 2 slack 1.25"}, {"mixtral", "dp 2 tp 2 etp 2"},
	{"qwen3_moe-routed", ""}, {"qwen3_moe-routed", "dp 2 ep 2"}, {"deepseek_v3", "micro 2"},
	{"deepseek_v3", "dp 2 tp 2 zero 1"}, {"deepseek_v3-routed", "dp 2 ep 2"},
}

// A steady step of a program allocates nothing under any plan: not in kernels, communication, the optimizer, the
// batch or the log. A step is steady if the garbage collector does not run in it, because the collector empties pools
// that steps fill again. So the step with the fewest allocations counts. With experts, a Step has their loads as
// lists that its reader may keep: two lists for the layers, with two entries each.
func TestStepsAllocateNothing(t *testing.T) {
	harness.OnlyLong(t)
	files, table, handed := map[string][]byte{"main.go": allocMain}, "", map[string]int{}
	for _, c := range allocCases(t) {
		src, _ := c.source(t)
		files[c.id+"/train.go"] = src
		if c.model.Experts > 0 {
			handed[c.id] = 2 + 2*(c.model.Layers-c.model.Dense)
		}
		table += fmt.Sprintf("\t{%q, %d, %s.Run},\n", c.id, c.model.Vocab, c.id)
	}
	imports := ""
	for i := range allocPlans {
		imports += fmt.Sprintf("\t\"planc.generated/alloc/a%02d\"\n", i)
	}
	files["programs.go"] = []byte("package main\n\nimport (\n" + imports + ")\n\nvar programs = []program{\n" +
		table + "}\n")
	for i, line := range runAsUsers(t, "alloc", files) {
		var got struct {
			ID             string
			Least, Typical int
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		what := strings.TrimSpace(allocPlans[i].model + " " + allocPlans[i].plan)
		t.Logf("%s: %d objects in the quietest step, %d in half of them", what, got.Least, got.Typical)
		if got.Least > handed[got.ID] {
			t.Errorf("%s: every step allocates at least %d objects; %d are allowed", what, got.Least,
				handed[got.ID])
		}
	}
}

// allocCases returns the plans' programs, in f32.
func allocCases(t *testing.T) (cases []lawCase) {
	models := map[string]lawModel{}
	for _, m := range slices.Concat(lawModels(), expertModels(), routedModels()) {
		models[m.name] = m
	}
	for i, x := range allocPlans {
		c := lawCase{id: fmt.Sprintf("a%02d", i), group: x.model, model: models[x.model], optimizer: "adamw",
			elem: ir.F32}
		if c.model.Layers == 0 {
			t.Fatalf("no model %s", x.model)
		}
		c.plan = expertPlan(x.plan, c.model.Layers)
		c.plan.Precision = ir.FullPrecision(ir.F32)
		c.model.Experts *= 4
		if c.model.Experts == 0 { // a list of a few numbers is on the stack, although its length is not constant
			c.plan.EP, c.plan.ETP = 1, 1
		}
		c.plan.MicroBatches = lawBatch / c.plan.DP / c.plan.MicroBatch
		cases = append(cases, c)
	}
	return cases
}
