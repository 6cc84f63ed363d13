package hf_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/hf"
	"github.com/planc-dev/planc/ir"
)

func load(devices int, texts ...string) (*interop.Import, error) {
	var files []interop.File
	for i, text := range texts {
		name := [...]string{"args.yaml", "ds.json", "config.json"}[i]
		if strings.Contains(text, "model_type") {
			name = "config.json"
		}
		files = append(files, interop.File{Name: name, Data: []byte(text)})
	}
	return hf.Format.Import(files, interop.Options{Devices: devices})
}

func fieldsOf(t *testing.T, devices int, texts ...string) map[string]string {
	t.Helper()
	im, err := load(devices, texts...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"engine": im.Engine}
	for _, f := range im.Fields {
		out[f.Path] = f.Value
	}
	return out
}

const args = `output_dir: out
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
gradient_checkpointing: true  # to fit
fsdp: true
fsdp_config:
  reshard_after_forward: false
max_seq_length: 4096
`

func TestImportSaysTheJob(t *testing.T) {
	want := map[string]string{"engine": "fsdp", "plan.micro_batch": "2", "plan.micro_batches": "8", "plan.zero": "2",
		"plan.zero_group": "8",
		"plan.recompute":  "full", "plan.tp": "1", "plan.cp": "1", "plan.pp": "1", "plan.ep": "1", "plan.sp": "false",
		"train.global_batch": "128", "train.seq_len": "4096", "train.optimizer.kind": "adamw",
		"train.precision.compute": "bf16", "train.engine": "fsdp", "plan.recompute_every": "1",
		"plan.recompute_split": "false"}
	if diff := cmp.Diff(want, fieldsOf(t, 8, args)); diff != "" {
		t.Error(diff)
	}
}

// Fields that a file sets, by what the file has.
// The file does not say how many devices a node has, so the group is not taken for all of them.
func TestHybridShardingIsNoShardingOverAll(t *testing.T) {
	got := fieldsOf(t, 16, "output_dir: x\nper_device_train_batch_size: 2\nfsdp: hybrid_shard auto_wrap\n"+
		"fsdp_config: {version: 1}\n")
	if group, ok := got["plan.zero_group"]; ok || got["plan.zero"] != "3" {
		t.Errorf("zero %s in groups of %s", got["plan.zero"], group)
	}
}

// Without FSDP, Transformers does not read fsdp_config, nor its recomputation.
func TestRecomputationNeedsFSDP(t *testing.T) {
	for fsdp, want := range map[string]string{"": "none", "fsdp: ''\n": "none", "fsdp: true\n": "full"} {
		got := fieldsOf(t, 8, "output_dir: x\nper_device_train_batch_size: 2\n"+fsdp+
			"fsdp_config: {version: 2, activation_checkpointing: true}\n")
		if got["plan.recompute"] != want {
			t.Errorf("%q: recompute %s, want %s", fsdp, got["plan.recompute"], want)
		}
	}
}

func TestImportOfArguments(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
	}{
		{"defaults", "output_dir: out\n", map[string]string{"plan.micro_batch": "8", "plan.micro_batches": "1",
			"plan.zero": "0", "train.precision.compute": "f32", "train.global_batch": "64"}},
		{"the old form of fsdp", "fsdp: full_shard auto_wrap offload\n", map[string]string{"plan.zero": "3",
			"plan.zero_group": "8", "plan.offload": ""}},
		{"a list", "fsdp: [shard_grad_op, auto_wrap]\n", map[string]string{"plan.zero": "2"}},
		{"version 1", "fsdp: true\nfsdp_config: {fsdp_version: 1, fsdp_reshard_after_forward: SHARD_GRAD_OP}\n",
			map[string]string{"plan.zero": "2"}},
		{"sizes", "fsdp: true\nparallelism_config: {dp_shard_size: 2, dp_replicate_size: 2, tp_size: 2}\n",
			map[string]string{"plan.dp": "4", "plan.zero_group": "2", "plan.tp": "2", "train.global_batch": "32"}},
		{"sequences over ranks", "parallelism_config: {sp_size: 4}\n",
			map[string]string{"plan.cp": "4", "plan.cp_kind": "heads"}},
		{"a recipe", "learning_rate: 1e-4\nmax_steps: 500\nwarmup_steps: 20\nlr_scheduler_type: cosine\noptim: sgd\n",
			map[string]string{"train.optimizer.lr": "0.0001", "train.steps": "500", "train.schedule.warmup": "20",
				"train.schedule.kind": "cosine", "train.optimizer.kind": "sgd"}},
		{"DeepSpeed inside", "bf16: true\nper_device_train_batch_size: 4\ndeepspeed:\n  zero_optimization: " +
			"{stage: 3}\n" +
			"  bf16: {enabled: auto}\n  train_micro_batch_size_per_gpu: auto\n  gradient_accumulation_steps: auto\n",
			map[string]string{"engine": "deepspeed", "plan.zero": "3", "plan.micro_batch": "4",
				"train.global_batch": "32", "train.precision.compute": "bf16", "train.precision.master": "f32"}},
	}
	for _, test := range tests {
		got := fieldsOf(t, 8, test.text)
		for path, value := range test.want {
			if got[path] != value {
				t.Errorf("%s: %s is %q, want %q", test.name, path, got[path], value)
			}
		}
	}
}

