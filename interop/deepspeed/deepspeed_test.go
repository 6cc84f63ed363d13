package deepspeed_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/ir"
)

func load(o interop.Options, texts ...string) (*interop.Import, error) {
	var files []interop.File
	for i, text := range texts {
		name := [...]string{"ds.json", "args.yaml", "config.json"}[i]
		if strings.Contains(text, "model_type") {
			name = "config.json"
		}
		files = append(files, interop.File{Name: name, Data: []byte(text)})
	}
	return deepspeed.Format.Import(files, o)
}

func mustLoad(t *testing.T, o interop.Options, texts ...string) *interop.Import {
	t.Helper()
	im, err := load(o, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// values returns the fields of an import.
func fieldsOf(im *interop.Import) map[string]string {
	out := map[string]string{}
	for _, f := range im.Fields {
		out[f.Path] = f.Value
	}
	return out
}

const zero3 = `{
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "overlap_comm": true}
}`

func TestImportSaysTheJob(t *testing.T) {
	want := map[string]string{"plan.micro_batch": "4", "plan.micro_batches": "8", "plan.zero": "3",
		"plan.tp": "1", "plan.zero_group": "16", "plan.recompute": "none",
		"plan.pp": "1", "plan.cp": "1", "plan.ep": "1", "plan.etp": "1", "train.global_batch": "512",
		"train.precision.compute": "bf16", "train.precision.grads": "bf16", "train.precision.reduce": "bf16",
		"train.precision.master": "f32", "train.precision.moments": "f32", "train.engine": "deepspeed"}
	if diff := cmp.Diff(want, fieldsOf(mustLoad(t, interop.Options{Devices: 16}, zero3))); diff != "" {
		t.Error(diff)
	}
}

func TestTheNumberOfDevicesDecidesTheBatch(t *testing.T) {
	im := mustLoad(t, interop.Options{}, zero3)
	if im.Has("train.global_batch") {
		t.Error("the global batch is known without the number of devices")
	}
	isPlanned := slices.ContainsFunc(im.Keys, func(k interop.Key) bool {
		return k.Name == "train.global_batch" && k.Use == interop.Planned
	})
	if !isPlanned {
		t.Errorf("%+v", im.Keys)
	}
}

// Fields that differ from those of zero3, by what the file has instead.
func TestImportOfSections(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
	}{
		{"tensor parallelism", `{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
			"tensor_parallel": {"autotp_size": 4}, "zero_optimization": {"stage": 1}}`,
			map[string]string{"plan.tp": "4", "plan.sp": "false", "plan.zero": "1", "plan.micro_batch": "2",
				"train.global_batch": "64", "train.precision.compute": "f32"}},
		{"fp16 with a static scale", `{"train_batch_size": 64, "fp16": {"enabled": true, "loss_scale": 128}}`,
			map[string]string{"train.precision.compute": "fp16", "train.precision.loss_scale": "128", "plan.zero": "0",
				"plan.micro_batches": "1", "train.precision.master": "f32"}},
		{"fp16 with a dynamic scale", `{"train_batch_size": 64, "fp16": {"enabled": true, "initial_scale_power": 12,
			"consecutive_hysteresis": true}}`,
			map[string]string{"train.precision.loss_scale": "{init: 4096, window: 1000, hysteresis: 2, min: 1, " +
				"consecutive: true}"}},
		{"bf16 without ZeRO", `{"train_batch_size": 64, "bf16": {"enabled": true}}`,
			map[string]string{"train.precision.master": "none", "train.precision.moments": "bf16"}},
		{"fp32 gradients", `{"train_batch_size": 64, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2},
			"data_types": {"grad_accum_dtype": "fp32"}}`,
			map[string]string{"train.precision.grads": "f32", "train.precision.reduce": "bf16"}},
		{"MiCS", `{"train_batch_size": 64, "zero_optimization": {"stage": 3, "mics_shard_size": 8}}`,
			map[string]string{"plan.zero_group": "8"}},
		{"offload", `{"train_batch_size": 64, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"},
			"cpu_offload": true}}`, map[string]string{"plan.offload": ""}},
		{"experts", `{"train_batch_size": 64, "expert_parallel": {"enabled": true, "autoep_size": 8}}`,
			map[string]string{"plan.ep": "8"}},
		{"Ulysses", `{"train_batch_size": 64, "sequence_parallel_size": 4}`,
			map[string]string{"plan.cp": "4", "plan.cp_kind": "heads"}},
		{"saved activations over tp", `{"train_batch_size": 64, "tensor_parallel": {"autotp_size": 2},
			"activation_checkpointing": {"partition_activations": true}}`,
			map[string]string{"plan.recompute": "full", "plan.recompute_split": "true"}},
		{"the recipe", `{"train_batch_size": 64, "gradient_clipping": 0.5, "optimizer": {"type": "Adam", "params":
			{"lr": 3e-4, "adam_w_mode": false}}, "scheduler": {"type": "WarmupDecayLR", "params":
			{"total_num_steps": 900, "warmup_num_steps": 10}}}`,
			map[string]string{"train.optimizer.clip_norm": "0.5", "train.optimizer.kind": "adam",
				"train.optimizer.lr": "0.0003", "train.schedule.kind": "linear", "train.steps": "900",
				"train.schedule.warmup": "10"}},
		{"the old form", `{"train_batch_size": 64, "zero_optimization": true}`, map[string]string{"plan.zero": "1"}},
	}
	for _, test := range tests {
		got := fieldsOf(mustLoad(t, interop.Options{}, test.text))
		for path, value := range test.want {
			if got[path] != value {
				t.Errorf("%s: %s is %q, want %q", test.name, path, got[path], value)
			}
		}
	}
}

func TestAutoIsFilledByTrainingArguments(t *testing.T) {
	const auto = `{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
		"gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, "gradient_clipping": "auto",
		"zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}`
	alone := mustLoad(t, interop.Options{Devices: 8}, auto)
	for _, path := range []string{"plan.micro_batch", "plan.micro_batches", "train.precision.compute"} {
		if alone.Has(path) {
			t.Errorf("%s is known without the arguments", path)
		}
	}
	for _, k := range alone.Keys {
		if k.Value == "auto" && k.Use != interop.Planned {
			t.Errorf("%s: %s", k.Name, k.Use)
		}
	}
	im := mustLoad(t, interop.Options{Devices: 8}, auto, "per_device_train_batch_size: 2\nbf16: true\n")
	want := map[string]string{"plan.micro_batch": "2", "plan.micro_batches": "1", "train.global_batch": "16",
		"train.precision.compute": "bf16", "train.optimizer.clip_norm": "1"}
	got := fieldsOf(im)
	for path, value := range want {
		if got[path] != value {
			t.Errorf("%s is %q, want %q", path, got[path], value)
		}
	}
	f, _ := im.Field("plan.micro_batch")
	if want := "per_device_train_batch_size (train_micro_batch_size_per_gpu is auto)"; f.From != want {
		t.Errorf("micro_batch comes from %q, want %q", f.From, want)
	}
}

// TrainingArguments say whether the model recomputes its blocks. Without them, none is recomputed.
func TestArgumentsSayRecomputation(t *testing.T) {
	const model = `{"model_type": "llama", "num_hidden_layers": 4}`
	for _, c := range []struct{ args, recompute, layers, from string }{
		{"gradient_checkpointing: true\n", "full", "4", "gradient_checkpointing"},
		{"gradient_checkpointing: false\n", "none", "", "gradient_checkpointing"},
		{"bf16: true\n", "none", "", "default of gradient_checkpointing"},
	} {
		im := mustLoad(t, interop.Options{}, zero3, "per_device_train_batch_size: 4\n"+c.args, model)
		got := fieldsOf(im)
		f, _ := im.Field("plan.recompute")
		if f.Value != c.recompute || got["plan.recompute_layers"] != c.layers || f.From != c.from {
			t.Errorf("%s: %+v, %q layers", c.args, f, got["plan.recompute_layers"])
		}
	}
	f, _ := mustLoad(t, interop.Options{}, zero3).Field("plan.recompute")
	if f.Value != "none" || f.From != "no gradient_checkpointing in the files" {
		t.Errorf("%+v", f)
	}
}

// Offload is accounted for, and not priced.
func TestOffloadIsNotPriced(t *testing.T) {
	im := mustLoad(t, interop.Options{}, `{"train_batch_size": 8, "zero_optimization": {"stage": 3,
		"offload_optimizer": {"device": "cpu"}}}`)
	i := slices.IndexFunc(im.Keys, func(k interop.Key) bool {
		return k.Name == "zero_optimization.offload_optimizer.device"
	})
	const want = "offload: keeps the optimizer state in the host's memory"
	if k := im.Keys[i]; k.Use != interop.Unsupported || k.Note != want {
		t.Errorf("%+v", k)
	}
}

func TestTheModelIsASecondFile(t *testing.T) {
	im := mustLoad(t, interop.Options{}, zero3, `{"model_type": "llama", "hidden_size": 4096, "rope_scaling": null,
		"architectures": ["LlamaForCausalLM"]}`)
	got := fieldsOf(im)
	if got["model.hidden_size"] != "4096" || got["model.architectures"] != `["LlamaForCausalLM"]` ||
		got["model.rope_scaling"] != "null" {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"ds.json", "config.json"}, im.Files); diff != "" {
		t.Error(diff)
	}
}

