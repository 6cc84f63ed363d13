package strict

import "strings"

// OtherKeys maps the names of settings in Megatron, DeepSpeed, torchrun, Hugging Face's Trainer, TorchTitan and nanoGPT
// to the paths of keys in a job. The names are in lower case with dashes.
var OtherKeys = map[string]string{
	"tensor-parallel": "plan.tp", "tensor-parallel-size": "plan.tp", "tensor-parallel-degree": "plan.tp",
	"tensor-model-parallel-size": "plan.tp", "tp-size": "plan.tp",
	"pipeline-parallel": "plan.pp", "pipeline-parallel-size": "plan.pp", "pipeline-parallel-degree": "plan.pp",
	"pipeline-model-parallel-size": "plan.pp", "pp-size": "plan.pp",
	"data-parallel": "plan.dp", "data-parallel-size": "plan.dp", "dp-size": "plan.dp",
	"context-parallel": "plan.cp", "context-parallel-size": "plan.cp", "context-parallel-degree": "plan.cp",
	"cp-size": "plan.cp",
	"cp-type": "plan.cp_kind", "cp-comm-type": "plan.cp_kind",
	"expert-parallel": "plan.ep", "expert-parallel-size": "plan.ep", "expert-model-parallel-size": "plan.ep",
	"ep-size":           "plan.ep",
	"sequence-parallel": "plan.sp", "zero-stage": "plan.zero", "zero-optimization.stage": "plan.zero",
	"micro-batch-size": "plan.micro_batch", "per-device-train-batch-size": "plan.micro_batch",
	"train-micro-batch-size-per-gpu": "plan.micro_batch",
	"gradient-accumulation-steps":    "plan.micro_batches",
	"batch-size":                     "train.global_batch", "train-batch-size": "train.global_batch",
	"global-batch-size": "train.global_batch",
	"seq-length":        "train.seq_len", "max-length": "train.seq_len", "max-seq-length": "train.seq_len",
	"block-size": "train.seq_len", "context-length": "train.seq_len",
	"learning-rate": "train.optimizer.lr", "max-steps": "train.steps", "train-iters": "train.steps",
	"num-train-epochs": "train.epochs",
	"bf16":             "train.precision", "fp16": "train.precision", "fp8": "train.precision",
	"mixed-precision": "train.precision", "dtype": "train.precision",
}

// otherKey returns the path of our key for another tool's key, which is looked up with its path and alone. It returns
// "" if OtherKeys lacks it, or if the document has no such key.
func (c *Context) otherKey(path string, f Field) string {
	names := []string{join(path, f.Key), f.Key}
	// another tool's block: try its first key
	if f.Value != nil && f.Value.Kind == Map && len(f.Value.Fields) > 0 {
		names = append(names, join(f.Key, f.Value.Fields[0].Key))
	}
	for _, name := range names {
		ours := OtherKeys[strings.ReplaceAll(strings.ToLower(name), "_", "-")]
		for _, place := range Places(c.all, ours[strings.LastIndexByte(ours, '.')+1:]) {
			if place == ours || strings.HasSuffix(ours, "."+place) {
				return ours
			}
		}
	}
	return ""
}
