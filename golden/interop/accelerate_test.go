package interop_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/hf"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// accelerateConfig is what `accelerate launch` makes of a file before it starts processes.
type accelerateConfig struct {
	Kind      string            `json:"distributed_type"`
	Processes int               `json:"num_processes"`
	Machines  int               `json:"num_machines"`
	Mixed     string            `json:"mixed_precision"`
	DeepSpeed map[string]string `json:"deepspeed"`
	Sizes     map[string]int    `json:"sizes"`
	Env       map[string]string `json:"env"`
}

// askAccelerate lets Accelerate read a file.
func askAccelerate(t *testing.T, o *oracle, text string) (got accelerateConfig, refusal string) {
	t.Helper()
	var answer struct{ Config accelerateConfig }
	refusal = o.ask(t, map[string]any{"text": text}, &answer)
	return answer.Config, refusal
}

// settings are the values that Accelerate must read for a plan: names of the environment with their values.
func settings(d *draw) map[string]string {
	p := &d.plan
	boolean := func(is bool) string { return strconv.FormatBool(is) }
	switch d.question.Job.Train.Engine {
	case "deepspeed":
		return map[string]string{"zero_stage": fmt.Sprint(p.Zero),
			"gradient_accumulation_steps": fmt.Sprint(p.MicroBatches)}
	case "megatron":
		want := map[string]string{"MEGATRON_LM_TP_DEGREE": fmt.Sprint(p.TP), "MEGATRON_LM_PP_DEGREE": fmt.Sprint(p.PP),
			"MEGATRON_LM_NUM_MICRO_BATCHES":         fmt.Sprint(p.MicroBatches),
			"MEGATRON_LM_USE_DISTRIBUTED_OPTIMIZER": map[bool]string{true: "True", false: "False"}[p.Zero == 1]}
		if p.CP > 1 {
			want["MEGATRON_LM_CONTEXT_PARALLEL_SIZE"] = fmt.Sprint(p.CP)
		}
		if p.Recompute == "full" {
			want["MEGATRON_LM_RECOMPUTE_NUM_LAYERS"] = fmt.Sprint(p.RecomputeLayers)
		}
		return want
	}
	want := map[string]string{}
	if p.Zero > 0 {
		want["FSDP_VERSION"], want["FSDP_RESHARD_AFTER_FORWARD"] = "2", boolean(p.Zero == 3)
		want["FSDP_ACTIVATION_CHECKPOINTING"] = boolean(p.Recompute == "full")
	}
	if p.TP*p.CP > 1 {
		want["PARALLELISM_CONFIG_TP_SIZE"] = fmt.Sprint(p.TP)
		want["PARALLELISM_CONFIG_CP_SIZE"] = fmt.Sprint(p.CP)
	}
	if p.CP > 1 {
		strategies := map[string]string{"gather": "allgather", "ring": "alltoall"}
		want["PARALLELISM_CONFIG_CP_COMM_STRATEGY"] = strategies[p.CPKind]
	}
	if p.Zero > 0 && p.ZeroGroup < p.Replicas() {
		want["PARALLELISM_CONFIG_DP_REPLICATE_SIZE"] = fmt.Sprint(p.Replicas() / p.ZeroGroup)
		want["PARALLELISM_CONFIG_DP_SHARD_SIZE"] = fmt.Sprint(p.ZeroGroup / p.CP)
	}
	return want
}

// pinsOf are the keys of a plan that an import pins, by engine.
var pinsOf = map[string][]string{
	"fsdp":      {"tp", "pp", "cp", "zero"},
	"deepspeed": {"tp", "pp", "cp", "zero", "micro_batches"},
	"megatron":  {"tp", "pp", "cp", "ep", "zero", "sp", "micro_batches", "recompute"},
}

// An exported plan is the same after import. This needs no parser of Accelerate.
func TestAccelerateRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 6))
	const plans = 20
	for engine, pins := range pinsOf {
		for range plans {
			d, text := drawExpressed(t, r, &accelerate.Format, engine)
			samePins(t, d, &accelerate.Format, text, pins...)
		}
	}
}

