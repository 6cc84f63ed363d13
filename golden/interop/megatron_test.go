package interop_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
	"github.com/planc-dev/planc/planner"
)

// megatronArgs are the settings that Megatron-LM has after validation.
type megatronArgs map[string]any

func (a megatronArgs) number(dest string) int {
	if n, ok := a[dest].(json.Number); ok {
		i, err := strconv.Atoi(n.String())
		if err == nil {
			return i
		}
	}
	return 0
}

func (a megatronArgs) flag(dest string) bool { return a[dest] == true }

func (a megatronArgs) text(dest string) string {
	if a[dest] == nil {
		return ""
	}
	return fmt.Sprint(a[dest])
}

// command returns the arguments and the environment of a script, as a shell would start its program.
func command(t *testing.T, script []byte) (args []string, env map[string]string) {
	t.Helper()
	s := shell.Eval("run.sh", script, map[string]string{"@": ""})
	launches := s.Launches()
	if len(launches) != 1 || s.Diags != nil {
		t.Fatalf("%d launches, %v\n%s", len(launches), s.Diags, script)
	}
	for _, w := range launches[0].Command.Words[launches[0].Start:] {
		if w.Unknown() != nil {
			t.Fatalf("%s is not known\n%s", s.Shown(&w), script)
		}
		args = append(args, w.Text())
	}
	env = map[string]string{}
	for name, w := range s.Exported {
		env[name] = w.Text()
	}
	return args, env
}

// askMegatron returns what Megatron-LM reads from a script, or why it refuses it.
func askMegatron(t *testing.T, o *oracle, script []byte, devices int) (got megatronArgs, refusal string) {
	t.Helper()
	args, env := command(t, script)
	var answer struct{ Args megatronArgs }
	refusal = o.ask(t, map[string]any{"args": args, "env": env, "world": devices}, &answer)
	return answer.Args, refusal
}

// plan returns the plan that the settings say. Keys that Megatron-LM does not have are the draw's.
func (a megatronArgs) plan(d *draw) ir.Plan {
	p := d.plan // keys that Megatron-LM does not have stay
	p.TP, p.PP, p.CP = a.number("tensor_model_parallel_size"), a.number("pipeline_model_parallel_size"),
		a.number("context_parallel_size")
	p.DP = a.number("data_parallel_size")
	p.EP, p.ETP = a.number("expert_model_parallel_size"), 1
	if p.MoESlack > 0 {
		p.ETP = a.number("expert_tensor_parallel_size")
	}
	p.VPP = max(1, a.number("virtual_pipeline_model_parallel_size"))
	p.SP = a.flag("sequence_parallel")
	p.Schedule, p.CPKind = "none", "none"
	if p.PP > 1 {
		p.Schedule = map[bool]string{true: "interleaved", false: "1f1b"}[p.VPP > 1]
	}
	if p.CP > 1 {
		kinds := map[string]string{"[p2p]": "ring", "[all_gather]": "gather", "[a2a]": "heads"}
		p.CPKind = kinds[a.text("cp_comm_type")]
	}
	a.state(&p)
	p.MicroBatch = a.number("micro_batch_size")
	p.MicroBatches = a.number("global_batch_size") / max(1, p.MicroBatch*p.DP)
	p.StageLayers = a.stages(&p)
	a.recompute(&p)
	p.AxisOrder = space.DefaultOrder(&p)
	if a.flag("use_tp_pp_dp_mapping") {
		p.AxisOrder = strings.ReplaceAll(p.AxisOrder, "dp,pp", "pp,dp")
	}
	return p
}

// state sets how state is sharded.
func (a megatronArgs) state(p *ir.Plan) {
	p.Zero, p.ZeroGroup = 0, 1
	switch {
	case a.flag("use_megatron_fsdp"):
		stages := map[string]int{"optim": 1, "optim_grads": 2, "optim_grads_params": 3}
		p.Zero = stages[a.text("data_parallel_sharding_strategy")]
	case a.flag("use_distributed_optimizer"):
		p.Zero = 1
	}
	if p.Zero > 0 {
		p.ZeroGroup = p.Replicas() / a.number("num_distributed_optimizer_instances")
	}
}

// stages returns the layers of each chunk.
func (a megatronArgs) stages(p *ir.Plan) string {
	counts := []int{}
	if layout := a.text("pipeline_model_parallel_layout"); layout != "" {
		for _, stage := range strings.Split(layout, "|") {
			n := 0
			if at := strings.IndexByte(stage, 't'); at >= 0 {
				n = 1
				if digits, ok := strings.CutPrefix(stage[at+1:], "*"); ok {
					n, _ = strconv.Atoi(strings.Trim(digits, "L"))
				}
			}
			counts = append(counts, n)
		}
		return space.JoinCounts(counts)
	}
	for range p.PP * p.VPP {
		counts = append(counts, a.number("num_layers")/(p.PP*p.VPP))
	}
	return space.JoinCounts(counts)
}

