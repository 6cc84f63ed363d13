package swift

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

const script = `export NNODES=2
NPROC_PER_NODE=8 \
megatron sft \
    --model Qwen/Qwen2.5-7B \
    --dataset data.jsonl \
    --tensor_model_parallel_size 4 \
    --sequence_parallel true \
    --context_parallel_size 2 \
    --micro_batch_size 2 \
    --global_batch_size 64 \
    --recompute_granularity none \
    --max_length 8192 \
    --lr 1e-5
`

func importScript(t *testing.T, text string) *interop.Import {
	t.Helper()
	im, err := Format.Import([]interop.File{{Name: "run.sh", Data: []byte(text)}}, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func TestImport(t *testing.T) {
	im := importScript(t, script)
	for path, want := range map[string]string{"plan.tp": "4", "plan.sp": "true", "plan.cp": "2", "plan.cp_kind": "ring",
		"plan.zero": "1", "plan.zero_group": "4", "plan.etp": "1", "plan.recompute": "none", "train.seq_len": "8192",
		"train.global_batch": "64", "train.precision": "bf16", "train.engine": "megatron", "plan.micro_batch": "2",
		"train.optimizer.betas": "[0.9, 0.95]"} {
		if f, _ := im.Field(path); f.Value != want {
			t.Errorf("%s is %q, want %q", path, f.Value, want)
		}
	}
	if im.Devices != 16 || im.DevicesPerNode != 8 {
		t.Errorf("%d devices, %d a node", im.Devices, im.DevicesPerNode)
	}
	if f, _ := im.Field("model.base"); f.Value != "qwen2.5-7b" {
		t.Errorf("model %q", f.Value)
	}
}

func TestEdit(t *testing.T) {
	doc := importScript(t, script).Doc
	for _, v := range []interop.Value{{Key: "--tensor_model_parallel_size", Text: "2"},
		{Key: "--sequence_parallel", IsAbsent: true}, {Key: "--use_distributed_optimizer", Text: "true"},
		{Key: "--pipeline_model_parallel_size", Text: "2"}, {Key: "--recompute_granularity", Text: "selective"}} {
		if err := doc.Set(v); err != nil {
			t.Error(err)
		}
	}
	const want = `export NNODES=2
NPROC_PER_NODE=8 \
megatron sft \
    --model Qwen/Qwen2.5-7B \
    --dataset data.jsonl \
    --tensor_model_parallel_size 2 \
    --pipeline_model_parallel_size 2 \
    --context_parallel_size 2 \
    --micro_batch_size 2 \
    --global_batch_size 64 \
    --recompute_granularity selective \
    --max_length 8192 \
    --lr 1e-5
`
	if diff := cmp.Diff(want, string(doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// An option that is probably a misspelt one of the plan is a warning: ms-swift has many that planc does not know.
func TestMisspeltOptions(t *testing.T) {
	for option, want := range map[string]string{
		"--tensor_model_parallel_sze 2": "",
		"--pipeline_model_parallel_sze 2": "run.sh:3:14: planc does not know --pipeline_model_parallel_sze; did you " +
			"mean --pipeline_model_parallel_size? ms-swift refuses options that it does not have",
		"--recompute-modules_ core_attn": "run.sh:3:14: planc does not know --recompute-modules_; did you mean " +
			"--recompute_modules? ms-swift refuses options that it does not have",
		"--vit_gradient_checkpointing true": "", "--attention_backend flash": "", "--lora_rank 8": "",
	} {
		im := importScript(t, strings.Replace(script, "megatron sft", "megatron sft "+option, 1))
		got := ""
		for _, n := range im.Notes {
			got += n.String()
			if !n.IsWarning {
				t.Errorf("%s: %q is no warning", option, got)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", option, got, want)
		}
	}
}

// A config.json that is given has the shape of the model that --model names.
func TestTheModelIsGiven(t *testing.T) {
	const config = `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
  "intermediate_size": 128, "vocab_size": 256}`
	text := strings.Replace(script, "Qwen/Qwen2.5-7B", "my/model", 1)
	for files, want := range map[int]string{
		1: "not supported by planc: the shape of the model is in its config.json: add that as a second file, or give " +
			"--model",
		2: "no effect on the plan: the given config.json has the shape of the model",
	} {
		all := []interop.File{{Name: "run.sh", Data: []byte(text)}, {Name: "config.json", Data: []byte(config)}}
		im, err := Format.Import(all[:files], interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, k := range im.Keys {
			if k.Name == "--model" {
				got += string(k.Use) + ": " + k.Note
			}
		}
		if got != want {
			t.Errorf("%d files: %q, want %q", files, got, want)
		}
	}
}

func TestRecognize(t *testing.T) {
	for text, want := range map[string]interop.Confidence{script: interop.Certain, "torchrun x.py": interop.No,
		"python x.py --tensor_model_parallel_size 2": interop.Likely} {
		if got := Recognize(interop.File{Data: []byte(text)}); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// Errors have the spelling of ms-swift.
func TestErrors(t *testing.T) {
	file := interop.File{Name: "run.sh", Data: []byte("megatron sft --tensor_model_parallel_size 0")}
	_, err := Format.Import([]interop.File{file}, interop.Options{})
	const want = "run.sh:1:14: --tensor_model_parallel_size 0: the value must be at least 1 [BadOption]"
	if err == nil || err.(ir.Diags).Error() != want {
		t.Errorf("%v", err)
	}
}

// Options that do not change the plan are not called unsupported, and planc's own scripts have no unknown word.
func TestHarmlessOptions(t *testing.T) {
	im := importScript(t, script[:len(script)-1]+" --packing true --tf32 true --max_epochs 3 --other_way 1 "+
		"\"$@\"\n")
	want := map[string]string{"--dataset": "", "--max_epochs": "",
		"--packing": "planc prices full sequences, which packing makes of short ones",
		"--tf32":    "matmuls of fp32 run in TF32, and a training in bf16 or fp16 has few",
		"$@":        "no arguments of the script are given: --define '@=...' gives them"}
	for _, k := range im.Keys {
		const unknown = "planc does not know this option: its cost is not in the prediction"
		if k.Name == "--other_way" && (k.Use != interop.Unsupported || k.Note != unknown) {
			t.Errorf("%+v", k)
		}
		if note, ok := want[k.Name]; ok && k.Use == interop.NoEffect && k.Note == note {
			delete(want, k.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v\n%v", want, im.Keys)
	}
}

// An option that begins like exactly one that decides the plan is probably that one.
func TestShortenedOptions(t *testing.T) {
	im := importScript(t, "megatron sft --micro_batch 1 --global_batch_size 8\n")
	const want = "planc does not know --micro_batch; did you mean --micro_batch_size? ms-swift refuses options that " +
		"it does not have"
	isWanted := func(n interop.Note) bool { return n.IsWarning && n.Text == want }
	if !slices.ContainsFunc(im.Notes, isWanted) {
		t.Errorf("%v", im.Notes)
	}
}