// Accelerate reads the plan from what is exported.
func TestAccelerateReadsPlans(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "accelerate")
	r := rand.New(rand.NewPCG(24, 7))
	for engine, plans := range map[string]int{"fsdp": 2000, "deepspeed": 300, "megatron": 300} {
		for range amount(plans) {
			d, text := drawExpressed(t, r, &accelerate.Format, engine)
			got, refusal := askAccelerate(t, o, string(text))
			if refusal != "" {
				t.Fatalf("%s\n%s\n%s", d, refusal, text)
			}
			nodes, devices := d.target().Nodes()
			if got.Processes != nodes*devices || got.Machines != nodes {
				t.Fatalf("%s\n%+v", d, got)
			}
			maps.Copy(got.Env, got.DeepSpeed)
			for name, want := range settings(d) {
				if got.Env[name] != want {
					t.Fatalf("%s\n%s is %q, want %q\n%s", d, name, got.Env[name], want, text)
				}
			}
			samePins(t, d, &accelerate.Format, text, pinsOf[engine]...)
			if engine == "fsdp" && d.plan.Zero > 0 {
				samePins(t, d, &accelerate.Format, text, "recompute")
			}
		}
	}
}

// Illegal plans are refused by planc. Accelerate refuses those whose sizes do not multiply to the number of processes,
// and those that it cannot compose.
func TestAccelerateIllegalPlans(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "accelerate")
	r := rand.New(rand.NewPCG(24, 8))
	found := newDifferences()
	plans := amount(2000)
	for range plans {
		d, reasons := drawIllegal(t, r, jobLimits{engine: "fsdp"})
		text, err := tree.Write(tree.YAML, accelerate.Format.Values(d.target()))
		if err != nil {
			t.Fatal(err)
		}
		if _, refusal := askAccelerate(t, o, string(text)); refusal == "" {
			found.add(groupOf(reasons[0].Key), d.String())
		}
	}
	found.compare(t, map[string]string{noKey: "the batch, experts and pipelines are not in the file",
		otherRanks: "the sizes that the file says are legal: it rounds groups, and has no model"})
}

