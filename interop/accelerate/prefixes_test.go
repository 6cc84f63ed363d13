package accelerate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The prefix of a key of fsdp_config, fp8_config and dynamo_config may be left out; other unknown keys are ignored.
func TestKeysWithoutTheirPrefix(t *testing.T) {
	im := mustLoad(t, "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: fp8\n"+
		"fsdp_config:\n  version: 2\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  forward_prefetch: true\n"+
		"  state_dict_type: SHARDED_STATE_DICT\n"+
		"fp8_config:\n  backend: AO\n  enable_fsdp_float8_all_gather: false\n  pad_inner_dim: true\n"+
		"  fp8_margn: 1\n"+
		"dynamo_config:\n  backend: 'no'\n  use_dynamic: true\n")
	var got, warnings []string
	for _, k := range im.Keys {
		got = append(got, k.Name+": "+string(k.Use)+": "+k.Note)
	}
	want := []string{
		"distributed_type: taken: ",
		"num_processes: taken: ",
		"mixed_precision: taken: ",
		"fsdp_config.version: taken: ",
		"fsdp_config.auto_wrap_policy: no effect on the plan: ",
		"fsdp_config.forward_prefetch: not supported by planc: when the next block is gathered in the forward " +
			"pass: overlap",
		"fsdp_config.state_dict_type: no effect on the plan: ",
		"fp8_config.backend: no effect on the plan: ",
		"fp8_config.enable_fsdp_float8_all_gather: not supported by planc: parameters are gathered in 8 bits: half " +
			"of the gather traffic",
		"fp8_config.pad_inner_dim: no effect on the plan: ",
		"fp8_config.fp8_margn: ignored by that tool: Accelerate does not know it",
		"dynamo_config.backend: no effect on the plan: ",
		"dynamo_config.use_dynamic: no effect on the plan: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, n := range im.Notes {
		if n.IsWarning {
			warnings = append(warnings, n.String())
		}
	}
	wantWarnings := []string{"accelerate.yaml:13:3: Accelerate does not know fp8_config.fp8_margn and ignores it; " +
		"did you mean fp8_margin?"}
	if diff := cmp.Diff(wantWarnings, warnings); diff != "" {
		t.Error(diff)
	}
}

// A type that a ds_config.json leaves to mixed_precision, which the file does not have, is not known.
func TestAutoTypesWithoutMixedPrecision(t *testing.T) {
	const file = "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config: {deepspeed_config_file: ds.json}\n"
	const after = " is auto and mixed_precision is missing, which means FP32, unless the training code passes " +
		"mixed_precision or bf16. planc prices BF16: type --set train.precision=f32 if the code passes none"
	for types, want := range map[string]string{
		`"bf16": {"enabled": "auto"}`:     "ds.json:1:22: bf16.enabled" + after,
		`"fp16": {"enabled": "auto"}`:     "ds.json:1:22: fp16.enabled" + after,
		`"bf16": {"enabled": true}`:       "",
		`"gradient_clipping": 1.0`:        "",
		`"fp16": {"enabled": true}`:       "",
		`"bfloat16": {"enabled": "auto"}`: "ds.json:1:26: bfloat16.enabled" + after,
	} {
		got := ""
		for _, n := range mustLoad(t, file, `{`+types+`,
			"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}`).Notes {
			got += n.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", types, got, want)
		}
	}
}
