package docs_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

const outputPage = "docs/output.md"

var keyCell = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")

// keysOf returns the keys in the first cells of a section's table.
func keysOf(section string) map[string]bool {
	keys := map[string]bool{}
	for _, m := range keyCell.FindAllStringSubmatch(section, -1) {
		for k := range strings.SplitSeq(m[1], ", ") {
			keys[strings.Trim(k, "`")] = true
		}
	}
	return keys
}

// describedElsewhere lists keys whose values the page describes elsewhere, or not key by key.
var describedElsewhere = []string{"plan", "alternatives[].plan", "alternatives[].predict", "why_not", "rows[].plan",
	"rows[].weak.plan", "rows[].weak.predict", "rows[].near_batch.set", "rows[].near_batch.plan",
	"rows[].near_batch.predict", "goal.near_batch.set", "clusters[].source", "clusters[].peak_tflops",
	"error.nearest[].set", "error.nearest[].predict",
	"room.plan", "room.predict", "fastest.set", "fastest.plan", "fastest.predict", "simpler.set", "simpler.plan",
	"simpler.predict", "faster.set", "faster.plan", "faster.predict", "choices[].rest_free.plan", "levers[].set",
	"levers[].plan", "rules[].plan", "yours.plan", "yours.predict", "best.plan", "best.predict", "edits[].set",
	"edits[].from", "edits[].plan", "edits[].predict", "changes[].set", "changes[].plan", "changes[].predict", "uses",
	"engines[].plan", "engines[].predict", "replan.plan", "replan.predict"}

// paths adds the dotted keys of a document's values; a list has the keys of its elements.
func paths(v any, at string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if !slices.Contains(describedElsewhere, at) {
			for k, x := range v {
				paths(x, strings.TrimPrefix(at+"."+k, "."), into)
			}
			return
		}
	case []any:
		for _, x := range v {
			paths(x, at+"[]", into)
		}
		if len(v) > 0 {
			return
		}
	}
	into[at] = true
}

