package megatron

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

// yamlLaunch starts Megatron-LM with arguments in YAML. Megatron-LM ignores its own --micro-batch-size.
const yamlLaunch = "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --micro-batch-size 4 --yaml-cfg cfg.yaml\n"

// yamlArguments is a file of arguments.
const yamlArguments = `language_model:
  num_layers: 8
  hidden_size: 1024
  num_attention_heads: 16
  num_query_groups: 4
  ffn_hidden_size: null
  activation_func: swiglu # not --swiglu
  recompute_granularity: full
  recompute_method: uniform
  recompute_num_layers: 1
  add_bias_linear: False
  normalization: RMSNorm
model_parallel:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: null
  sequence_parallel: True
  bf16: True
  timers: null
micro_batch_size: 2
global_batch_size: ${BATCH}
num_layers_per_virtual_pipeline_stage: 1
swiglu: False
untie_embeddings_and_output_weights: True
position_embedding_type: rope
use_distributed_optimizer: True
overlap_grad_reduce: True
seq_length: 2048
max_position_embeddings: 2048
vocab_size: 32000
tokenizer_type: NullTokenizer
`

// A script with --yaml-cfg has the arguments of its YAML file, and no others.
func TestYAMLArguments(t *testing.T) {
	want := map[string]string{"plan.tp": "2", "plan.pp": "4", "plan.vpp": "2", "plan.micro_batch": "2",
		"plan.recompute": "full", "plan.zero": "1", "plan.sp": "true", "train.global_batch": "64",
		"train.seq_len": "2048", "model.num_hidden_layers": "8", "model.num_key_value_heads": "4",
		"model.intermediate_size": "2688"}
	define := map[string]string{"BATCH": "64"}
	script, arguments := textFile("y.sh", yamlLaunch), textFile("cfg.yaml", yamlArguments)
	for _, c := range []struct {
		name  string
		files []interop.File
		o     interop.Options
	}{
		{"both", []interop.File{script, arguments}, interop.Options{Define: define}},
		{"the other order", []interop.File{arguments, script}, interop.Options{Define: define}},
		{"in the script's folder", []interop.File{textFile("jobs/y.sh", yamlLaunch)}, interop.Options{Define: define,
			Read: onDisk(map[string]string{"jobs/cfg.yaml": yamlArguments})}},
		{"a variable of the script", []interop.File{textFile("y.sh", "export BATCH=64\n"+yamlLaunch), arguments},
			interop.Options{}},
		{"alone", []interop.File{arguments}, interop.Options{Define: define, Devices: 16}},
	} {
		im, err := Import(c.files, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := map[string]string{}
		for path, value := range values(im) {
			if want[path] != "" {
				got[path] = value
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if c.name != "alone" && im.Devices != 16 || len(im.Notes) > 0 || !strings.HasSuffix(im.Files[0], "cfg.yaml") {
			t.Errorf("%s: %d devices, %v, %v", c.name, im.Devices, im.Files, im.Notes)
		}
	}
}

// All keys of both files are accounted for.
func TestYAMLArgumentsAreAccountedFor(t *testing.T) {
	im, err := Import([]interop.File{textFile("y.sh", yamlLaunch), textFile("cfg.yaml", yamlArguments)},
		interop.Options{Define: map[string]string{"BATCH": "64"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, k := range im.Keys {
		got[k.Pos.String()+" "+k.Name] = strings.TrimSpace(string(k.Use) + " " + k.Note)
	}
	for _, want := range []string{
		"y.sh:1:56 --micro-batch-size: ignored by that tool Megatron-LM takes all arguments from cfg.yaml",
		"y.sh:1:77 --yaml-cfg: taken",
		"cfg.yaml:14:3 model_parallel.tensor_model_parallel_size: taken",
		"cfg.yaml:6:3 language_model.ffn_hidden_size: no effect on the plan the default",
		"cfg.yaml:23:1 swiglu: ignored by that tool language_model.activation_func says the activation",
	} {
		i := strings.LastIndex(want, ": ")
		if key := want[:i]; key+": "+got[key] != want {
			t.Errorf("%s: %q, want %q", key, got[key], want[i+2:])
		}
	}
	lines := strings.Count(yamlArguments, "\n") - 2 // without the sections
	inYAML := map[string]bool{}
	for key := range got {
		if strings.HasPrefix(key, "cfg.yaml:") {
			inYAML[key] = true
		}
	}
	if len(inYAML) != lines {
		t.Errorf("%d keys of %d are accounted for", len(inYAML), lines)
	}
}

// What is wrong with a pair of files is named with its place.
func TestWrongYAMLArguments(t *testing.T) {
	replaced := func(old, by string) string { return strings.Replace(yamlArguments, old, by, 1) }
	for _, c := range []struct{ script, text, want string }{
		{yamlLaunch, "", "y.sh:1:77: --yaml-cfg cfg.yaml: Megatron-LM takes all arguments from that file, and " +
			"ignores those of the command line: give the file too, after y.sh [BadOption]"},
		{strings.Replace(yamlLaunch, "cfg.yaml", "$CFG", 1), "", "y.sh:1:88: $CFG has no value here: type --define " +
			"CFG=VALUE (--yaml-cfg needs it) [Undefined]"},
		{yamlLaunch, yamlArguments, "cfg.yaml:21:1: $BATCH has no value here: type --define BATCH=VALUE " +
			"(global_batch_size needs it) [Undefined]"},
		{yamlLaunch, replaced("${BATCH}", "64\ntensor_model_parallel_size: 2"), "cfg.yaml:22:1: " +
			"tensor_model_parallel_size: Megatron-LM reads this key in the section model_parallel: move it there " +
			"[BadOption]"},
		{yamlLaunch, strings.Replace(replaced("${BATCH}", "64"), "num_layers: 8", "num_layers: eight", 1),
			"cfg.yaml:2:3: language_model.num_layers eight: the value must be an integer [BadOption]"},
		{yamlLaunch, strings.Replace(replaced("${BATCH}", "64"), "func: swiglu", "func: silu", 1),
			"cfg.yaml:7:20: language_model.activation_func silu: the value must be one of swiglu, squaredrelu, gelu " +
				"[BadOption]"},
	} {
		files := []interop.File{textFile("y.sh", c.script)}
		if c.text != "" {
			files = append(files, textFile("cfg.yaml", c.text))
		}
		_, err := Import(files, interop.Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// The YAML file is recognized, and edited in place.
func TestYAMLArgumentsAreEdited(t *testing.T) {
	file := textFile("cfg.yaml", yamlArguments)
	if c := Recognize(file); c != interop.Certain {
		t.Errorf("recognized: %v", c)
	}
	im, err := Import([]interop.File{textFile("y.sh", yamlLaunch), file},
		interop.Options{Define: map[string]string{"BATCH": "64"}})
	if err != nil {
		t.Fatal(err)
	}
	err = im.Doc.Set(interop.Value{Key: "model_parallel.tensor_model_parallel_size", Text: "4"})
	want := strings.Replace(yamlArguments, "parallel_size: 2", "parallel_size: 4", 1)
	if err != nil || string(im.Doc.Bytes()) != want {
		t.Errorf("%v\n%s", err, im.Doc.Bytes())
	}
}

// gated_linear_unit makes the MLP of any activation gated, and Megatron-LM needs activation_func.
func TestYAMLGatedMLP(t *testing.T) {
	read := func(activation string) (map[string]string, error) {
		text := strings.Replace(yamlArguments, "  activation_func: swiglu # not --swiglu\n", activation, 1)
		text = strings.Replace(text, "ffn_hidden_size: null", "ffn_hidden_size: 4096", 1)
		im, err := Import([]interop.File{textFile("cfg.yaml", text)}, interop.Options{Devices: 16,
			Define: map[string]string{"BATCH": "64"}})
		if err != nil {
			return nil, err
		}
		return values(im), nil
	}
	for activation, want := range map[string]string{
		"  activation_func: swiglu\n":                            "4096",
		"  activation_func: swiglu\n  gated_linear_unit: true\n": "4096",
		"  activation_func: gelu\n  gated_linear_unit: true\n":   "4096",
		"  activation_func: gelu\n  gated_linear_unit: false\n":  "2688", // a plain MLP of as many parameters
		"  activation_func: gelu\n":                              "2688",
	} {
		got, err := read(activation)
		if err != nil || got["model.intermediate_size"] != want {
			t.Errorf("%s: intermediate_size %s, %v", activation, got["model.intermediate_size"], err)
		}
	}
	const missing = "language_model.activation_func is missing, and Megatron-LM has no default: add gelu, swiglu or " +
		"squaredrelu"
	if _, err := read(""); err == nil || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
}
