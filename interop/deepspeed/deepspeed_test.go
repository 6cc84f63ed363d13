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
				"train.global_batch": "16", "train.precision.compute": "f32"}},
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
			map[string]string{"plan.recompute": "none", "plan.recompute_split": ""}},
		{"no tp over which saved activations are split", `{"train_batch_size": 64,
			"activation_checkpointing": {"partition_activations": true}}`,
			map[string]string{"plan.recompute": "none", "plan.recompute_split": ""}},
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

// The number of pipeline stages is the file's, although only the training code says it to DeepSpeed. With stages 2 and
// 3 of ZeRO there is no pipeline.
func TestPipelines(t *testing.T) {
	const auto, number = "\"pipeline\": {\"stages\": \"auto\"},", "\"pipeline\": {\"stages\": 2},"
	for _, c := range []struct {
		pipeline, stage string
		pp, batch, note string
		use             interop.Use
		inCode          int
	}{
		{number, "3", "1", "512", "", interop.IgnoredByTool, 0},
		{number, "1", "2", "256", "ds.json:1:25: pipeline.stages 2 is taken as pp 2; DeepSpeed does not read it, and " +
			"the model's code must say it too: PipelineModule(num_stages=2)", interop.Taken, 1},
		{auto, "1", "", "", "", interop.Planned, 1},
	} {
		text := strings.Replace(zero3, "\"stage\": 3", "\"stage\": "+c.stage, 1)
		im := mustLoad(t, interop.Options{Devices: 16}, strings.Replace(text, "{", "{"+c.pipeline, 1))
		got := fieldsOf(im)
		if got["plan.pp"] != c.pp || got["train.global_batch"] != c.batch || len(im.InCode) != c.inCode {
			t.Errorf("%s: %v, %v", c.pipeline, got, im.InCode)
		}
		i := slices.IndexFunc(im.Keys, func(k interop.Key) bool { return k.Name == "pipeline.stages" })
		if i < 0 || im.Keys[i].Use != c.use {
			t.Errorf("%s: %+v", c.pipeline, im.Keys)
		}
		note := ""
		for _, n := range im.Notes {
			note += n.String()
		}
		if note != c.note {
			t.Errorf("%s: %q, want %q", c.pipeline, note, c.note)
		}
	}
}

