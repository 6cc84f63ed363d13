package interop_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/interop/migrate"
)

// dependentOptions are options that Megatron-LM accepts with some plans, and what some of them need. planc prices none
// of them.
var dependentOptions = []string{
	"--tp-comm-overlap", "--overlap-p2p-communication-warmup-flush", "--no-overlap-p2p-communication",
	"--defer-embedding-wgrad-compute", "--no-gradient-accumulation-fusion",
	"--overlap-moe-expert-parallel-comm --moe-token-dispatcher-type alltoall", "--overlap-moe-expert-parallel-comm",
	"--overlap-moe-expert-parallel-comm --delay-wgrad-compute --moe-token-dispatcher-type alltoall",
	"--delay-wgrad-compute", "--ep-overlap-early-attn-memory-release",
	"--overlap-moe-expert-parallel-comm --moe-token-dispatcher-type alltoall --ep-overlap-early-attn-memory-release",
	"--overlap-param-gather-with-optimizer-step --ckpt-format torch", "--overlap-param-gather-with-optimizer-step",
	"--enable-cuda-graph", "--external-cuda-graph", "--cuda-graph-impl local", "--cuda-graph-impl transformer_engine",
	"--cuda-graph-impl local --cuda-graph-modules attn", "--enable-cuda-graph --moe-layer-recompute",
	"--attention-dropout 0.1", "--hidden-dropout 0.1", "--cpu-offloading-num-layers 1", "--moe-layer-recompute",
	"--hierarchical-context-parallel-sizes 2 2", "--hybrid-context-parallel --calculate-per-token-loss",
	"--init-model-with-meta-device", "--fp8-format hybrid --fp8-param-gather",
	"--check-weight-hash-across-dp-replicas-interval 10",
	"--cross-entropy-loss-fusion --cross-entropy-fusion-impl te",
	"--attention-backend flash --flash-attention-version 3 --batch-invariant-mode --attention-dropout 0",
}

// A random legal script gets random options that depend on the plan. planc refuses it if Megatron-LM does, and only
// then. If both accept it, it is edited for another legal plan: Megatron-LM accepts what results, reads that plan, and
// would refuse each option that left, or read another plan with it.
func TestMegatronOptionsFollowEdits(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "megatron")
	r := rand.New(rand.NewPCG(24, 34))
	counts, wrong := map[string]int{}, newDifferences()
	for i := range megatronDraws {
		limits := jobLimits{engine: "megatron"}
		if i%5 == 0 {
			limits.engine = "megatron-fsdp"
		}
		d := drawLegal(t, r, limits)
		script, err := megatron.Write(d.target())
		if err != nil {
			continue
		}
		var options []string
		for range 1 + r.IntN(3) {
			options = append(options, pick(r, dependentOptions...))
		}
		script = withOptions(script, strings.Join(options, " "))
		if agreeOnScript(t, o, d, script, counts, wrong) {
			followEdit(t, o, r, d, script, limits, counts, wrong)
		}
	}
	t.Log(counts)
	wrong.compare(t, map[string]string{})
	for _, name := range []string{"refused", "accepted", "edited", "--tp-comm-overlap",
		"--overlap-p2p-communication-warmup-flush", "--defer-embedding-wgrad-compute", "--enable-cuda-graph",
		"--overlap-param-gather-with-optimizer-step", "--cpu-offloading-num-layers", "--cuda-graph-impl"} {
		if counts[name] == 0 {
			t.Errorf("%s: none of %d draws", name, megatronDraws)
		}
	}
}

// withOptions adds options at the end of a script's command.
func withOptions(script []byte, options string) []byte {
	return []byte(strings.TrimSuffix(strings.TrimSuffix(string(script), "\n"), `"$@"`) + options + "\n")
}

