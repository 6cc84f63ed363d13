package docs_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// promised are the keys of --json in the contract, by document and object, with the kind of each value: integer
// (counts and bytes), number (seconds, rates), fraction (below 2, never per cent), text, truth, object, or a list of
// one of these. A kind that begins with ? may be null. Keys may be added, but never removed.
var promised = map[string]map[string]string{
	"plan": {
		"": "schema integer, planc text, lock text, model object, cluster object, engine text, plan object, " +
			"fits truth, stage integer, guessed []object, predict object, search object, alternatives []object",
		"model":     "name text, params integer, params_active integer, layers integer",
		"cluster":   "name text, gpu text, devices integer, nodes integer",
		"guessed[]": "path text, value text, why text",
		"plan": "dp integer, tp integer, pp integer, cp integer, ep integer, etp integer, vpp integer, sp truth, " +
			"cp_kind text, zero integer, zero_group integer, micro_batch integer, " +
			"micro_batches integer, schedule text, recompute text, recompute_layers integer, recompute_every " +
			"integer, recompute_split truth, stage_layers []integer, axis_order []text, " +
			"offload []text, moe_slack number, precision object",
		"plan.precision": "compute text, params text, grads text, reduce text, master text, moments text",
		"predict": "step_s number, step_s_low number, step_s_high number, tokens_per_s number, tokens_per_s_per_gpu " +
			"number, model_tflops_per_gpu number, hardware_tflops_per_gpu number, " +
			"mfu fraction, flops_formula text, bytes_per_param number, fit_probability fraction, time object, " +
			"memory_bytes object",
		"predict.time": "compute number, recompute number, tp_comm number, cp_comm number, ep_comm number, " +
			"pp_comm number, pp_bubble number, dp_comm number, optimizer number, offload number, other number",
		"predict.memory_bytes": "total integer, capacity integer, params integer, grads integer, optimizer integer, " +
			"activations integer, workspace integer, comm integer, overhead integer, overhead_parts object",
		"predict.memory_bytes.overhead_parts": "context integer, communicators integer, workspaces integer",
		"search": "space integer, infeasible integer, bounded integer, priced integer, simulated " +
			"integer, seconds number",
		"alternatives[]":        "plan object, predict object, slower_by ?fraction, no_fit ?object",
		"alternatives[].no_fit": "over_bytes integer, part text, stage integer",
	},
	"explain": {
		"": "choices []object, binding object, levers []object, rules []object, error_bar object, " +
			"why_not object",
		"choices[]": "name text, taken value, runner_up value, verdict text, slower_by ?fraction, over_bytes " +
			"?integer, part text, message text",
		"binding": "resource text, slack_bytes integer", "levers[]": "set object, speedup fraction",
		"rules[]": "rule text, verdict text, slower_by ?fraction", "error_bar": "rows integer, like text",
	},
	"no plan fits": {"error": "code text, message text, diagnostics []object, nearest []object",
		"error.nearest[]": "set object, predict object"},
	"wrong job": {"error": "code text, message text, diagnostics []object",
		"error.diagnostics[]": "file text, line integer, column integer, code text, message text, fix text"},
	"validate": {
		"": "rows []object, skipped []object, summary object, memory object, fit object, by_source object",
		"rows[]": "row integer, source text, predicted number, measured ?number, error ?number, memory_error " +
			"?number, fits truth, measured_fits truth",
		"skipped[]": "row integer, reason text",
		"summary": "n integer, median_ape ?fraction, mean_ape ?fraction, bias ?number, spearman ?number, " +
			"pair_order ?fraction, regret ?number",
		"memory": "n integer, median_ape ?fraction, mean_ape ?fraction, bias ?number",
		"fit":    "n integer, balanced_accuracy ?fraction",
		"by_source.here": "n integer, median_ape ?fraction, mean_ape ?fraction, bias ?number, spearman ?number, " +
			"pair_order ?fraction, regret ?number",
	},
}

// isOf reports whether a value has the kind of the contract. A number of a document is kept as its text.
func isOf(v any, kind string) bool {
	if null, ok := strings.CutPrefix(kind, "?"); ok {
		return v == nil || isOf(v, null)
	}
	if element, ok := strings.CutPrefix(kind, "[]"); ok {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(x any) bool { return !isOf(x, element) })
	}
	switch x := v.(type) {
	case string:
		return kind == "text" || kind == "value"
	case bool:
		return kind == "truth" || kind == "value"
	case map[string]any:
		return kind == "object"
	case json.Number:
		f, err := x.Float64()
		_, notWhole := x.Int64()
		return err == nil && (kind == "number" || kind == "value" || kind == "integer" && notWhole == nil ||
			kind == "fraction" && math.Abs(f) < 2)
	}
	return false
}