// docs/output.md lists exactly the keys that planc prints.
func TestOutputPage(t *testing.T) {
	page := sections(harness.DocPages(t)[outputPage])
	w := newWorld(t, harness.Planc(t), "output")
	call := func(name string, args ...string) []byte {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = w.dir, w.env
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 2) {
			t.Fatalf("%s %v: %v", name, args, err)
		}
		return out
	}
	ask := func(into map[string]bool, args ...string) {
		var doc any
		if err := json.Unmarshal(call(w.planc, args...), &doc); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		paths(doc, "", into)
	}
	question := []string{"--json", "--model", "llama3-8b", "--cluster", "dgx-h100", "--global-batch", "128",
		"--seq-len", "8192"}
	plan, explain, failure := map[string]bool{}, map[string]bool{}, map[string]bool{}
	ask(plan, append([]string{"plan", "--devices", "4"}, question...)...)
	long := append([]string{"plan", "--tokens", "1T", "--days", "100", "--objective", "devices", "--nodes", "16"},
		question...)
	ask(plan, long...)
	// with values that do not fit
	ask(plan, append([]string{"plan", "--set", "plan.tp=1", "--set", "plan.pp=1"}, question...)...)
	ask(plan, "plan", "--json", "--model", "llama2-13b", "--cluster", "dgx-h100", "--global-batch", "128", "--seq-len",
		"4096", "--set", "objective.headroom=0", "--set", "objective.prefer=fastest")
	ask(plan, "plan", "--json", "--model", "gpt2-124m", "--cluster", "dgx-a100", "--global-batch", "480",
		"--seq-len", "1024", "--set", "train.optimizer.lr=3") // with a note
	ask(plan, "plan", "--json", "--model", "gpt2-774m", "--cluster", "rtx-4090", "--nodes", "3", "--devices", "7",
		"--global-batch", "22", "--seq-len", "1024")
	// the answer has 54 nodes
	odd := []string{"--json", "--model", "llama3-70b", "--cluster", "dgx-h200", "--global-batch", "512",
		"--seq-len", "8192"}
	ask(plan, append([]string{"plan", "--nodes", "60", "--objective", "devices", "--set", "objective.rate=410e3"},
		odd...)...)
	delete(plan, "alternatives[].no_fit") // null of those that fit
	sweep, models, clusters, doctor := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	ask(sweep, append([]string{"plan", "--sweep", "gpus=1,8,12,16", "--tokens", "1T"}, question...)...)
	ask(sweep, append([]string{"plan", "--sweep", "gpus=432"}, odd...)...)
	for _, k := range []string{"rows[].plan", "rows[].training", "rows[].cluster", "rows[].no_fit"} {
		delete(sweep, k) // null in rows that have none
	}
	maps.DeleteFunc(sweep, func(k string, _ bool) bool { return strings.HasPrefix(k, "rows[].predict") || plan[k] })
	ask(models, "models", "--json")
	ask(clusters, "clusters", "--json")
	ask(doctor, "doctor", "--json")
	delete(models, "models[].aliases[]")
	delete(clusters, "clusters[].aliases[]")
	ask(explain, append([]string{"explain", "--why-not", "tp=4"}, question...)...)
	maps.DeleteFunc(explain, func(k string, _ bool) bool {
		return plan[k] || k == "alternatives[].no_fit" || k == "choices[].rest_free" // null of some
	})
	ask(failure, append([]string{"plan", "--set", "objective.headroom=0.9"}, question...)...)
	ask(failure, append([]string{"plan", "--set", "plan.tp=3"}, question...)...)
	delete(failure, "error.diagnostics")
	delete(failure, "error.nearest")
	check, compared := checkKeys(t, w, ask), map[string]bool{}
	ask(compared, append([]string{"plan", "--engines", "megatron"}, question...)...)
	maps.DeleteFunc(compared, func(k string, _ bool) bool { return plan[k] })
	difference := map[string]bool{}
	for name, more := range map[string]string{"a.yaml": "", "b.yaml": "plan: {tp: 8}\n"} {
		if err := os.WriteFile(filepath.Join(w.dir, name),
			[]byte("model: llama3-8b\ntrain: {global_batch: 128, seq_len: 8192}\ncluster: 1xdgx-h100\n"+more),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	ask(difference, "diff", "a.yaml", "b.yaml", "--json")
	maps.DeleteFunc(difference, func(k string, _ bool) bool {
		return strings.HasPrefix(k, "b.") || strings.HasPrefix(k, "a.predict.") || strings.HasPrefix(k, "a.plan.")
	})
	analysis := map[string]bool{}
	for name, text := range map[string]string{"ran.yaml": cliJob, "ran.jsonl": ranMetrics} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ask(analysis, "explain", "ran.yaml", "--json", "--no-measure", "--analyze", "ran.jsonl")
	for section, existing := range map[string]map[string]bool{"planc diff --json": difference,
		"planc explain --analyze --json": analysis,
		"planc check --json":             check, "planc plan --engines --json": compared,
		"planc plan --json":    plan,
		"planc explain --json": explain, "Failures": failure,
		"planc plan --sweep --json": sweep, "planc models --json": models, "planc clusters --json": clusters,
		"planc doctor --json": doctor} {
		if listed := keysOf(page[section]); !maps.Equal(listed, existing) {
			t.Errorf("%s: %q has %v\nand not %v", outputPage, section,
				missingFrom(listed, existing), missingFrom(existing, listed))
		}
	}
	for section, job := range map[string][]string{"metrics.jsonl": {"planc", cliJob},
		"metrics.jsonl with experts": {"experts", expertsJob}} {
		name := job[0]
		if err := os.WriteFile(filepath.Join(w.dir, name+".yaml"), []byte(job[1]), 0o666); err != nil {
			t.Fatal(err)
		}
		call(w.planc, "run", name+".yaml", "--set", "data.valid=0.05", "--set", "train.steps=2")
		existing := metricsOf(t, filepath.Join(w.dir, "runs", name, "metrics.jsonl"))
		listed := keysOf(page[section])
		if section != "metrics.jsonl" {
			listed = keysOf(page["metrics.jsonl"] + page[section])
		}
		if !maps.Equal(listed, existing) {
			t.Errorf("%s: %s has %v\nand not %v", outputPage, section,
				missingFrom(listed, existing), missingFrom(existing, listed))
		}
	}
}

// expertsJob is a small job with experts.
const expertsJob = `
model: {model_type: mixtral, vocab_size: 256, max_position_embeddings: 8, hidden_size: 8, num_hidden_layers: 1, num_attention_heads: 1,
  num_key_value_heads: 1, intermediate_size: 8, num_local_experts: 4}
data: {train: [goroot:src/testdata/Isaac.Newton-Opticks.txt]}
train: {seq_len: 8, global_batch: 1, steps: 1, experts: {balance: 0.1}}
cluster: 1xcpu
`

// ranMetrics are the metrics of two steps of cliJob, much slower than predicted.
const ranMetrics = `{"attempt":1,"step":1,"tokens":8,"step_s":9}
{"attempt":1,"step":2,"tokens":16,"step_s":9,"memory_bytes":1,"time_s":{"compute":8,"other":1},"busy_s":[8,7],"wait_s":[0,1]}
`

// metricsOf returns the keys in a run's metrics lines.
func metricsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var doc any
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatal(err)
		}
		paths(doc, "", keys)
	}
	return keys
}

// missingFrom returns the keys of a that b does not have, sorted.
func missingFrom(a, b map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(k string) bool { return b[k] })
}

// checkKeys returns the keys of planc check --json, for scripts whose plans are fine, illegal, and too large.
func checkKeys(t *testing.T, w *world, ask func(map[string]bool, ...string)) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	const script = "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 " +
		"--num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 8192 " +
		"--max-position-embeddings 8192 --swiglu --normalization RMSNorm --position-embedding-type rope " +
		"--disable-bias-linear --untie-embeddings-and-output-weights --vocab-size 128256 " +
		"--tokenizer-type NullTokenizer --bf16 --use-distributed-optimizer --global-batch-size 128 " +
		"--micro-batch-size 1 --overlap-grad-reduce --recompute-granularity full --recompute-method uniform " +
		"--recompute-num-layers 1 "
	for _, plan := range []string{"--tensor-model-parallel-size 8", "--tensor-model-parallel-size 3",
		"--tensor-model-parallel-size 1"} {
		if err := os.WriteFile(filepath.Join(w.dir, "run.sh"), []byte(script+plan+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		ask(keys, "check", "run.sh", "--cluster", "dgx-h100", "--fail-slower", "900%", "--json")
	}
	const partial = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n" +
		"num_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n" +
		"  fsdp_versoin: 2\n" // does not say the micro-batch
	if err := os.WriteFile(filepath.Join(w.dir, "accelerate.yaml"), []byte(partial), 0o666); err != nil {
		t.Fatal(err)
	}
	ask(keys, "check", "accelerate.yaml", "--model", "llama3-8b", "--cluster", "dgx-h100", "--seq-len", "8192",
		"--global-batch", "128", "--json")
	for _, k := range []string{"rules", "yours", "no_fit", "edits[].no_fit", "changes", "why", "env", "notes",
		"warnings", "env_yours"} {
		delete(keys, k) // null or empty in some
	}
	return keys
}