// accelerateDraw draws a file, mostly one that Accelerate accepts.
func accelerateDraw(r *rand.Rand) string {
	var values []interop.Value
	maybe := func(odds int, key string, value any) {
		if r.IntN(odds) == 0 {
			values = append(values, interop.Value{Key: key, Text: fmt.Sprint(value)})
		}
	}
	kind := pick(r, "FSDP", "FSDP", "FSDP", "MULTI_GPU", "DEEPSPEED", "MEGATRON_LM", "FDSP")
	maybe(1, "distributed_type", kind)
	machines := pick(r, 1, 1, 2)
	maybe(1, "num_processes", 8*machines)
	maybe(1, "num_machines", machines)
	maybe(2, "mixed_precision", pick(r, "bf16", "fp16", "fp8", `"no"`))
	version := pick(r, 1, 2, 2, 2)
	if kind == "FSDP" {
		maybe(1, "fsdp_config.fsdp_version", version)
		maybe(2, "fsdp_config.fsdp_reshard_after_forward", pick(r, "true", "false", "FULL_SHARD"))
		maybe(3, "fsdp_config.fsdp_sharding_strategy", pick(r, "FULL_SHARD", "HYBRID_SHARD", "NO_SHARD", "1"))
		maybe(3, "fsdp_config.fsdp_activation_checkpointing", pick(r, "true", "false"))
		maybe(8, "fsdp_config.fsdp_bogus", 1)
		if version == 2 && r.IntN(2) == 0 {
			maybe(2, "parallelism_config.parallelism_config_dp_replicate_size", pick(r, 1, 2))
			maybe(1, "parallelism_config.parallelism_config_dp_shard_size", pick(r, 1, 2, 4, 8))
			maybe(2, "parallelism_config.parallelism_config_tp_size", pick(r, 1, 2))
			maybe(4, "parallelism_config.parallelism_config_cp_size", pick(r, 1, 2))
		}
	}
	if kind == "DEEPSPEED" {
		maybe(1, "deepspeed_config.zero_stage", pick(r, 0, 1, 2, 3))
		maybe(2, "deepspeed_config.gradient_accumulation_steps", pick(r, 1, 4))
		maybe(3, "deepspeed_config.offload_optimizer_device", pick(r, "cpu", "none"))
	}
	if kind == "MEGATRON_LM" {
		maybe(1, "megatron_lm_config.megatron_lm_tp_degree", pick(r, 1, 2, 4))
		maybe(1, "megatron_lm_config.megatron_lm_pp_degree", pick(r, 1, 2))
		maybe(2, "megatron_lm_config.megatron_lm_num_micro_batches", 8)
		maybe(2, "megatron_lm_config.megatron_lm_use_distributed_optimizer", pick(r, "true", "false"))
	}
	maybe(8, pick(r, "machine_rank", "num_procesess"), 0)
	text, err := tree.Write(tree.YAML, values)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// planc and Accelerate accept the same files, and an accepted file that is changed to the plan that it says is the same
// to Accelerate.
func TestAccelerateFiles(t *testing.T) {
	t.Parallel()
	o := startOracle(t, "accelerate")
	r := rand.New(rand.NewPCG(24, 9))
	found := newDifferences()
	files := amount(4000)
	accepted := 0
	for range files {
		text := accelerateDraw(r)
		got, refusal := askAccelerate(t, o, text)
		im, err := accelerate.Format.Import([]interop.File{{Name: "a.yaml", Data: []byte(text)}}, interop.Options{})
		switch {
		case err != nil && refusal == "":
			found.add("planc: "+accelerateReason(err.Error()), text+err.Error())
		case err == nil && refusal != "":
			found.add("Accelerate: "+accelerateReason(refusal), text+refusal)
		case err == nil:
			accepted++
			sameSettings(t, o, im, got, text)
		}
	}
	if accepted < files/4 {
		t.Errorf("only %d of %d files are accepted", accepted, files)
	}
	found.compare(t, map[string]string{
		"planc: with fsdp_version 2 it must be": "Accelerate refuses it when the processes start",
		"planc: needs zero_stage":               "DeepSpeed ignores offload without ZeRO",
		"Accelerate: FP8 is not available":      "it looks for Transformer Engine and GPUs",
	})
}

// accelerateReason shortens an error to what is wrong, without its values.
func accelerateReason(text string) string {
	for _, words := range []string{"FP8 is not available", "needs zero_stage", "with fsdp_version 2 it must be",
		"no ranks to shard over", "multiply to",
		"multiple of", "refuses that", "refuses the file", "use one of", "needs fsdp_version 2", "total_size",
		"unknown keys",
		"not a valid DistributedType", "no dimension for FSDP", "pure data parallelism"} {
		if strings.Contains(text, words) {
			return words
		}
	}
	return text
}

// sameSettings changes a file to the plan that its import says, and compares what Accelerate reads from both.
func sameSettings(t *testing.T, o *oracle, im *interop.Import, want accelerateConfig, text string) {
	t.Helper()
	p := ir.SerialPlan(8, 1, precisionOf(im))
	for _, f := range im.Fields {
		key, ok := strings.CutPrefix(f.Path, "plan.")
		if ok && key != "offload" {
			if err := p.SetKey(key, f.Value); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
	}
	p.DP = im.Devices / (p.TP * p.CP * p.PP)
	if p.Zero > 0 && !im.Has("plan.zero_group") {
		p.ZeroGroup = p.Replicas()
	}
	target := targetOf(t, im, p)
	for _, v := range accelerate.Format.Values(target) {
		if v.Env {
			continue
		}
		if _, has := im.Doc.Get(v.Key); !has && v.IsAbsent {
			continue
		}
		if err := im.Doc.Set(v); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	got, refusal := askAccelerate(t, o, string(im.Doc.Bytes()))
	if refusal != "" {
		t.Fatalf("%s\n%s\n%s", refusal, text, im.Doc.Bytes())
	}
	comparable := func(c accelerateConfig) accelerateConfig {
		c.Env, c.DeepSpeed = nil, nil
		if p.Zero == 0 && c.Kind == "FSDP" {
			c.Kind = "MULTI_GPU" // NO_SHARD is DDP
		}
		if len(c.Sizes) == 0 || c.Sizes["dp_replicate_size"]*c.Sizes["tp_size"]*c.Sizes["cp_size"] == 1 {
			c.Sizes = nil // all processes are one dimension either way
		}
		if strings.Contains(text, "HYBRID_SHARD") {
			c.Sizes = nil // FSDP 1 has no sizes, and its groups are the nodes
		}
		return c
	}
	if diff := cmp.Diff(comparable(want), comparable(got)); diff != "" {
		t.Fatalf("%s\n%s\n%s", diff, text, im.Doc.Bytes())
	}
}

// Trainer reads the plan from what is exported: its arguments are read back by planc, because transformers needs torch.
func TestTrainingArgumentsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 10))
	const plans = 30
	for engine, pins := range map[string][]string{
		"fsdp":      {"tp", "pp", "cp", "zero", "recompute", "micro_batch", "micro_batches"},
		"deepspeed": {"tp", "cp", "zero", "micro_batch", "micro_batches"},
	} {
		for range plans {
			d, text := drawExpressed(t, r, &hf.Format, engine)
			samePins(t, d, &hf.Format, text, pins...)
		}
	}
}