// A hybrid strategy shards over a node. The words that planc does not price are in the keys.
func TestWordsOfFSDP(t *testing.T) {
	for _, c := range []struct {
		words, group string
		perNode      int
		use          interop.Use
	}{
		{"full_shard auto_wrap", "32", 8, interop.Taken}, {"hybrid_shard auto_wrap", "8", 8, interop.Taken},
		{"hybrid_shard auto_wrap", "", 0, interop.Taken}, {"full_shard offload", "32", 8, interop.Unsupported},
	} {
		files := []interop.File{{Name: "args.yaml", Data: []byte("fsdp: " + c.words +
			"\nfsdp_config: {version: 1}\n")}}
		im, err := hf.Format.Import(files, interop.Options{Devices: 32, DevicesPerNode: c.perNode})
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := im.Field("plan.zero_group"); f.Value != c.group || im.Keys[0].Use != c.use {
			t.Errorf("%s: zero_group %q, %+v", c.words, f.Value, im.Keys[0])
		}
	}
}

// fsdp_config may be the path of a JSON file, which is given as a second file: its keys are read and edited there.
func TestFSDPConfigIsASecondFile(t *testing.T) {
	const args = "fsdp: true\nfsdp_config: conf/fsdp.json\nper_device_train_batch_size: 2\n"
	const config = `{"fsdp_version": 2, "reshard_after_forward": "false", "activation_checkpointing": true}`
	got := fieldsOf(t, 8, args, config)
	if got["plan.zero"] != "2" || got["plan.recompute"] != "full" || got["plan.micro_batch"] != "2" {
		t.Error(got)
	}
	im, err := load(8, args, config)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, k := range im.Keys {
		keys = append(keys, k.Pos.String()+" "+k.Name+": "+string(k.Use))
	}
	want := []string{"args.yaml:1:1 fsdp: taken", "args.yaml:2:1 fsdp_config: taken",
		"args.yaml:3:1 per_device_train_batch_size: taken", "ds.json:1:2 fsdp_config.fsdp_version: taken",
		"ds.json:1:21 fsdp_config.reshard_after_forward: taken",
		"ds.json:1:55 fsdp_config.activation_checkpointing: taken"}
	if diff := cmp.Diff(want, keys[:6]); diff != "" {
		t.Error(diff)
	}
	if err := im.Doc.Set(interop.Value{Key: "fsdp_config.reshard_after_forward", Text: "true"}); err != nil {
		t.Fatal(err)
	}
	parts := im.Doc.(interop.Parts)
	if text := string(parts[1].Doc.Bytes()); text != strings.Replace(config, `"false"`, `"true"`, 1) ||
		string(im.Doc.Bytes()) != args {
		t.Errorf("%s\n%s", im.Doc.Bytes(), text)
	}
}

// The strategies of version 1 that shard over a node or not at all.
func TestStrategiesOfVersion1(t *testing.T) {
	for word, want := range map[string][2]string{"hybrid_shard": {"3", ""}, "HYBRID_SHARD_ZERO2": {"2", ""},
		"no_shard": {"0", ""}, "shard_grad_op": {"2", "16"}} {
		got := fieldsOf(t, 16, "fsdp: true\nfsdp_config: {version: 1, reshard_after_forward: "+word+"}\n")
		if got["plan.zero"] != want[0] || got["plan.zero_group"] != want[1] {
			t.Errorf("%s: zero %s, group %q", word, got["plan.zero"], got["plan.zero_group"])
		}
	}
}