func TestAutoIsLeftToThePlanner(t *testing.T) {
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
		"train_bacth_size: ignored by that tool: DeepSpeed does not know it",
		"steps_per_print: no effect on the plan: ",
		"zero_optimization.stage: taken: ",
		"zero_optimization.reduce_bucket_size: no effect on the plan: the default",
		"zero_optimization.stage3_max_live_parameters: not supported by planc: bounds the elements (not bytes) of " +
			"gathered parameters: memory of the gathers",
		"zero_optimization.zero_hpz_partition_size: not supported by planc: ZeRO++: a second copy of the 16-bit " +
			"parameters over 8 ranks: more memory, and the backward pass gathers inside these ranks",
		"expert_parallel.autoep_sizee: ignored by that tool: DeepSpeed does not know it",
		"sparse_attention.mode: not supported by planc: removed from DeepSpeed: version 0.19.8 refuses the file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A misspelt key that DeepSpeed ignores is named once, also if it is a mapping with several keys.
func TestMisspeltKeysAreNamedOnce(t *testing.T) {
	im := mustLoad(t, interop.Options{}, `{"train_batch_size": 8, "train_bacth_size": 16,
		"zero_optimisation": {"stage": 3, "overlap_comm": true, "offload_param": {"device": "cpu"}}}`)
	var got []string
	for _, n := range im.Notes {
		if n.IsWarning {
			got = append(got, n.String())
		}
	}
	want := []string{
		"ds.json:1:25: DeepSpeed does not know train_bacth_size and ignores it; did you mean train_batch_size?",
		"ds.json:2:3: DeepSpeed does not know zero_optimisation and ignores it; did you mean zero_optimization?",
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
		{`{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
			"tensor_parallel": {"autotp_size": 2}}`,
			"ds.json:1:22: train_batch_size is 32, but train_micro_batch_size_per_gpu 2 × " +
				"gradient_accumulation_steps 4 × 8 ranks, with those of tp = 64; did you mean 64? [Conflict]"},
		{`{"train_batch_size": 100, "train_micro_batch_size_per_gpu": 4}`,
			"ds.json:1:22: train_batch_size is 100; it must be a multiple of train_micro_batch_size_per_gpu 4 · 8 " +
				"data-parallel ranks [Conflict]"},
		{`{"gradient_accumulation_steps": 8}`,
			"ds.json:1:1: neither train_batch_size nor train_micro_batch_size_per_gpu is given; DeepSpeed needs one " +
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
		{`{"train_batch_size": 8, "zero_optimization": {"stage": 3, "cpu_offload": true, "offload_optimizer": {}}}`,
			"ds.json:1:74: zero_optimization.cpu_offload is the old name of zero_optimization.offload_optimizer, and " +
				"DeepSpeed refuses a file with both: remove zero_optimization.cpu_offload [Conflict]"},
		{`{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": -1}}`,
			"ds.json:1:89: zero_optimization.stage3_max_live_parameters is -1; it must be at least 0 [OutOfRange]"},
		{`{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 0}}`,
			"ds.json:1:81: zero_optimization.reduce_bucket_size is 0; it must be at least 1 [OutOfRange]"},
		{`{"train_batch_size": 8, "zero_optimization.stage": 3}`, "ds.json:1:25: \"zero_optimization.stage\" is one key, " +
			"which DeepSpeed ignores: write \"zero_optimization\": {\"stage\": ...} [UnknownKey]"},
		{"{\n  \"train_batch_size\": \"64\"\n}", "ds.json:2:23: train_batch_size is \"64\", a text, with " +
			"which DeepSpeed cannot compute: write 64 without quotes [WrongType]"},
		{`{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": "1e-4"}}}`,
			"ds.json:1:73: optimizer.params.lr is \"1e-4\", a text, with which DeepSpeed cannot compute: write 1e-4 " +
				"without quotes [WrongType]"},
		{`{"train_batch_size": 8, "gradient_clipping": "1.0 "}`,
			"ds.json:1:46: gradient_clipping is \"1.0 \", a text, with which DeepSpeed cannot compute: write 1.0 " +
				"without quotes [WrongType]"},
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
// Of two configurations, neither is taken for something else.
func TestTwoConfigurations(t *testing.T) {
	text := []byte(`{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}}`)
	files := []interop.File{{Name: "a.json", Data: text}, {Name: "b.json", Data: text}}
	_, err := deepspeed.Format.Import(files, interop.Options{Devices: 8})
	const want = "b.json:1:1: a.json is a configuration of DeepSpeed too: give the files of one training [Conflict]"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

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

// A ds_config.json that Accelerate or transformers reads is JSON without comments and trailing commas.
func TestConfigsOfAccelerateAreStrict(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  // ours\n  \"train_batch_size\": 8\n}": "ds.json:2:3: Accelerate and transformers read this file as " +
			"JSON, which has no comments: remove this one [Syntax]",
		"{\n  \"train_batch_size\": 8,\n}": "ds.json:3:1: Accelerate and transformers read this file as JSON, which " +
			"has no comma before a closing bracket: remove it [Syntax]",
	} {
		_, diags := deepspeed.Read(&interop.Import{}, interop.File{Name: "ds.json", Data: []byte(text)}, nil, 8)
		if len(diags) != 1 || diags.Error() != want {
			t.Errorf("%v, want %s", diags, want)
		}
	}
}

// A number in quotes is an error only if DeepSpeed computes with it.
func TestQuotedNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`"expert_parallel": {"enabled": false, "autoep_size": "8"}`:      "",
		`"optimizer": {"type": "Adam", "params": {"name": "7"}}`:         "",
		`"expert_parallel": {"enabled": true, "autoep_size": "8"}`:       "write 8 without quotes",
		`"optimizer": {"type": "Adam", "params": {"lr": "3e-4"}}`:        "write 3e-4 without quotes",
		`"gradient_clipping": "inf"`:                                     "write a finite number without quotes",
		`"scheduler": {"type": "W", "params": {"warmup_max_lr": "1e3"}}`: "write 1e3 without quotes",
	} {
		file := interop.File{Name: "ds.json", Data: []byte(`{"train_batch_size": 64, ` + text + `}`)}
		_, err := deepspeed.Format.Import([]interop.File{file}, interop.Options{Devices: 8})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// activation_checkpointing configures DeepSpeed's own checkpoint function, and does not say that the model calls it.
func TestActivationCheckpointingIsNotRecomputation(t *testing.T) {
	const section = `"activation_checkpointing": {"partition_activations": true}}`
	const one, two = `{"train_batch_size": 64, ` + section,
		`{"train_batch_size": 64, "tensor_parallel": {"autotp_size": 2}, ` + section
	for _, c := range []struct{ text, use string }{
		{one, "no effect on the plan: it splits saved activations over tp"},
		{two, "not supported by planc: if the model's code calls deepspeed.checkpointing.checkpoint, the block " +
			"inputs that it saves are split over tp: --set plan.recompute=full --set plan.recompute_split=true"},
	} {
		im := mustLoad(t, interop.Options{}, c.text)
		i := slices.IndexFunc(im.Keys, func(k interop.Key) bool {
			return k.Name == "activation_checkpointing.partition_activations"
		})
		if got := string(im.Keys[i].Use) + ": " + im.Keys[i].Note; got != c.use {
			t.Errorf("%s: %s", c.text, got)
		}
		n := len(im.Notes)
		if n == 0 || !strings.Contains(im.Notes[n-1].Text, "does not switch recomputation on") {
			t.Errorf("%s: %v", c.text, im.Notes)
		}
	}
}
