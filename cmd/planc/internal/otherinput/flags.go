package otherinput

import (
	"slices"
	"strings"
)

// otherFlags maps flags of Megatron, DeepSpeed, torchrun, Hugging Face's Trainer and nanoGPT, without dashes, to what
// to type instead.
var otherFlags = map[string]string{
	"gpus":          "--cluster 8xh100, which names the GPUs and how many there are",
	"num-gpus":      "--cluster 8xh100, which names the GPUs and how many there are",
	"ngpus":         "--cluster 8xh100, which names the GPUs and how many there are",
	"gpus-per-node": "--devices N", "nproc-per-node": "--devices N", "num-nodes": "--nodes N", "nnodes": "--nodes N",
	"batch-size": "--global-batch N, the sequences per optimizer step", "train-batch-size": "--global-batch N",
	"global-batch-size": "--global-batch N",
	"micro-batch-size":  "--set plan.micro_batch=N", "per-device-train-batch-size": "--set plan.micro_batch=N",
	"gradient-accumulation-steps": "--set plan.micro_batches=N",
	"seq-length":                  "--seq-len N", "max-length": "--seq-len N", "max-seq-length": "--seq-len N",
	"block-size": "--seq-len N", "context-length": "--seq-len N",
	"tp": "--set plan.tp=N", "tensor-parallel-size": "--set plan.tp=N", "tensor-model-parallel-size": "--set plan.tp=N",
	"pp": "--set plan.pp=N", "pipeline-parallel-size": "--set plan.pp=N",
	"pipeline-model-parallel-size": "--set plan.pp=N",
	"dp":                           "--set plan.dp=N", "data-parallel-size": "--set plan.dp=N", "cp": "--set plan.cp=N",
	"context-parallel-size": "--set plan.cp=N",
	"ep":                    "--set plan.ep=N", "expert-model-parallel-size": "--set plan.ep=N",
	"zero":              "--set plan.zero=N",
	"zero-stage":        "--set plan.zero=N",
	"sequence-parallel": "--set plan.sp=true", "use-distributed-optimizer": "--set plan.zero=1",
	"lr": "--set train.optimizer.lr=R", "learning-rate": "--set train.optimizer.lr=R", "steps": "--set train.steps=N",
	"max-steps":   "--set train.steps=N",
	"train-iters": "--set train.steps=N", "epochs": "--set train.epochs=N", "num-train-epochs": "--set train.epochs=N",
	"dtype": "--precision bf16", "bf16": "--precision bf16", "fp16": "--precision fp16", "fp8": "--precision fp8",
	"mixed-precision": "--precision bf16",
	"model-name":      "--model NAME", "model-name-or-path": "--model NAME",
	"gpu": "--cluster 8xh100, which names the GPUs and how many there are", "hardware": "--cluster NAME",
}

// sharedBinaryFlags lists the otherFlags that a training binary has too. For them, planc run recommends to put them
// after --.
var sharedBinaryFlags = []string{"steps", "nnodes", "nproc-per-node"}

// Flag returns what to type instead of another tool's flag, which may be written with underscores; "" if the flag
// is unknown. number is the value of the flag if it is a whole number; "" otherwise.
func Flag(command, name, number string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if command == "run" && slices.Contains(sharedBinaryFlags, name) {
		return ""
	}
	if hint := otherFlags[name]; number == "" || !strings.HasPrefix(hint, "--cluster 8xh100") {
		return hint
	}
	return strings.Replace(otherFlags[name], "8xh100", number+"xh100", 1)
}
