package bridge

import (
	"strings"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
)

func read(text string, devices int) (*interop.Import, error) {
	return Format.Import([]interop.File{{Name: "run_config.yaml", Data: []byte(text)}},
		interop.Options{Devices: devices})
}

// config is a run_config.yaml of a small Llama, with some lines of model, train and the top level.
func config(model, train, top string) string {
	return "_target_: megatron.bridge.training.config.ConfigContainer\n" +
		"model:\n  _target_: megatron.bridge.models.llama.LlamaModelProvider\n  num_layers: 32\n  hidden_size: 4096\n" +
		"  num_attention_heads: 32\n  num_query_groups: 8\n  ffn_hidden_size: 14336\n  seq_length: 8192\n" +
		"  vocab_size: 128256\n  gated_linear_unit: true\n  add_bias_linear: false\n  normalization: RMSNorm\n" +
		"  position_embedding_type: rope\n  rotary_base: 500000\n  share_embeddings_and_output_weights: false\n" +
		"  activation_func: {_target_: torch.nn.functional.silu, _call_: false}\n" + model +
		"train:\n  micro_batch_size: 1\n  global_batch_size: 128\n" + train + top
}

// fields returns some fields of the job of an import.
func fields(im *interop.Import, paths string) string {
	var out []string
	for _, path := range strings.Fields(paths) {
		f, _ := im.Field(path)
		out = append(out, f.Value)
	}
	return strings.Join(out, " ")
}

func TestImport(t *testing.T) {
	for _, c := range []struct{ text, paths, want string }{
		{config("", "", "mixed_precision: bf16_mixed\n"),
			"model.model_type model.num_hidden_layers model.num_key_value_heads model.tie_word_embeddings " +
				"train.seq_len " +
				"train.global_batch plan.tp plan.micro_batch train.engine",
			"llama 32 8 false 8192 128 1 1 megatron"},
		{config("  tensor_model_parallel_size: 4\n  sequence_parallel: true\n  pipeline_model_parallel_size: 4\n"+
			"  virtual_pipeline_model_parallel_size: 2\n", "", "ddp:\n  use_distributed_optimizer: true\n"),
			"plan.tp plan.sp plan.pp plan.vpp plan.schedule plan.zero", "4 true 4 2 interleaved 1"},
		{config("  pipeline_model_parallel_size: 2\n  pipeline_model_parallel_layout:\n  - [embedding"+
			strings.Repeat(", decoder", 15)+"]\n  - ["+strings.Repeat("decoder, ", 17)+"loss]\n", "", ""),
			"plan.pp plan.stage_layers", "2 [15, 17]"},
		{config("  recompute_granularity: full\n  recompute_method: block\n  recompute_num_layers: 4\n", "",
			"mixed_precision:\n  fp16: true\n  bf16: false\n"),
			"plan.recompute plan.recompute_layers train.precision", "full 4 fp16"},
		{config("", "", "ddp:\n  use_megatron_fsdp: true\n  data_parallel_sharding_strategy: optim_grads_params\n"),
			"train.engine plan.zero", "megatron-fsdp 3"},
		{strings.Replace(config("", "", ""), "rotary_base: 500000", "rotary_base: 1000000.0", 1), "model.rope_theta",
			"1.0e+06"},
	} {
		im, err := read(c.text, 0)
		if err != nil {
			t.Errorf("%s\n%v", c.text, err)
			continue
		}
		if got := fields(im, c.paths); got != c.want {
			t.Errorf("%s\n%s: %s, want %s", c.text, c.paths, got, c.want)
		}
	}
}

