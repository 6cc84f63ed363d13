package swift

import (
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
	im := importScript(t, script[:len(script)-1]+" --packing true --tf32 true \"$@\"\n")
	want := map[string]string{"--dataset": "",
		"--packing": "planc prices full sequences, which packing makes of short ones",
		"--tf32":    "matmuls of fp32 run in TF32, and a training in bf16 or fp16 has few",
		"$@":        "no arguments of the script are given: --define '@=...' gives them"}
	for _, k := range im.Keys {
		if note, ok := want[k.Name]; ok && k.Use == interop.NoEffect && k.Note == note {
			delete(want, k.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v\n%v", want, im.Keys)
	}
}
