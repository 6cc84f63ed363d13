package hf_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
)

const zero3 = `{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3}
}`

// both begins arguments that agree with zero3.
const both = "per_device_train_batch_size: 4\ngradient_accumulation_steps: 8\nbf16: true\n"

func mustLoad(t *testing.T, texts ...string) *interop.Import {
	t.Helper()
	im, err := load(8, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// A file of TrainingArguments is the main file, in any order, also if it does not name the ds_config.json.
func TestArgumentsAreTheMainFile(t *testing.T) {
	for _, text := range []string{both, both + "deepspeed: ds.json\n", "deepspeed: ds.json\n"} {
		files := []interop.File{{Name: "args.yaml", Data: []byte(text)}, {Name: "ds.json", Data: []byte(zero3)}}
		for range 2 {
			slices.Reverse(files)
			f, _ := formats.Recognize(files)
			if f == nil || f.Name != "hf" {
				t.Fatalf("%s: %+v", text, f)
			}
			im, err := f.Import(files, interop.Options{Devices: 8})
			if err != nil && text != "deepspeed: ds.json\n" || err == nil && im.Engine != "deepspeed" {
				t.Errorf("%s: %v", text, err)
			}
			if err == nil && !slices.Equal(im.Files, []string{"args.yaml", "ds.json"}) {
				t.Error(im.Files)
			}
		}
	}
}

func TestAutoIsFilledByTrainingArguments(t *testing.T) {
	const auto = `{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
		"gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, "gradient_clipping": "auto",
		"zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}, "pipeline": {"stages": 2}}`
	const arguments = "per_device_train_batch_size: 2\nbf16: true\n"
	want := map[string]string{"plan.micro_batch": "2", "plan.micro_batches": "1", "train.global_batch": "16",
		"train.precision.compute": "bf16", "train.optimizer.clip_norm": "1", "plan.pp": "1"}
	got := fieldsOf(t, 8, arguments, auto)
	for path, value := range want {
		if got[path] != value {
			t.Errorf("%s is %q, want %q", path, got[path], value)
		}
	}
	f, _ := mustLoad(t, arguments, auto).Field("plan.micro_batch")
	if want := "per_device_train_batch_size (train_micro_batch_size_per_gpu is auto)"; f.From != want {
		t.Errorf("micro_batch comes from %q, want %q", f.From, want)
	}
}

// TrainingArguments say whether the model recomputes its blocks with DeepSpeed.
func TestArgumentsSayRecomputation(t *testing.T) {
	const model = `{"model_type": "llama", "num_hidden_layers": 4}`
	for _, c := range []struct{ args, recompute, layers, from string }{
		{"gradient_checkpointing: true\n", "full", "4", "gradient_checkpointing"},
		{"gradient_checkpointing: false\n", "none", "", "default of gradient_checkpointing"},
		{"", "none", "", "default of gradient_checkpointing"},
	} {
		im := mustLoad(t, both+c.args, zero3, model)
		f, _ := im.Field("plan.recompute")
		layers, _ := im.Field("plan.recompute_layers")
		if f.Value != c.recompute || layers.Value != c.layers || f.From != c.from {
			t.Errorf("%s: %+v, %q layers", c.args, f, layers.Value)
		}
	}
}

// Every argument is accounted for with a ds_config.json, as without one.
func TestArgumentsAreCheckedWithDeepSpeed(t *testing.T) {
	const args = both + "gradient_acumulation_steps: 8\ngradient_checkpoining: true\nuse_peft: true\n" +
		"finetuning_type: lora\ndeepspeed: conf/ds_z2.json\n"
	im := mustLoad(t, args, zero3)
	var got, names []string
	for _, n := range im.Notes {
		if n.IsWarning {
			got = append(got, n.String())
		}
	}
	want := []string{
		"args.yaml:8:12: deepspeed names conf/ds_z2.json, and planc reads the given file ds.json",
		"args.yaml:5:1: gradient_checkpoining is not of TrainingArguments; did you mean gradient_checkpointing? " +
			"HfArgumentParser refuses arguments that the script does not add",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, k := range im.Keys {
		if k.Pos.File == "args.yaml" {
			names = append(names, k.Name)
		}
		if isAdapter := k.Name == "use_peft" || k.Name == "finetuning_type"; isAdapter != k.TrainsAdapters() {
			t.Errorf("%+v", k)
		}
	}
	if want := strings.Count(args, "\n"); len(names) != want {
		t.Errorf("%d keys of %d: %v", len(names), want, names)
	}
}

// Transformers refuses a ds_config.json with other values than those of the arguments.
func TestMismatchesAreRefused(t *testing.T) {
	const refuses = ", which transformers refuses: write \"auto\" there"
	const batch, fp16 = "train_micro_batch_size_per_gpu of ds.json is 4", "fp16.enabled of ds.json is true"
	half := strings.ReplaceAll(zero3, "bf16", "fp16")
	for _, c := range []struct{ args, ds, want string }{
		{both, zero3, ""},
		{strings.Replace(both, "size: 4", "size: 1", 1), zero3,
			"args.yaml:1:30: per_device_train_batch_size is 1, and " + batch + refuses + " [Conflict]"},
		{both, half, "args.yaml:3:7: bf16 is true, and " + fp16 + refuses + " and in bf16.enabled [Conflict]"},
		{strings.Replace(both, "true", "false", 1), half, "ds.json:4:23: fp16.enabled is true, and the file of " +
			"arguments has no fp16, whose default is false: transformers refuses such a mismatch; write \"auto\""},
		{both + "fp16: true\n", zero3, "args.yaml:4:7: bf16 and fp16 are both true; TrainingArguments take one of " +
			"them: set one to false [Conflict]"},
		{both + "max_grad_norm: 0.5\n", strings.Replace(zero3, "{", `{"gradient_clipping": 1.0,`, 1),
			"args.yaml:4:16: max_grad_norm is 0.5, and gradient_clipping of ds.json is 1.0" + refuses + " [Conflict]"},
		{both, strings.Replace(zero3, "{", `{"gradient_clipping": 1,`, 1), ""},
		{both + "adam_beta2: 0.95\n", strings.Replace(zero3, "{", `{"optimizer": {"type": "AdamW", "params": {"betas": `+
			`[0.9, 0.999]}},`, 1), "args.yaml:4:13: adam_beta2 is 0.95, and optimizer.params.betas of ds.json is 0.999" +
			refuses + " [Conflict]"},
		{both + "adam_beta2: 0.95\n", strings.Replace(zero3, "{", `{"optimizer": {"type": "AdamW", "params": {"betas": `+
			`[0.90, 0.95]}},`, 1), ""},
		{both + "warmup_steps: 20\n", strings.Replace(zero3, "{", `{"scheduler": {"type": "WarmupLR", "params": `+
			`{"warmup_num_steps": 10}},`, 1), "args.yaml:4:15: warmup_steps is 20, and " +
			"scheduler.params.warmup_num_steps of ds.json is 10" + refuses + " [Conflict]"},
		{both + "warmup_steps: 0.1\n", strings.Replace(zero3, "{", `{"scheduler": {"type": "WarmupLR", "params": `+
			`{"warmup_num_steps": 10}},`, 1), ""},
		{both + "max_steps: 100\n", strings.Replace(zero3, "{", `{"scheduler": {"type": "WarmupDecayLR", "params": `+
			`{"total_num_steps": 200}},`, 1), "args.yaml:4:12: max_steps is 100, and scheduler.params.total_num_steps " +
			"of ds.json is 200" + refuses + " [Conflict]"},
		{both, strings.Replace(zero3, "{", `{"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 200}},`,
			1), ""},
		{both, strings.Replace(zero3, "{", `{"train_batch_size": 128,`, 1), "ds.json:1:22: train_batch_size is 128, but " +
			"train_micro_batch_size_per_gpu 4 × gradient_accumulation_steps 8 × 8 data-parallel ranks = 256; did you " +
			"mean 256? [Conflict]"},
		{strings.Replace(both, "true", "yes", 1), zero3, ""},
		{"output_dir: out\n" + both[strings.IndexByte(both, '\n')+1:], zero3, "ds.json:2:37: " +
			"train_micro_batch_size_per_gpu is 4, and the file of arguments has no per_device_train_batch_size, " +
			"whose default is 8: transformers refuses such a mismatch; write \"auto\""},
	} {
		im, err := load(8, c.args, c.ds)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(im.Notes) > 0:
			got = im.Notes[0].String()
		}
		if got != c.want {
			t.Errorf("%s%s\n%s\nwant %s", c.args, c.ds, got, c.want)
		}
	}
}