// A seed that is Megatron-LM's default is taken too, because planc's default is another.
func TestSeed(t *testing.T) {
	for _, seed := range []string{"1234", "7"} {
		im, err := read(config("", "", "rng:\n  seed: "+seed+"\n"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fields(im, "train.seed"); got != seed {
			t.Errorf("%q, want %s", got, seed)
		}
	}
}

// Groups that are null have no effect, and a setting that mixed_precision replaces says so.
func TestNotesOfKeys(t *testing.T) {
	im, err := read(config("  bf16: true\n", "", "comm_overlap: null\nmixed_precision: bf16_mixed\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"comm_overlap": "no effect on the plan: the default",
		"model.bf16": "ignored by that tool: mixed_precision says it too"}
	found := 0
	for _, k := range im.Keys {
		text := string(k.Use) + ": " + k.Note
		if want[k.Name] == "" {
			continue
		}
		found++
		if want[k.Name] != text {
			t.Errorf("%s: %s, want %s", k.Name, text, want[k.Name])
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d keys", found, len(want))
	}
}

// Overlap of tensor-parallel communication is not priced. If it is off, the key has no effect.
func TestTensorParallelOverlap(t *testing.T) {
	const path = "comm_overlap.tp_comm_overlap"
	for value, want := range map[string]string{"null": "no effect on the plan: the default",
		"false": "no effect on the plan: it is off",
		"true": "not supported by planc: overlaps tensor-parallel communication with GEMMs: tp costs less than planc " +
			"counts"} {
		im, err := read(config("", "", "comm_overlap:\n  tp_comm_overlap: "+value+"\n"), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, k := range im.Keys {
			if k.Name == path {
				got = string(k.Use) + ": " + k.Note
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// Common errors are reported at their key, with what is allowed and what to type.
func TestWrongFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		devices int
		want    string
	}{
		"a misspelt key": {config("  tensor_model_paralel_size: 2\n", "", ""), 0,
			"run_config.yaml:18:3: Megatron-Bridge 0.6 has no key model.tensor_model_paralel_size; did you mean " +
				"tensor_model_parallel_size? [UnknownKey]"},
		"a key of train": {config("", "  micro_batch_sizes: 2\n", ""), 0,
			"run_config.yaml:21:3: Megatron-Bridge 0.6 has no key train.micro_batch_sizes; did you mean " +
				"micro_batch_size? [UnknownKey]"},
		"a wrong granularity": {config("  recompute_granularity: all\n", "", ""), 0,
			"run_config.yaml:18:26: model.recompute_granularity all: the value must be one of full, selective " +
				"[BadOption]"},
		"a degree of zero": {config("  pipeline_model_parallel_size: 0\n", "", ""), 0,
			"run_config.yaml:18:33: model.pipeline_model_parallel_size 0: the value must be at least 1 [BadOption]"},
		"a text for a number": {config("  tensor_model_parallel_size: four\n", "", ""), 0,
			"run_config.yaml:18:31: model.tensor_model_parallel_size four: the value must be an integer [BadOption]"},
		"a recipe": {config("", "", "mixed_precision: mixed_bf\n"), 0,
			"run_config.yaml:21:18: mixed_precision is \"mixed_bf\"; use bf16_mixed, fp16_mixed or a recipe with " +
				"fp8, such as bf16_with_fp8_current_scaling_mixed [UnknownValue]"},
		"a part of a layout": {config("  pipeline_model_parallel_layout: [[embed], [loss]]\n", "", ""), 0,
			"run_config.yaml:18:37: model.pipeline_model_parallel_layout has \"embed\"; its parts are embedding, " +
				"decoder, mtp and loss [UnknownValue]"},
		"no micro-batch": {strings.Replace(config("", "", ""), "  micro_batch_size: 1\n", "", 1), 0,
			"run_config.yaml:1:1: train.micro_batch_size is missing, and Megatron-LM has no default: add " +
				"train.micro_batch_size 1 [BadOption]"},
		"stages": {config("  pipeline_model_parallel_size: 5\n", "", ""), 0,
			"run_config.yaml:18:33: model.pipeline_model_parallel_size 5: 5 stages do not divide 32 layers: use 4 or " +
				"8, or model.pipeline_model_parallel_layout [BadOption]"},
		"chunks and layout": {config("  pipeline_model_parallel_size: 2\n  virtual_pipeline_model_parallel_size: 2\n"+
			"  pipeline_model_parallel_layout: \"Et*16|t*16L\"\n", "", ""), 0,
			"run_config.yaml:20:35: model.virtual_pipeline_model_parallel_size and " +
				"model.pipeline_model_parallel_layout exclude each other: remove one [BadOption]"},
		"samples of another length": {config("", "", "dataset:\n  sequence_length: 4096\n"), 0,
			"run_config.yaml:22:20: dataset.sequence_length 4096 must equal model.seq_length 8192: set both to the " +
				"same length [BadOption]"},
		"not YAML": {config("", "", "ddp: [\n"), 0,
			"run_config.yaml:22:1: while parsing a flow node: did not find expected node content [Syntax]"},
	} {
		_, err := read(c.text, c.devices)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// Import never panics, an edit says what it sets, and an edit of nothing keeps the bytes.
func FuzzImport(f *testing.F) {
	f.Add(config("  tensor_model_parallel_size: 4\n", "", "mixed_precision: bf16_mixed\n"), 8)
	f.Add("model:\n  pipeline_model_parallel_layout: [[embedding, decoder], 3]\n  num_query_groups: [2]\n", 0)
	f.Fuzz(func(t *testing.T, text string, devices int) {
		Format.Recognize(interop.File{Name: "run_config.yaml", Data: []byte(text)})
		im, err := read(text, devices)
		if err != nil {
			return
		}
		if string(im.Doc.Bytes()) != text {
			t.Fatal("an unedited file has changed")
		}
		im.JobText()
		v := interop.Value{Key: "model.context_parallel_size", Text: "16"}
		if err := im.Doc.Set(v); err != nil {
			return
		}
		if got, ok := im.Doc.Get(v.Key); !ok || got != v.Text {
			t.Fatalf("set %s to %s, got %q", v.Key, v.Text, got)
		}
		if err := im.Doc.Remove(v.Key); err != nil {
			return
		}
		if _, ok := im.Doc.Get(v.Key); ok {
			t.Fatal("a removed key is there")
		}
	})
}
