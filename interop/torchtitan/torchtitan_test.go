package torchtitan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// file returns a configuration with some lines of [training] and [parallelism].
func file(training, parallelism string) string {
	return "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n" + training + "\n[parallelism]\n" +
		parallelism + "\n"
}

func read(text string, devices int) (*interop.Import, error) {
	return Format.Import([]interop.File{{Name: "job.toml", Data: []byte(text)}}, interop.Options{Devices: devices})
}

// Common errors are reported at their key, with what is allowed and what to type.
func TestWrongFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		devices int
		want    string
	}{
		"a misspelt key": {file("", "tensor_parallel_degre = 2"), 8,
			"job.toml:7:1: torchtitan 0.2 has no key parallelism.tensor_parallel_degre; did you mean " +
				"tensor_parallel_degree? [UnknownKey]"},
		"sections of 0.1": {file("", "") + "[float8]\nfilter_fqns = [\"output\"]\nenable_float8_linear = true\n" +
			"moe_fqns_prototype = []\n[mx]\n", 8, "job.toml:8:2: [float8] is a section of torchtitan 0.1, and planc " +
			"reads files of 0.2: write [quantize.linear.float8] [WrongDialect]\n" +
			"job.toml:10:1: torchtitan 0.2 has no key float8.enable_float8_linear [UnknownKey]\n" +
			"job.toml:11:1: float8.moe_fqns_prototype is a key of torchtitan 0.1, and planc reads files of 0.2: " +
			"write quantize.grouped_mm.float8.fqns [WrongDialect]\n" +
			"job.toml:12:2: [mx] is a section of torchtitan 0.1, and planc reads files of 0.2: write " +
			"[quantize.linear.mx] [WrongDialect]"},
		"degrees that are not the devices": {file("", "tensor_parallel_degree = 2\ndata_parallel_shard_degree = 8"), 8,
			"job.toml:8:30: 1 replicas × 8 shards × cp 1 × tp 2 × pp 1 are 16 devices, not 8: set " +
				"parallelism.data_parallel_shard_degree = -1, which means all remaining devices [Conflict]"},
		"a degree that does not divide the devices": {file("", "tensor_parallel_degree = 3"), 8,
			"job.toml:7:26: 1 replicas × cp 1 × tp 3 × pp 1 are 3 devices, which do not divide 8: lower one of these " +
				"degrees [Conflict]"},
		"shards of zero": {file("", "data_parallel_shard_degree = 0"), 8,
			"job.toml:7:30: parallelism.data_parallel_shard_degree is 0; it must be at least 1, or -1 for all " +
				"remaining devices; did you mean -1? [OutOfRange]"},
		"a batch that replicas do not divide": {file("local_batch_size = 2\nglobal_batch_size = 20", ""), 8,
			"job.toml:6:21: training.global_batch_size is 20; it must be a multiple of training.local_batch_size 2 " +
				"× 8 " +
				"replicas = 16; did you mean 16? [Conflict]"},
		"a batch below a multiple": {file("local_batch_size = 2\nglobal_batch_size = 30", ""), 8,
			"job.toml:6:21: training.global_batch_size is 30; it must be a multiple of training.local_batch_size 2 " +
				"× 8 replicas = 16; did you mean 32? [Conflict]"},
		"an unknown converter": {"[model]\nconverters = [\"float9\"]\n" +
			strings.TrimPrefix(file("", ""), "[model]\n"),
			8, "job.toml:2:14: model.converters has \"float9\"; use float8, quantize.linear.float8, mx, " +
				"quantize.linear.mx, quantize.grouped_mm.float8, quantize.grouped_mm.mx; did you mean " +
				"float8? [UnknownValue]"},
		"a micro-batch that does not divide the local batch": {file("local_batch_size = 8",
			"pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 3"), 8,
			"job.toml:8:37: parallelism.pipeline_parallel_microbatch_size is 3; it must divide " +
				"training.local_batch_size, which is 8 [Conflict]"},
		"an unknown schedule": {file("", "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1F1BB\""), 8,
			"job.toml:8:30: parallelism.pipeline_parallel_schedule is \"1F1BB\"; use one of 1F1B, Interleaved1F1B, " +
				"GPipe, " +
				"LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV, PipelineScheduleSingle, " +
				"PipelineScheduleMulti; did you mean 1F1B? [UnknownValue]"},
		"layers that make too many chunks": {file("", "pipeline_parallel_degree = 2\n"+
			"pipeline_parallel_layers_per_stage = 8"), 8,
			"job.toml:8:38: 32 layers, and 2 for the embedding and the output, make 5 chunks of up to 8, which 2 " +
				"stages " +
				"cannot share evenly [Conflict]"},
		"a selective option that is not a number": {file("", "") + "[activation_checkpoint]\nmode = \"selective\"\n" +
			"selective_ac_option = \"ops\"\n", 8,
			"job.toml:10:23: activation_checkpoint.selective_ac_option is \"ops\"; it must be \"op\", or in quotes " +
				"the " +
				"number n of \"every n-th block\" [UnknownValue]"},
		"an unknown flavor": {strings.Replace(file("", ""), "8B", "8b", 1), 8,
			"job.toml:3:10: torchtitan's llama3 has no flavor \"8b\": use one of debugmodel, debugmodel_flex_attn, " +
				"debugmodel_varlen_attn, 8B, 8B_flex, 8B_varlen, 70B, 405B, or give the model's config.json too; " +
				"did you " +
				"mean 8B? [UnknownValue]"},
		"DDP with tensor parallelism": {file("", "data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n"+
			"tensor_parallel_degree = 2"), 8,
			"job.toml:7:34: parallelism.data_parallel_replicate_degree = 4 with " +
				"parallelism.data_parallel_shard_degree = 1 " +
				"is DDP, which torchtitan does not combine with tp or pp: set " +
				"parallelism.data_parallel_shard_degree = 4 " +
				"and parallelism.data_parallel_replicate_degree = 1 [Conflict]"},
		"a key of the main branch": {file("seq_len = 8192\nnum_tokens_per_train_step = 1048576", ""), 8,
			"job.toml:6:1: training.num_tokens_per_train_step is a key of torchtitan's main branch since " +
				"2026-08-20, and " +
				"planc reads files of 0.2: write training.global_batch_size = 128, in sequences of 8192 tokens " +
				"[WrongDialect]"},
		"a key of 0.1": {file("tensor_parallel_degree = 2", ""), 8,
			"job.toml:5:1: training.tensor_parallel_degree is a key of torchtitan 0.1, and planc reads files of " +
				"0.2: write " +
				"parallelism.tensor_parallel_degree [WrongDialect]"},
		"a text instead of a number": {file("seq_len = \"8k\"", ""), 8,
			"job.toml:5:11: training.seq_len is \"8k\"; it must be an integer [WrongType]"},
		"a number in quotes": {file("local_batch_size = \"8\"", ""), 8,
			"job.toml:5:20: training.local_batch_size is \"8\"; it must be an integer [WrongType]"},
	} {
		_, err := read(c.text, c.devices)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// planOf returns the plan's fields of an import.
func planOf(im *interop.Import, keys string) string {
	var out []string
	for _, key := range strings.Fields(keys) {
		f, _ := im.Field("plan." + key)
		out = append(out, f.Value)
	}
	return strings.Join(out, " ")
}

// Choices that torchtitan makes by its defaults are pinned.
func TestDefaultsDecideThePlan(t *testing.T) {
	for _, c := range []struct {
		text    string
		devices int
		keys    string
		want    string
	}{
		{file("", ""), 8, "dp zero zero_group micro_batch micro_batches recompute recompute_layers", "8 3 8 8 1 " +
			"full 16"},
		{file("", ""), 0, "dp zero micro_batch micro_batches", " 3 8 1"},
		{file("", "data_parallel_replicate_degree = 2"), 16, "dp zero zero_group", "16 3 8"},
		{file("", "data_parallel_shard_degree = 1"), 1, "dp zero zero_group", "1 0 "},
		{file("", "fsdp_reshard_after_forward = \"never\"\ncontext_parallel_degree = 2"), 8,
			"dp cp cp_kind zero zero_group", "4 2 gather 2 8"},
		{file("local_batch_size = 8\nglobal_batch_size = 64", "pipeline_parallel_degree = 4\n"+
			"pipeline_parallel_schedule = \"interleaved1f1b\""), 8, "pp vpp schedule stage_layers zero micro_batches",
			"4 2 interleaved [4, 5, 4, 4, 4, 4, 4, 3] 1 32"},
		{file("", "tensor_parallel_degree = 8"), 8, "dp tp sp zero", "1 8 true 0"},
	} {
		im, err := read(c.text, c.devices)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := planOf(im, c.keys); got != c.want {
			t.Errorf("%s\n%s: %s, want %s", c.text, c.keys, got, c.want)
		}
	}
}

// The plan is priced as FSDP runs it.
func TestEngineIsFSDP(t *testing.T) {
	im, err := read(file("", ""), 8)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := im.Field("train.engine"); f.Value != "fsdp" || im.Engine != "fsdp" {
		t.Errorf("train.engine is %q, and Engine %q", f.Value, im.Engine)
	}
}

// torchtitan computes in FP32 if tp or pp is used without FSDP, whatever the file says.
func TestMixedPrecisionNeedsFSDP(t *testing.T) {
	im, err := read(file("mixed_precision_param = \"bfloat16\"", "tensor_parallel_degree = 8"), 8)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := im.Field("train.precision.compute")
	if f.Value != "f32" {
		t.Errorf("train.precision.compute is %s", f.Value)
	}
	for _, k := range im.Keys {
		if k.Name == mixedKey && k.Use != interop.IgnoredByTool {
			t.Errorf("%s: %s", k.Name, k.Use)
		}
	}
}

// Converters have one name in torchtitan 0.1 and another in 0.2; planc reads both, and writes that of the file.
func TestConverters(t *testing.T) {
	for _, c := range []struct{ list, precision, use string }{
		{`["float8"]`, "fp8", string(interop.Taken)},
		{`["quantize.linear.float8"]`, "fp8", string(interop.Taken)},
		{`["quantize.linear.float8", "quantize.grouped_mm.float8"]`, "fp8", string(interop.Taken)},
		{`["quantize.grouped_mm.float8"]`, "bf16", string(interop.Unsupported)},
		{`["mx"]`, "bf16", string(interop.Unsupported)},
		{`["quantize.linear.mx"]`, "bf16", string(interop.Unsupported)},
	} {
		text := strings.Replace(file("", ""), "[model]\n", "[model]\nconverters = "+c.list+"\n", 1)
		im, err := read(text, 8)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		f, _ := im.Field("train.precision.compute")
		if got := keyUse(im, convertersKey); f.Value != c.precision || string(got) != c.use {
			t.Errorf("%s: precision %s, %s; want %s, %s", c.list, f.Value, got, c.precision, c.use)
		}
		all := []interop.Value{{Key: convertersKey, Text: `["quantize.linear.float8"]`}}
		all = keepDerived(im.Doc, &interop.Target{Job: &spec.Job{}}, all)
		if isKept := all[0].Text == c.list; isKept != (c.precision == "fp8") {
			t.Errorf("%s becomes %s", c.list, all[0].Text)
		}
	}
}

// keyUse returns the use of a key.
func keyUse(im *interop.Import, name string) interop.Use {
	i := slices.IndexFunc(im.Keys, func(k interop.Key) bool { return k.Name == name })
	if i < 0 {
		return ""
	}
	return im.Keys[i].Use
}

// Every key of a file has a use, and keys that planc does not support are not counted at their defaults.
func TestKeysAreAccountedFor(t *testing.T) {
	im, err := read(file("enable_cpu_offload = false\ngc_freq = 50", "enable_async_tensor_parallel = true"), 8)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]interop.Use{}
	for _, k := range im.Keys {
		got[k.Name] = k.Use
	}
	want := map[string]interop.Use{"model.name": interop.Taken, "model.flavor": interop.Taken,
		"training.enable_cpu_offload": interop.NoEffect, "training.gc_freq": interop.NoEffect,
		"parallelism.enable_async_tensor_parallel": interop.Unsupported,
		"parallelism.data_parallel_shard_degree":   interop.Planned}
	delete(want, "parallelism.data_parallel_shard_degree") // the number of devices is known
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Import never panics, an edit says what it sets, and an edit of nothing keeps the bytes.
func FuzzImport(f *testing.F) {
	f.Add(file("local_batch_size = 4", "pipeline_parallel_degree = 2"), 8)
	f.Add(file("", "module_fqns_per_model_part = [[\"layers.0\"], [\"layers.1\", 3]]\npipeline_parallel_degree = 2"), 2)
	f.Add("[activation_checkpoint]\nselective_ac_option = \"-1\"\n", 3)
	f.Fuzz(func(t *testing.T, text string, devices int) {
		Format.Recognize(interop.File{Name: "job.toml", Data: []byte(text)})
		im, err := read(text, devices)
		if err != nil {
			return
		}
		doc, ok := im.Doc.(*tree.Doc)
		if !ok || string(doc.Bytes()) != text {
			t.Fatalf("an unedited file has changed")
		}
		im.JobText()
		v := interop.Value{Key: tpKey, Text: "16"}
		if err := doc.Set(v); err != nil {
			return
		}
		if got, ok := doc.Get(tpKey); !ok || got != v.Text {
			t.Fatalf("set %s to %s, got %q", v.Key, v.Text, got)
		}
		if err := doc.Remove(tpKey); err != nil {
			return
		}
		if _, ok := doc.Get(tpKey); ok {
			t.Fatal("a removed key is there")
		}
	})
}

// -1 stays: it is the number of remaining devices in every plan.
func TestTheRestOfTheDevicesStays(t *testing.T) {
	for text, want := range map[string]string{"-1": "-1", "8": "2"} {
		im, err := read(file("", shardKey[len(parallelism):]+" = "+text), 8)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range im.Values(&interop.Target{Plan: ir.Plan{DP: 4, TP: 2, PP: 1, CP: 1, Zero: 3, ZeroGroup: 2},
			Job: &spec.Job{Config: &spec.Config{}}}) {
			if v.Key == shardKey && v.Text != want {
				t.Errorf("%s becomes %s, want %s", text, v.Text, want)
			}
		}
	}
}

// A model that the user gives replaces that of the file, also one that is a default, and a note says so.
func TestTheGivenModelWins(t *testing.T) {
	const text = "[parallelism]\npipeline_parallel_degree = 2\n[activation_checkpoint]\nmode = \"full\"\n"
	model, err := spec.LoadModel("llama3-8b", nil)
	if err != nil {
		t.Fatal(err)
	}
	for flavor, note := range map[string]string{
		"": "t.toml:1:1: the given model llama3-8b replaces llama3 debugmodel",
		"[model]\nname = \"llama3\"\nflavor = \"70B\"\n": "t.toml:7:10: the given model llama3-8b replaces llama3 70B",
	} {
		im, err := Format.Import([]interop.File{{Name: "t.toml", Data: []byte(text + flavor)}},
			interop.Options{Devices: 8, Model: model})
		if err != nil {
			t.Fatal(err)
		}
		layers, _ := im.Field("plan.stage_layers")
		if layers.Value != "[16, 16]" || im.Has("model") {
			t.Errorf("%s: stage_layers %s, model %v", flavor, layers.Value, im.Has("model"))
		}
		if len(im.Notes) != 1 || im.Notes[0].String() != note {
			t.Errorf("%v, want %s", im.Notes, note)
		}
	}
}

// Llama 4 with 16 experts and GPT-OSS have shapes. What planc's model lacks is said; Llama 4 with 128 experts has none.
func TestShapesOfApproximatedModels(t *testing.T) {
	for flavor, want := range map[string][3]string{
		"llama4 17bx16e": {"qwen2_moe", "8192", "priced as a qwen2_moe of its shape: with rotary positions and whole " +
			"attention in every block"},
		"gpt_oss 120b": {"qwen3_moe", "2880", "priced as a qwen3_moe of its shape: without biases, attention sinks " +
			"and sliding windows"},
		"llama4 17bx128e": {"", "", "planc has no such model family: give a similar model with --model, or as a " +
			"config.json"},
	} {
		name, size, _ := strings.Cut(flavor, " ")
		text := "[model]\nname = \"" + name + "\"\nflavor = \"" + size + "\"\n"
		im, err := Format.Import([]interop.File{{Name: "t.toml", Data: []byte(text)}}, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		family, _ := im.Field("model.model_type")
		width, _ := im.Field("model.moe_intermediate_size")
		if family.Value != want[0] || width.Value != want[1] || im.Keys[0].Note != want[2] {
			t.Errorf("%s: %s, width %s, %q", flavor, family.Value, width.Value, im.Keys[0].Note)
		}
	}
}
