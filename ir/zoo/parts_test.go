package zoo

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// marks are what only some models have, as their graphs' texts show it.
var marks = map[string]string{
	"{offset=2}":                          "opt-125m opt-350m",
	"param project_out":                   "opt-350m",
	"alibi":                               "bloom-560m",
	"turn=16":                             "pythia-160m",
	"ln2 = layer_norm x,":                 "pythia-160m",
	"ln1 = layer_norm h,":                 "opt-350m bert-base-uncased",
	"ln = layer_norm e,":                  "bloom-560m",
	"ln = layer_norm y,":                  "bert-base-uncased",
	"window=4096":                         "mistral-7b gemma-2-2b",
	"layers=1l1f causal":                  "gemma-2-2b",
	"softcap=50":                          "gemma-2-2b",
	"softcap logits {softcap=30}":         "gemma-2-2b",
	"window=512 layers=5l1f causal":       "gemma-3-1b",
	"theta=10000 layers=5l1f local=10000": "gemma-3-1b",
	"scale e {scale=48}":                  "gemma-2-2b",
	"unit}":                               "gemma-2-2b gemma-3-1b",
	"ln2_post = rms_norm":                 "gemma-2-2b gemma-3-1b",
	"attn.k_norm = rms_norm k,":           "qwen3-0.6b gemma-3-1b qwen3-30b-a3b",
	"param attn.q_bias": "gpt2 opt-125m opt-350m bloom-560m pythia-160m bert-base-uncased " +
		"vit-base-patch16-224 qwen2.5-0.5b qwen1.5-moe-a2.7b",
	"param attn.o_bias": "gpt2 opt-125m opt-350m bloom-560m pythia-160m bert-base-uncased " +
		"vit-base-patch16-224",
	"param moe.router":                   "mixtral-8x7b qwen1.5-moe-a2.7b qwen3-30b-a3b deepseek-v2-lite deepseek-v3",
	"gate=softmax share":                 "mixtral-8x7b qwen3-30b-a3b",
	"gate=sigmoid groups=8 best=4 share": "deepseek-v3",
	"param moe.bias ":                    "deepseek-v3",
	"param attn.q_down ":                 "deepseek-v3",
	"segment dense x":                    "deepseek-v2-lite deepseek-v3",
	"{dim=head_dim theta=10000 turn=64 adjacent offset=128}": "deepseek-v2-lite deepseek-v3",
	"param mlp.shared_gate":                                  "qwen1.5-moe-a2.7b",
	"param wtt":                                              "bert-base-uncased",
	"param transform ":                                       "bert-base-uncased",
	"param lm_head_bias":                                     "bert-base-uncased vit-base-patch16-224",
	"input pixels : f32[batch=2,seq=16,patch=768]":           "vit-base-patch16-224",
	"kinds = iota {most=1}":                                  "vit-base-patch16-224",
	"param wct : f32[kind=2,hidden=768] init=normal(0.02) first=1\n": "vit-base-patch16-224",
}

func TestMarks(t *testing.T) {
	for mark, models := range marks {
		for _, p := range published {
			text := Build(p.name, p.config, Options{SeqLen: 16, Batch: 2, Elem: ir.F32}).String()
			want := strings.Contains(" "+models+" ", " "+p.name+" ")
			if got := strings.Contains(text, mark); got != want {
				t.Errorf("%s has %q: %v, want %v", p.name, mark, got, want)
			}
		}
	}
}

// Who predicts what comes next does not see it; who does not, sees all.
func TestCausal(t *testing.T) {
	for _, p := range published {
		text := Build(p.name, p.config, Options{SeqLen: 16, Batch: 2, Elem: ir.F32}).String()
		if got := strings.Contains(text, "causal"); got != Decodes(p.config.Family) {
			t.Errorf("%s is causal: %v", p.name, got)
		}
	}
}