// recompute sets what is recomputed.
func (a megatronArgs) recompute(p *ir.Plan) {
	p.Recompute, p.RecomputeLayers, p.RecomputeEvery, p.RecomputeSplit = "none", 0, 1, false
	switch a.text("recompute_granularity") {
	case "selective":
		p.Recompute, p.RecomputeLayers = "selective", p.LargestChunk()
	case "full":
		p.Recompute = "full"
		n := a.number("recompute_num_layers")
		if a.text("recompute_method") == "uniform" {
			p.RecomputeLayers, p.RecomputeEvery = p.LargestChunk(), n
		} else {
			p.RecomputeLayers = n
		}
		p.RecomputeSplit = a.flag("distribute_saved_activations")
	}
}

// megatronDraws is the number of plans that a test draws.
const megatronDraws = 2000

// A random legal plan is written as a script. Megatron-LM accepts the script, and what it reads is the plan. So is what
// planc imports from the script.
func TestMegatronReadsLegalPlans(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "megatron")
	r := rand.New(rand.NewPCG(24, 2))
	refused := newDifferences()
	unwritten := map[string]int{}
	for i := range megatronDraws {
		limits := jobLimits{engine: "megatron"}
		if i%5 == 0 {
			limits.engine = "megatron-fsdp"
		}
		d := drawLegal(t, r, limits)
		script, err := megatron.Write(d.target())
		if err != nil {
			unwritten[err.Error()]++
			continue
		}
		got, refusal := askMegatron(t, o, script, d.question.Hardware.Devices())
		if refusal != "" {
			refused.add(reasonOf(refusal), d.String()+"\n"+string(script))
			continue
		}
		if p := got.plan(d); p != d.plan {
			t.Fatalf("Megatron-LM reads\n%s\nof\n%s\n%s", p.Text(), d, script)
		}
		holdImport(t, d, script)
	}
	t.Log(unwritten)
	refused.compare(t, map[string]string{})
}

// The layers of DeepSeek-V3 do not divide over any pipeline. The search balances the stages, and Megatron-LM and planc
// read the plan from the script.
func TestMegatronReadsUnevenStages(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "megatron")
	const job = "model: deepseek-v3\ntrain: {seq_len: 4096, global_batch: 1024, engine: megatron}\n" +
		"cluster: {node: dgx-h100, nodes: 64}\n"
	for _, vpp := range []string{"1", "2"} {
		text := job + "plan: {vpp: " + vpp + ", pp: [2, 4, 8, 16]}\n"
		q, err := planner.Load("job.yaml", func(string) ([]byte, error) { return []byte(text), nil })
		if err != nil {
			t.Fatal(err)
		}
		best, err := planner.BestOf(q, nil)
		if err != nil || best.Plan == nil {
			t.Fatalf("vpp %s: %s, %v", vpp, best.Message, err)
		}
		d := &draw{question: q, problem: q.Problem(), plan: best.Plan.Plan}
		if !d.isUneven() {
			t.Errorf("vpp %s: %s", vpp, d)
		}
		script, err := megatron.Write(d.target())
		if err != nil {
			t.Fatalf("%v\n%s", err, d)
		}
		got, refusal := askMegatron(t, o, script, q.Hardware.Devices())
		if refusal != "" {
			t.Fatalf("%s\n%s", refusal, script)
		}
		if p := got.plan(d); p != d.plan {
			t.Errorf("Megatron-LM reads\n%s\nof\n%s\n%s", p.Text(), d, script)
		}
		holdImport(t, d, script)
	}
}

// holdImport checks that planc reads a drawn plan from a script.
func holdImport(t *testing.T, d *draw, script []byte) {
	t.Helper()
	im, err := megatron.Import([]interop.File{{Name: "run.sh", Data: script}}, interop.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	for key, want := range space.KeyValues(d.plan) {
		f, ok := im.Field("plan." + key)
		got := strings.NewReplacer("[", "", "]", "", ", ", ",").Replace(f.Value)
		if ok && got != want {
			t.Fatalf("plan.%s: imported %s\n%s\n%s", key, got, d, script)
		}
		if !ok && slices.Contains([]string{"tp", "pp", "cp", "vpp", "zero", "micro_batch", "recompute"}, key) {
			t.Fatalf("plan.%s is not imported\n%s", key, script)
		}
	}
}

// reasonOf returns a refusal without its numbers, so that refusals can be counted.
func reasonOf(refusal string) string {
	var b strings.Builder
	for _, c := range refusal {
		if c >= '0' && c <= '9' {
			c = 'N'
		}
		b.WriteRune(c)
	}
	text := b.String()
	for _, many := range []string{"NN", "N,N"} {
		for strings.Contains(text, many) {
			text = strings.ReplaceAll(text, many, "N")
		}
	}
	const limit = 160
	return text[:min(limit, len(text))]
}