// agreeOnScript reports whether planc and Megatron-LM accept a script, on which they agree.
func agreeOnScript(t *testing.T, o *oracle, d *draw, script []byte, counts map[string]int, wrong *differences) bool {
	t.Helper()
	_, refusal := askMegatron(t, o, script, d.question.Hardware.Devices())
	_, err := megatron.Import([]interop.File{{Name: "run.sh", Data: script}}, interop.Options{})
	if (refusal == "") != (err == nil) {
		wrong.add(fmt.Sprintf("Megatron-LM: %q; planc: %v", reasonOf(refusal), err), d.String()+"\n"+string(script))
		return false
	}
	counts[map[bool]string{true: "accepted", false: "refused"}[err == nil]]++
	return err == nil
}

// followEdit edits a script for another plan and asks Megatron-LM about it.
func followEdit(t *testing.T, o *oracle, r *rand.Rand, d *draw, script []byte, limits jobLimits,
	counts map[string]int, wrong *differences) {
	t.Helper()
	to := *d
	const tries = 60
	for range tries {
		to.drawPlan(r, limits)
		if len(to.broken()) == 0 {
			break
		}
	}
	if len(to.broken()) > 0 {
		return
	}
	like := []interop.File{{Name: "run.sh", Data: script}}
	out, err := migrate.Export(formats.Find("megatron"), to.question, to.plan, like, interop.Options{})
	if err != nil {
		counts["not expressed"]++
		return
	}
	counts["edited"]++
	ask := func(text []byte) (refusal, plan string) {
		if to.plan.TP > 1 || to.plan.CP > 1 {
			text = append([]byte("export CUDA_DEVICE_MAX_CONNECTIONS=1\n"), text...) // planc's note says so
		}
		if limits.engine == "megatron-fsdp" {
			text = append(text[:0:0], strings.ReplaceAll(string(text), "CUDA_DEVICE_MAX_CONNECTIONS=1", "A=1")...)
		}
		got, refusal := askMegatron(t, o, text, to.question.Hardware.Devices())
		return refusal, got.planOrNone(&to)
	}
	refusal, plan := ask(out.Text)
	if refusal != "" || plan != to.plan.Text() {
		wrong.add(fmt.Sprintf("edited: %q", reasonOf(refusal)), fmt.Sprintf("reads\n%s\nof\n%s\n%s\nfrom\n%s\n%s", plan,
			to.plan.Text(), out.Text, d, script))
		return
	}
	before, after := optionsOf(t, script), optionsOf(t, out.Text)
	for _, note := range out.Notes {
		_, words, isLeft := strings.Cut(note, "the edit removes ")
		name, _, _ := strings.Cut(words, ",")
		if !isLeft {
			continue
		}
		counts[name]++
		if _, stays := after[name]; stays {
			wrong.add("stays: "+name, string(out.Text))
		}
		back := withOptions(out.Text, strings.TrimSpace(name+" "+before[name]))
		if refusal, plan := ask(back); refusal == "" && plan == to.plan.Text() && name != "--moe-layer-recompute" {
			wrong.add(note+": Megatron-LM accepts it", fmt.Sprintf("%s\nfrom\n%s\n%s", out.Text, d, script))
		}
	}
}

// planOrNone returns the plan that the settings say as text; "" if Megatron-LM refused them.
func (a megatronArgs) planOrNone(d *draw) string {
	if a == nil {
		return ""
	}
	p := a.plan(d)
	if p.Replicas() == 1 {
		p.Zero = d.plan.Zero // sharding over one rank is none
	}
	return p.Text()
}

// optionsOf returns the options of a script's command with their values.
func optionsOf(t *testing.T, script []byte) map[string]string {
	t.Helper()
	args, _ := command(t, script)
	out, last := map[string]string{}, ""
	for _, arg := range args {
		if strings.HasPrefix(arg, "--") {
			last = arg
			out[last] = ""
			continue
		}
		out[last] = strings.TrimSpace(fmt.Sprint(out[last], " ", arg))
	}
	return out
}