func TestTheDeepSpeedConfigIsASecondFile(t *testing.T) {
	got := fieldsOf(t, 8, "per_device_train_batch_size: 2\nbf16: true\ndeepspeed: "+
		"ds.json\ngradient_checkpointing: true\n",
		`{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}}`,
		`{"model_type": "llama", "num_hidden_layers": 4}`)
	want := map[string]string{"engine": "deepspeed", "plan.zero": "2", "plan.micro_batch": "2",
		"train.precision.compute": "bf16", "plan.recompute": "full", "plan.recompute_layers": "4"}
	for path, value := range want {
		if got[path] != value {
			t.Errorf("%s is %q, want %q", path, got[path], value)
		}
	}
}

// A misspelt key of the plan is named in a note: the script refuses the file.
func TestMisspeltKeysOfThePlanAreNoted(t *testing.T) {
	im, err := load(0, "per_device_batch_size: 2\nmax_length: 512\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "args.yaml:1:1: per_device_batch_size is not of TrainingArguments; did you mean " +
		"per_device_train_batch_size? HfArgumentParser refuses arguments that the script does not add"
	if len(im.Notes) != 1 || im.Notes[0].String() != want {
		t.Errorf("%v, want %s", im.Notes, want)
	}
}

func TestEveryKeyIsAccountedFor(t *testing.T) {
	im, err := load(0, "per_device_train_batch_size: 2\nper_device_train_batchsize: 4\nlogging_steps: 10\n"+
		"torch_compile: true\nmodel_name_or_path: meta/llama\noptim: adafactor\nfsdp_config: {version: 2}\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range im.Keys {
		got = append(got, k.Name+": "+string(k.Use)+": "+k.Note)
	}
	want := []string{
		"per_device_train_batch_size: taken: ",
		"per_device_train_batchsize: no effect on the plan: not of TrainingArguments: the script's own; did you mean " +
			"per_device_train_batch_size?",
		"logging_steps: no effect on the plan: ",
		"torch_compile: not supported by planc: torch.compile makes kernels faster",
		"model_name_or_path: decided by the planner: give its config.json as a second file, or --model",
		"optim: not supported by planc: adafactor is priced as AdamW: its own " +
			"state and update need other memory and time",
		"fsdp_config.version: ignored by that tool: fsdp is not set",
		"train.global_batch: decided by the planner: depends on the number of devices: per_device_train_batch_size · " +
			"gradient_accumulation_steps · data-parallel ranks",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWrongFiles(t *testing.T) {
	const only1 = ", which needs FSDP 1, and the default of transformers 5 is 2: set fsdp_config.version to 1, or " +
		"with version 2, say it with parallelism_config.dp_replicate_size and dp_shard_size [Conflict]"
	tests := []struct{ text, want string }{
		{"bf16: true\nfp16: true\n",
			"args.yaml:2:7: bf16 and fp16 are both true; TrainingArguments take one of them: set one to false " +
				"[Conflict]"},
		{"per_device_train_batch_size: 0\n",
			"args.yaml:1:30: per_device_train_batch_size is 0; it must be at least 1 [OutOfRange]"},
		{"gradient_accumulation_steps: auto\n",
			"args.yaml:1:30: gradient_accumulation_steps is \"auto\"; it must be an integer [WrongType]"},
		{"bf16: maybe\n", "args.yaml:1:7: bf16 is \"maybe\"; it must be true or false [WrongType]"},
		{"deepspeed: ds.json\n", "args.yaml:1:12: ds.json has the ZeRO stage: give it as a second file [Missing]"},
		{"fsdp: full-shard\n",
			"args.yaml:1:7: fsdp has the word \"full-shard\"; use true, and say the rest in fsdp_config; did " +
				"you mean full_shard? [UnknownValue]"},
		{"fsdp: true\nfsdp_config: {reshard_after_forward: full_shard}\n",
			"args.yaml:2:38: fsdp_config.reshard_after_forward is full_shard; with version 2 it must be true " +
				"(ZeRO 3) or " +
				"false (ZeRO 2); did you mean true? [WrongType]"},
		{"fsdp: true\nfsdp_config: fsdp.json\n",
			"args.yaml:2:14: fsdp.json has the keys of fsdp_config: give it as a second file [Missing]"},
		{"fsdp: true\nfsdp_config: {reshard_after_forward: hybrid_shard}\n",
			"args.yaml:2:38: fsdp_config.reshard_after_forward is hybrid_shard, which needs fsdp_config.version 1: " +
				"with version 2, say it with parallelism_config.dp_replicate_size and dp_shard_size; did you mean " +
				"true? [WrongType]"},
		{"fsdp: hybrid_shard\nfsdp_config: {version: 2}\n", "args.yaml:1:7: fsdp is hybrid_shard" + only1},
		{"fsdp: hybrid_shard auto_wrap\n", "args.yaml:1:7: fsdp is hybrid_shard" + only1},
		{"fsdp: no_shard\n",
			"args.yaml:1:7: fsdp is no_shard, which needs FSDP 1, and the default of transformers 5 is 2: set " +
				"fsdp_config.version to 1, or for DDP, which does not shard either, remove fsdp [Conflict]"},
		{"fsdp: full_shard hybrid_shard auto_wrap\nfsdp_config: {version: 1}\n",
			"args.yaml:1:7: fsdp has the words full_shard and hybrid_shard, and FSDP shards in one way: keep one of " +
				"them [Conflict]"},
		{"fsdp: true\nfsdp_config: {version: 1, reshard_after_forward: hybrid}\n",
			"args.yaml:2:50: fsdp_config.reshard_after_forward is \"hybrid\"; use one of full_shard, shard_grad_op, " +
				"no_shard, hybrid_shard, hybrid_shard_zero2 [UnknownValue]"},
		{"fsdp: true\ngradient_checkpointing: true\nfsdp_config: {activation_checkpointing: true}\n",
			"args.yaml:3:41: gradient_checkpointing and fsdp_config.activation_checkpointing are both true, which " +
				"gathers " +
				"parameters once more: set gradient_checkpointing to false [Conflict]"},
		{"parallelism_config: {cp_size: 2, sp_size: 2}\n",
			"args.yaml:1:43: cp_size is 2 and sp_size is 2; Accelerate runs one of them: set the other to 1; did " +
				"you mean 1? " +
				"[Conflict]"},
		{"parallelism_config: {tp_size: 3}\n", "args.yaml:1:31: parallelism_config.tp_size 3 must divide 8 " +
			"devices [Conflict]"},
		{"bf16: true\nbf16: false\n", "args.yaml:2:1: key bf16 is given twice, first on line 1 [DuplicateKey]"},
	}
	for _, test := range tests {
		_, err := load(8, test.text)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s\n%v\nwant %s", test.text, err, test.want)
		}
	}
}

func TestRecognize(t *testing.T) {
	for text, want := range map[string]interop.Confidence{
		args: interop.Certain, "bf16: true\nlearning_rate: 1e-4\nmax_steps: 10\n": interop.Possible, "a: 1": interop.No,
		"": interop.No, "{": interop.No,
	} {
		if got := hf.Format.Recognize(interop.File{Name: "a.yaml", Data: []byte(text)}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestEditsKeepTheUsersFile(t *testing.T) {
	im, err := load(0, args)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []interop.Value{{Key: "per_device_train_batch_size", Text: "4"},
		{Key: "fsdp_config.reshard_after_forward", Text: "true"}, {Key: "gradient_checkpointing", IsAbsent: true},
		{Key: "fsdp_config.activation_checkpointing", Text: "true"}} {
		if err := im.Doc.Set(v); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.NewReplacer("size: 2", "size: 4", "reshard_after_forward: false\n",
		"reshard_after_forward: true\n  activation_checkpointing: true\n",
		"gradient_checkpointing: true  # to fit\n", "").Replace(args)
	if diff := cmp.Diff(want, string(im.Doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(args)
	f.Add("deepspeed: {zero_optimization: {stage: auto}}\nfsdp: [1]\n")
	f.Add("fsdp: {}\nfsdp_config: [1]\nparallelism_config: {tp_size: -1}\ndeepspeed: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		hf.Format.Recognize(interop.File{Name: "a.yaml", Data: []byte(text)})
		im, err := load(8, text)
		var diags ir.Diags
		if err != nil {
			if !errors.As(err, &diags) {
				t.Fatal(err)
			}
			return
		}
		if string(im.Doc.Bytes()) != text {
			t.Fatal("an import changes the file")
		}
		im.JobText()
	})
}

// The modules that are units of FSDP are the model's blocks, unless the file says otherwise.
func TestWrapPolicies(t *testing.T) {
	const note = "args.yaml:2:7: transformers 5 wraps each block of the model, which planc prices. transformers 4 " +
		"shards the model as one unit, unless fsdp has the word auto_wrap: add auto_wrap to it"
	const others = " gathers other units than whole blocks, which planc prices: memory and overlap. Use " +
		"TRANSFORMER_BASED_WRAP"
	for _, c := range []struct{ fsdp, note, key string }{
		{"full_shard", note, ""}, {"[full_shard]", note, ""}, {"full_shard auto_wrap", "", ""}, {"true", "", ""},
		{"true\nfsdp_config: {auto_wrap_policy: TRANSFORMER_BASED_WRAP}", "", ""},
		{"true\nfsdp_config: {auto_wrap_policy: NO_WRAP}", "", "NO_WRAP" + others},
		{"true\nfsdp_config: {fsdp_auto_wrap_policy: SIZE_BASED_WRAP}", "", "SIZE_BASED_WRAP" + others},
		{"no_shard\nfsdp_config: {version: 1}", "", ""},
		{"no_shard\nfsdp_config: {version: 1, auto_wrap_policy: NO_WRAP}", "", ""},
	} {
		im, err := load(8, "per_device_train_batch_size: 1\nfsdp: "+c.fsdp+"\n")
		if err != nil {
			t.Fatal(err)
		}
		got, key := "", ""
		for _, n := range im.Notes {
			got += n.String()
		}
		for _, k := range im.Keys {
			if k.Use == interop.Unsupported {
				key += k.Note
			}
		}
		if got != c.note || key != c.key {
			t.Errorf("%s: %q, %q; want %q, %q", c.fsdp, got, key, c.note, c.key)
		}
	}
	_, err := load(8, "per_device_train_batch_size: 1\nfsdp: true\nfsdp_config: {auto_wrap_policy: no_wrap}\n")
	const want = "args.yaml:3:33: fsdp_config.auto_wrap_policy is no_wrap; use one of TRANSFORMER_BASED_WRAP, " +
		"SIZE_BASED_WRAP, NO_WRAP [UnknownValue]"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The arguments of the recipe are in the job, or have a note that says why they are not.
func TestRecipeIsTaken(t *testing.T) {
	for _, c := range []struct{ arguments, path, value, note string }{
		{"adam_beta1: 0.5", "train.optimizer.betas", "[0.5, 0.999]", ""},
		{"adam_beta2: 0.5", "train.optimizer.betas", "[0.9, 0.5]", ""},
		{"num_train_epochs: 2.5", "train.epochs", "2.5", ""},
		{"seed: 7", "train.seed", "7", ""},
		{"max_steps: 150\nwarmup_steps: 0.05", "train.schedule.warmup", "8", ""},
		{"warmup_steps: 20", "train.schedule.warmup", "20", ""},
		{"warmup_steps: 0.05", "train.schedule.warmup", "", "is a fraction of the steps, which planc needs to read " +
			"it: add max_steps"},
		{"lr_scheduler_type: polynomial", "train.schedule.kind", "", "planc reads linear, cosine, constant, " +
			"constant_with_warmup and inverse_sqrt"},
		{"lr_scheduler_type: cosine\nlr_scheduler_kwargs: {num_cycles: 2}", "train.schedule.kind", "cosine",
			"planc does not read the parameters of a schedule"},
	} {
		im, err := load(8, "per_device_train_batch_size: 1\n"+c.arguments+"\n")
		if err != nil {
			t.Fatal(err)
		}
		note := ""
		for _, k := range im.Keys {
			if k.Use == interop.Unsupported && note == "" {
				note = k.Note
			}
		}
		if f, _ := im.Field(c.path); f.Value != c.value || note != c.note {
			t.Errorf("%s: %q, %q; want %q, %q", c.arguments, f.Value, note, c.value, c.note)
		}
	}
}