// objectsAt returns the objects at a path such as alternatives[].plan, without nulls.
func objectsAt(v any, path string) (found []map[string]any) {
	if list, ok := v.([]any); ok {
		for _, x := range list {
			found = append(found, objectsAt(x, path)...)
		}
		return found
	}
	object, ok := v.(map[string]any)
	if !ok || path == "" {
		return map[bool][]map[string]any{true: {object}}[ok]
	}
	key, rest, _ := strings.Cut(path, ".")
	return objectsAt(object[strings.TrimSuffix(key, "[]")], rest)
}

// Every key of the contract is in the output of a real run, with the right kind, and parts add up.
func TestContractedJSON(t *testing.T) {
	w := newWorld(t, harness.Planc(t), "contract")
	if err := os.WriteFile(filepath.Join(w.dir, "rows.csv"),
		[]byte(
			"source,model,gpu,num_gpus,dp,tp,pp,global_batch,seq_len,micro_batch,precision,measured_step_s,measured_mem_gb_per_gpu\n"+
				"here,llama3-8b,H100-SXM-80GB,8,8,1,1,128,8192,1,bf16,14,70\nhere,llama3-8b,H100-SXM-80GB,8,4,2,1,128,8192,1,bf16,15,70\nhere,nosuch,H100-SXM-80GB,8,8,1,1,128,8192,1,bf16,14,70\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	question := []string{"--json", "--model", "llama3-8b", "--cluster", "dgx-h100", "--global-batch", "128",
		"--seq-len", "8192"}
	for name, args := range map[string][]string{
		"plan":         append([]string{"plan", "--set", "plan.tp=1", "--set", "plan.pp=1"}, question...),
		"explain":      append([]string{"explain", "--why-not", "tp=4"}, question...),
		"no plan fits": append([]string{"plan", "--set", "objective.headroom=0.9"}, question...),
		"wrong job":    append([]string{"plan", "--set", "plan.tp=x"}, question...),
		"validate":     {"validate", "rows.csv", "--json"},
	} {
		cmd := exec.Command(w.planc, args...)
		cmd.Dir, cmd.Env = w.dir, w.env
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(name, err)
		}
		var doc any
		dec := json.NewDecoder(strings.NewReader(string(out)))
		dec.UseNumber()
		if dec.Decode(&doc) != nil || dec.More() {
			t.Fatalf("%s: not one document: %s", name, out)
		}
		for at, keys := range promised[name] {
			holds(t, name+" "+at, objectsAt(doc, at), keys)
		}
		if name == "plan" {
			addUp(t, doc)
		}
	}
}

// holds fails unless there is an object, and every object has every key.
func holds(t *testing.T, name string, objects []map[string]any, keys string) {
	t.Helper()
	if len(objects) == 0 {
		t.Errorf("%s: no such object", name)
	}
	for key := range strings.SplitSeq(keys, ", ") {
		key, kind, _ := strings.Cut(key, " ")
		for _, o := range objects {
			if v, ok := o[key]; !ok || !isOf(v, kind) {
				t.Errorf("%s: %s is %v, there: %t; want %s", name, key, v, ok, kind)
				break
			}
		}
	}
}

// addUp fails unless a step is the sum of its times, memory the sum of its parts, and the space the sum of the counts
// of its plans.
func addUp(t *testing.T, doc any) {
	t.Helper()
	sum := func(at string, keys ...string) (total float64) {
		o := objectsAt(doc, at)[0]
		for _, k := range keys {
			f, err := o[k].(json.Number).Float64()
			if err != nil {
				t.Error(err)
			}
			total += f
		}
		return total
	}
	keysAt := func(at string, but ...string) (keys []string) {
		for k := range objectsAt(doc, at)[0] {
			if !slices.Contains(but, k) {
				keys = append(keys, k)
			}
		}
		return keys
	}
	for what, c := range map[string][2]float64{
		"step_s": {sum("predict", "step_s"), sum("predict.time", keysAt("predict.time")...)},
		"memory": {sum("predict.memory_bytes", "total"), sum("predict.memory_bytes", keysAt("predict.memory_bytes",
			"total", "capacity", "overhead_parts")...)},
		"overhead": {sum("predict.memory_bytes", "overhead"), sum("predict.memory_bytes.overhead_parts",
			"context", "communicators", "workspaces")},
		"space": {sum("search", "space"), sum("search", "infeasible", "bounded", "priced")},
	} {
		if math.Abs(c[0]-c[1]) > 1e-5*c[0] {
			t.Errorf("%s is %v, its parts add up to %v", what, c[0], c[1])
		}
	}
}
