package main

import (
	"strings"
	"testing"
)

// Keys and values of other tools are answered with those of planc.
func TestOtherKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	for set, want := range map[string]string{
		"plan.tensor_parallel=2": "no key tensor_parallel in plan; did you mean plan.tp? [UnknownKey]",
		"plan.tensor_model_parallel_size=2": "no key tensor_model_parallel_size in plan; did you mean plan.tp? " +
			"[UnknownKey]",
		"plan.pipeline_parallel=2":     "no key pipeline_parallel in plan; did you mean plan.pp? [UnknownKey]",
		"tensor_model_parallel_size=2": "no key tensor_model_parallel_size; did you mean plan.tp? [UnknownKey]",
		"plan.gradient_accumulation_steps=2": "no key gradient_accumulation_steps in plan; did you mean " +
			"plan.micro_batches? [UnknownKey]",
		"plan.cp_type=a2a": "no key cp_type in plan; did you mean plan.cp_kind? [UnknownKey]",
		"train.batch_size=8": "no key batch_size in train; did you mean train.global_batch? " +
			"[UnknownKey]",
		"zero_optimization.stage=2": "no key zero_optimization; did you mean plan.zero? [UnknownKey]",
		"plan.schedule=zero_bubble": `plan.schedule is "zero_bubble"; use one of none, gpipe, 1f1b, ` +
			`interleaved, zb-h1, zb-v; did you mean zb-h1? [UnknownValue]`,
		"plan.recompute=checkpoint": `plan.recompute is "checkpoint"; use one of none, selective, full; ` +
			`did you mean full? [UnknownValue]`,
		"train.optimizer.kind=AdamW": `train.optimizer.kind is "AdamW"; use one of adamw, adam, sgd; did ` +
			`you mean adamw? [UnknownValue]`,
		"train.engine=torchtitan": `train.engine is "torchtitan"; use one of planc, megatron, ` +
			`megatron-fsdp, fsdp, deepspeed, hai-llm; did you mean fsdp? [UnknownValue]`,
	} {
		code, _, errs := call(strings.Fields("plan --model gpt2-124m --cluster 8xh100 --global-batch 8 --seq-len " +
			"64 --set " + set)...)
		want = "--set " + set + ": " + want
		if code != exitInput || flat(errs) != want {
			t.Errorf("exit code %d\n%s\nwant\n%s", code, flat(errs), want)
		}
	}
}