func TestEveryKeyIsAccountedFor(t *testing.T) {
	im := mustLoad(t, interop.Options{}, `{"train_batch_size": 8, "train_bacth_size": 8, "steps_per_print": 10,
		"zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8, "stage3_max_live_parameters": 1e6,
		"zero_hpz_partition_size": 8}, "expert_parallel": {"autoep_sizee": 2}, "sparse_attention": {"mode": "fixed"}}`)
	var got []string
	for _, k := range im.Keys {
		got = append(got, k.Name+": "+string(k.Use)+": "+k.Note)
	}
	want := []string{
		"train_batch_size: taken: ",
		"train_bacth_size: ignored by that tool: DeepSpeed does not know it; did you mean train_batch_size?",
		"steps_per_print: no effect on the plan: ",
		"zero_optimization.stage: taken: ",
		"zero_optimization.reduce_bucket_size: no effect on the plan: the default",
		"zero_optimization.stage3_max_live_parameters: not supported by planc: bounds the elements (not bytes) of " +
			"gathered parameters: memory of the gathers",
		"zero_optimization.zero_hpz_partition_size: not supported by planc: a second copy of the 16-bit parameters " +
			"over 8 ranks: more memory, and the backward pass gathers inside these ranks",
		"expert_parallel.autoep_sizee: ignored by that tool: DeepSpeed does not know it; did you mean autoep_size?",
		"sparse_attention.mode: not supported by planc: removed from DeepSpeed: version 0.19.8 refuses the file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWrongFiles(t *testing.T) {
	tests := []struct{ text, want string }{
		{`{"zero_optimization": {"stage": 3, "stage3_max_live_params": 1e9}, "train_batch_size": 8}`,
			"ds.json:1:36: zero_optimization has no key stage3_max_live_params, and DeepSpeed refuses the file; " +
				"did you " +
				"mean stage3_max_live_parameters? [UnknownKey]"},
		{`{"train_batch_size": 8, "tensor_parallel": {"autotp_sizee": 2}}`,
			"ds.json:1:45: tensor_parallel has no key autotp_sizee, and DeepSpeed refuses the file; did you mean " +
				"autotp_size? [UnknownKey]"},
		{`{"train_batch_size": 100, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}`,
			"ds.json:1:22: train_batch_size is 100, but train_micro_batch_size_per_gpu 4 × " +
				"gradient_accumulation_steps 8 " +
				"× 8 data-parallel ranks = 256; did you mean 256? [Conflict]"},
		{`{"train_batch_size": 100, "train_micro_batch_size_per_gpu": 4}`,
			"ds.json:1:22: train_batch_size is 100; it must be a multiple of train_micro_batch_size_per_gpu 4 · 8 " +
				"data-parallel ranks [Conflict]"},
		{`{"gradient_accumulation_steps": 8}`,
			"ds.json: neither train_batch_size nor train_micro_batch_size_per_gpu is given; DeepSpeed needs one " +
				"of them " +
				"[Missing]"},
		{`{"train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": true}}`,
			"ds.json:1:72: fp16.enabled and bf16.enabled are both true; DeepSpeed runs one of them: set one to false " +
				"[Conflict]"},
		{`{"train_batch_size": 8, "zero_optimization": {"stage": 4}}`,
			"ds.json:1:56: zero_optimization.stage is 4; it must be 0 to 3 [OutOfRange]"},
		{`{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}`,
			"ds.json:1:87: zero_optimization.offload_param.device needs zero_optimization.stage 3, and it is 2 " +
				"[Conflict]"},
		{`{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "gpu"}}}`,
			"ds.json:1:91: zero_optimization.offload_optimizer.device is \"gpu\"; use one of none, cpu, nvme; did " +
				"you mean " +
				"cpu? [UnknownValue]"},
		{`{"train_batch_size": 8, "zero_optimization.stage": 3}`, "ds.json:1:25: \"zero_optimization.stage\" is one key, " +
			"which DeepSpeed ignores: write \"zero_optimization\": {\"stage\": ...} [UnknownKey]"},
		{`{"train_batch_size": "eight"}`,
			"ds.json:1:22: train_batch_size is \"eight\"; it must be an integer [WrongType]"},
		{`{"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}}`,
			"ds.json:1:87: data_types.grad_accum_dtype is fp32 with zero_optimization.stage 0: DeepSpeed " +
				"accumulates in " +
				"another type than the model's only with stage 1, 2 or 3 [Conflict]"},
		{`{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 3}}`,
			"ds.json:1:60: tensor_parallel.autotp_size 3 must divide 8 devices [Conflict]"},
		{`{"train_batch_size": 8, "train_batch_size": 16}`,
			"ds.json:1:25: key train_batch_size is given twice, first on line 1 [DuplicateKey]"},
		{`{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"betas": [0.9]}}}`,
			"ds.json:1:75: optimizer.params.betas is [0.9]; Adam needs two numbers, each at least 0 and below 1: " +
				"write [0.9, 0.999] [WrongType]"},
		{`{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.95, 0.99]}}}`,
			"ds.json:1:76: optimizer.params.betas is [0.9, 0.95, 0.99]; Adam needs two numbers, each at least 0 and " +
				"below 1: write [0.9, 0.999] [WrongType]"},
		{`{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 1]}}}`,
			"ds.json:1:76: optimizer.params.betas is [0.9, 1]; Adam needs two numbers, each at least 0 and below 1: " +
				"write [0.9, 0.999] [WrongType]"},
		{`{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4611686018427387904}`,
			"ds.json:1:70: gradient_accumulation_steps is 4611686018427387904; it must be at most 9007199254740992 " +
				"[OutOfRange]"},
		{`{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4503599627370496}`,
			"ds.json:1:70: train_micro_batch_size_per_gpu 4 · gradient_accumulation_steps 4503599627370496 · 8 " +
				"data-parallel ranks are more than 100000000 sequences, the largest batch that planc supports: lower " +
				"gradient_accumulation_steps [OutOfRange]"},
		{`{"train_batch_size": 46116860184273879040}`,
			"ds.json:1:22: train_batch_size is 46116860184273879040; it must be at most 9007199254740992 " +
				"[OutOfRange]"},
		{`{"train_batch_size": 8 "fp16": {}}`, `ds.json:1:22: text without quotes ends with its line, so ` +
			`that "8 \"fp16\": {}}" is one text: write text in double quotes, and ',' between values [Syntax]`},
	}
	for _, test := range tests {
		_, err := load(interop.Options{Devices: 8}, test.text)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s\n%v\nwant %s", test.text, err, test.want)
		}
	}
}

