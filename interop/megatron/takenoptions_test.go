package megatron

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// takenScripts are scripts to which each option is added that the table calls taken.
var takenScripts = []string{
	small,
	small + "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --context-parallel-size 2 " +
		"--recompute-granularity full --recompute-method block --recompute-num-layers 1 --use-distributed-optimizer ",
	small + "--lr 1e-3 --train-iters 1000 ",
	small + "--lr 1e-3 --train-samples 64000 --lr-decay-style WSD --lr-wsd-decay-samples 640 ",
	small + "--lr 1e-3 --train-iters 1000 --optimizer sgd ",
	small + "--use-precision-aware-optimizer --use-distributed-optimizer ",
	small + "--use-megatron-fsdp --use-distributed-optimizer --ckpt-format fsdp_dtensor ",
	small + "--use-torch-fsdp2 --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights ",
	small + "--recompute-granularity selective ",
	small + "--swiglu --position-embedding-type rope --normalization RMSNorm --disable-bias-linear " +
		"--group-query-attention --use-rope-scaling ",
	mixtral,
	small + "--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear --num-experts 8 " +
		"--untie-embeddings-and-output-weights --multi-latent-attention --moe-shared-expert-intermediate-size 512 " +
		"--moe-ffn-hidden-size 512 --q-lora-rank 512 --kv-lora-rank 256 --qk-head-dim 64 --qk-pos-emb-head-dim 32 " +
		"--v-head-dim 64 --moe-router-topk 2 --moe-router-score-function sigmoid ",
}

// takenTogether are options that say something only with another option.
var takenTogether = map[string]string{
	"--moe-shared-expert-gate":        "the family with shared experts has a gate",
	"--moe-router-enable-expert-bias": "the family with MLA and sigmoid has a bias",
	"--encoder-num-layers":            "another name of --num-layers",
	"--encoder-seq-length":            "another name of --seq-length",
	"--use-precision-aware-optimizer": "--main-grads-dtype and others say the types",
}

// takenValues are values that are tried for options, in addition to numbers and the option's choices.
var takenValues = map[string][]string{
	"pipeline_model_parallel_layout": {"Et*4|t*4L"}, "recompute_modules": {"core_attn mlp"},
}

// jobOf returns the fields of an import, and the note of an option.
func jobOf(im *interop.Import, name string) (job, note string) {
	for _, f := range im.Fields {
		job += f.Path + "=" + f.Value + "\n"
	}
	for _, k := range im.Keys {
		if k.Name == name {
			note = k.Note
		}
	}
	return job, strings.TrimPrefix(note, "has no effect with the other options")
}

// hasEffect reports whether an option with some value changes the job of one of the scripts, has a note, or is refused
// with another one.
func hasEffect(t *testing.T, o *Option) bool {
	values := slices.Concat(takenValues[o.Dest], o.Choices, []string{"2", "4", "1", "8", "3", "0.5", "1e-4"})
	if o.isFlag() {
		values = []string{""}
	}
	for _, text := range takenScripts {
		base, _ := jobOf(importText(t, text, interop.Options{}), o.Name)
		for _, value := range values {
			script := text + " " + o.Name + " " + value
			im, err := Import([]interop.File{{Name: "run.sh", Data: []byte(script)}}, interop.Options{})
			if err != nil {
				if !strings.Contains(err.Error(), "the value must be") {
					return true
				}
				continue
			}
			if job, note := jobOf(im, o.Name); job != base || note != "" {
				return true
			}
		}
	}
	return false
}

// Each option that the table calls taken changes the job, or has a note.
func TestTakenOptionsHaveAnEffect(t *testing.T) {
	for _, o := range options().all {
		if o.use == "taken" && takenTogether[o.Name] == "" && !hasEffect(t, o) {
			t.Errorf("%s changes nothing in the job, and has no note", o.Name)
		}
	}
}
