package bridge

import "strings"

// rename is a setting of Megatron-LM whose name in Megatron-Bridge differs.
type rename struct {
	dest, path string
	inverse    bool // true there means false here
}

// renames are those of Megatron-Bridge 0.6.2.
var renames = []rename{
	{"num_virtual_stages_per_pipeline_rank", "model.virtual_pipeline_model_parallel_size", false},
	{"decoder_first_pipeline_num_layers", "model.num_layers_in_first_pipeline_stage", false},
	{"decoder_last_pipeline_num_layers", "model.num_layers_in_last_pipeline_stage", false},
	{"num_experts", "model.num_moe_experts", false},
	{"untie_embeddings_and_output_weights", "model.share_embeddings_and_output_weights", true},
	{"swiglu", "model.gated_linear_unit", false},
	{"pad_vocab_size", "model.should_pad_vocab", false},
	{"grad_reduce_in_bf16", "ddp.grad_reduce_in_fp32", true},
	{"qk_head_dim", "model.qk_head_dim", false},
	{"use_rope_scaling", "model.rope_scaling", false},
	{"optimizer", "optimizer.optimizer", false},
	{"seed", "rng.seed", false},
}

// groups are the mappings of a file in which Megatron-LM's settings keep their names, in the order in which they are
// searched.
var groups = []string{"model", "train", "ddp", "optimizer", "scheduler", "dist", "rng", "validation", "checkpoint",
	"dataset", "logger", "tokenizer"}

// pathOf returns where a file has a setting; "" if Megatron-Bridge has no such key.
func pathOf(dest string) string {
	for _, r := range renames {
		if r.dest == dest {
			return r.path
		}
	}
	for _, group := range groups {
		path := group + "." + dest
		if _, ok := Keys.Find(path); ok {
			return path
		}
	}
	return ""
}

// spell names a setting in messages.
func spell(dest string) string {
	if path := pathOf(dest); path != "" {
		return path
	}
	return dest
}

// destOf returns the setting that a key says, and whether its value is inverted. It is the key's own name, unless
// another group has the setting.
func destOf(path string) (dest string, inverse bool) {
	for _, r := range renames {
		if r.path == path {
			return r.dest, r.inverse
		}
	}
	dest = path[strings.LastIndexByte(path, '.')+1:]
	if pathOf(dest) != path {
		return "", false
	}
	return dest, false
}