// DeepSpeed reads its file as Hjson: quotes, commas and the outer braces may be left out, and edits keep that.
func TestHjson(t *testing.T) {
	const text = `# ours
train_micro_batch_size_per_gpu: 4
bf16: {enabled: true}
zero_optimization: {
  stage: 3
  offload_optimizer: {
    device: cpu
  }
}
`
	im := mustLoad(t, interop.Options{}, text)
	got := fieldsOf(im)
	if got["plan.micro_batch"] != "4" || got["plan.zero"] != "3" || got["train.precision.compute"] != "bf16" {
		t.Error(got)
	}
	for _, v := range []interop.Value{{Key: "zero_optimization.stage", Text: "2"},
		{Key: "gradient_accumulation_steps", Text: "8"}, {Key: "zero_optimization.offload_optimizer.ratio", Text: "1"},
		{Key: "bf16", IsAbsent: true}} {
		if err := im.Doc.Set(v); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.NewReplacer("stage: 3", "stage: 2", "bf16: {enabled: true}\n", "", "device: cpu\n",
		"device: cpu\n    \"ratio\": 1\n", "  }\n}\n", "  }\n}\n\"gradient_accumulation_steps\": 8\n").Replace(text)
	if diff := cmp.Diff(want, string(im.Doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestRecognize(t *testing.T) {
	for text, want := range map[string]interop.Confidence{
		zero3: interop.Certain, `{"train_batch_size": 8}`: interop.Likely, `{"model_type": "llama"}`: interop.No,
		`{`: interop.No, ``: interop.No, `{"fp16": {}, "bf16": {}, "optimizer": {}}`: interop.Likely,
	} {
		if got := deepspeed.Format.Recognize(interop.File{Name: "a.json", Data: []byte(text)}); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestEditsKeepTheUsersFile(t *testing.T) {
	im := mustLoad(t, interop.Options{}, "{\n  // ours\n"+zero3[2:])
	for _, v := range []interop.Value{{Key: "train_micro_batch_size_per_gpu", Text: "2"},
		{Key: "zero_optimization.stage", Text: "2"}, {Key: "tensor_parallel.autotp_size", Text: "4"},
		{Key: "train_batch_size", IsAbsent: true}} {
		if err := im.Doc.Set(v); err != nil {
			t.Fatal(err)
		}
	}
	const want = `{
  // ours
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2, "overlap_comm": true},
  "tensor_parallel": {
    "autotp_size": 4
  }
}`
	if diff := cmp.Diff(want, string(im.Doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(zero3, 8)
	f.Add(`{"train_batch_size": "auto", "fp16": {"enabled": true, "initial_scale_power": -9}, "optimizer": {}}`, 3)
	f.Add("train_batch_size: 8\nbf16: {enabled: true}\na: '''\n x\n''', b: 'c'\n", 8)
	f.Add(`{"bf16": [], "zero_optimization": {"offload_param": 1}, "scheduler": {"type": {}}}`, 0)
	f.Fuzz(func(t *testing.T, text string, devices int) {
		deepspeed.Format.Recognize(interop.File{Name: "a.json", Data: []byte(text)})
		im, err := load(interop.Options{Devices: devices}, text)
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
