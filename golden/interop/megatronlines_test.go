package interop_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// A line that Megatron-LM accepts, spelled as users spell it, is imported and exported again. Megatron-LM reads the
// same plan of both.
func TestMegatronLinesSurvive(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "megatron")
	r := rand.New(rand.NewPCG(24, 4))
	rewritten := map[string]int{}
	for range megatronDraws / 4 {
		d := drawLegal(t, r, jobLimits{engine: "megatron"})
		script, err := megatron.Write(d.target())
		if err != nil {
			t.Fatal(err)
		}
		line := []byte(respell(r, d, string(script), rewritten))
		before, refusal := askMegatron(t, o, line, d.question.Hardware.Devices())
		if refusal != "" {
			t.Fatalf("%s\n%s", refusal, line)
		}
		im, err := megatron.Import([]interop.File{{Name: "run.sh", Data: line}}, interop.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		target := d.target()
		target.Plan = planOf(t, d, im)
		exported, err := megatron.Write(target)
		if err != nil {
			t.Fatal(err)
		}
		after, refusal := askMegatron(t, o, exported, d.question.Hardware.Devices())
		if refusal != "" {
			t.Fatalf("%s\n%s", refusal, exported)
		}
		if a, b := after.plan(d), d.plan; a != b {
			t.Fatalf("%s\nbecomes\n%s\n%s\n%s\n%s", b.Text(), a.Text(), target.Plan.Text(), line, exported)
		}
		if before.number("data_parallel_size") != after.number("data_parallel_size") {
			t.Fatalf("dp %s\n%s", before.text("data_parallel_size"), line)
		}
	}
	t.Log(rewritten)
	for _, kind := range []string{"per stage", "activations", "first", "block", "equals", "shuffled"} {
		if rewritten[kind] == 0 {
			t.Errorf("no line was respelled as %q: %v", kind, rewritten)
		}
	}
}

// respell writes a script in other words with the same meaning.
func respell(r *rand.Rand, d *draw, script string, done map[string]int) string {
	p := &d.plan
	replace := func(kind, from, to string) {
		if r.IntN(2) == 0 && strings.Contains(script, from) {
			script = strings.Replace(script, from, to, 1)
			done[kind]++
		}
	}
	counts := space.ParseCounts(p)
	even := isEqual(counts)
	if even && p.VPP > 1 {
		replace("per stage", fmt.Sprintf("--num-virtual-stages-per-pipeline-rank %d", p.VPP),
			fmt.Sprintf("--num-layers-per-virtual-pipeline-stage %d", counts[0]))
	} else if !even && p.VPP == 1 && len(counts) > 1 && isEqual(counts[1:]) && counts[0] > 0 {
		start := strings.Index(script, "--pipeline-model-parallel-layout")
		layout, _, _ := strings.Cut(script[start:], "\n")
		replace("first", layout, fmt.Sprintf("--decoder-first-pipeline-num-layers %d", counts[0]))
	}
	replace("activations", "--recompute-granularity selective", "--recompute-activations")
	if p.RecomputeEvery == 1 {
		replace("block", "--recompute-method uniform\n    --recompute-num-layers 1\n",
			fmt.Sprintf("--recompute-method block\n    --recompute-num-layers %d\n", p.LargestChunk()))
	}
	replace("equals", fmt.Sprintf("--tensor-model-parallel-size %d", p.TP),
		fmt.Sprintf("--tensor-model-parallel-size=%d", p.TP))
	start := strings.Index(script, "PARALLEL_ARGS=(\n") + len("PARALLEL_ARGS=(\n")
	end := start + strings.Index(script[start:], ")\n")
	lines := strings.SplitAfter(script[start:end], "\n")
	lines = lines[:len(lines)-1]
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	done["shuffled"]++
	return script[:start] + strings.Join(lines, "") + script[end:]
}

// isEqual reports whether all numbers are the same.
func isEqual(counts []int) bool { return slices.Max(counts) == slices.Min(counts) }

// planOf returns the plan that an import says. What Megatron-LM does not say is the draw's.
func planOf(t *testing.T, d *draw, im *interop.Import) ir.Plan {
	t.Helper()
	p := d.plan
	for _, key := range ir.PlanKeys() {
		f, ok := im.Field("plan." + key)
		if !ok {
			continue
		}
		value := strings.NewReplacer("[", "", "]", "", ", ", ",").Replace(f.Value)
		if err := p.SetKey(key, value); err != nil {
			t.Fatal(err)
		}
	}
	chunks := p.PP * p.VPP
	if !im.Has("plan.stage_layers") {
		counts := make([]int, chunks)
		for i := range counts {
			counts[i] = space.DimsOf(d.problem.Model).Layers / chunks
		}
		p.StageLayers = space.JoinCounts(counts)
	}
	return p
}

// The table of options is that of the parser. Columns use and note are planc's.
func TestMegatronOptions(t *testing.T) {
	o := startOracle(t, "megatron")
	var got struct {
		Options []struct {
			Strings              []string
			Dest, Action, Type   string
			Group                string
			Choices              []any
			Default, Nargs, Help any
		}
	}
	if refusal := o.ask(t, map[string]any{"call": "options"}, &got); refusal != "" {
		t.Fatal(refusal)
	}
	table := map[string]*megatron.Option{}
	for _, option := range megatron.Options() {
		table[option.Name] = option
	}
	const least = 800
	if len(table) < least {
		t.Errorf("the table has %d options", len(table))
	}
	for _, want := range got.Options {
		if want.Dest == "help" {
			continue
		}
		name := want.Strings[0]
		option := table[name]
		if option == nil {
			t.Errorf("%s is not in the table", name)
			continue
		}
		delete(table, name)
		arity := "1"
		if want.Nargs != nil {
			arity = fmt.Sprint(want.Nargs)
		}
		if want.Action == "BooleanOptionalAction" {
			arity = "0"
		}
		names := append([]string{option.Name}, option.Aliases...)
		if option.Dest != want.Dest || option.Arity != arity || option.Group != want.Group ||
			!slices.Equal(names, want.Strings) || len(option.Choices) != len(want.Choices) {
			t.Errorf("%s is %+v in the table, and %+v in the parser", name, option, want)
		}
		isDefault := want.Default == nil && option.Default == "" || option.Default == fmt.Sprint(want.Default) ||
			strings.HasPrefix(option.Default, "[")
		if !isDefault && want.Default != nil {
			t.Errorf("%s: default %q in the table, %v in the parser", name, option.Default, want.Default)
		}
	}
	for name := range table {
		t.Errorf("%s is not in the parser", name)
	}
}
