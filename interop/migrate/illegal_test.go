package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
)

// illegalScript is a script of Megatron-LM on two nodes, to which degrees are added.
const illegalScript = `torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
  --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu --group-query-attention --num-query-groups 8 \
  --vocab-size 128256 --max-position-embeddings 8192 --seq-length 4096 --bf16 --use-distributed-optimizer \
  --untie-embeddings-and-output-weights --micro-batch-size 1 --global-batch-size 64 --recompute-granularity full \
  --recompute-method uniform --recompute-num-layers 1 `

// illegalFiles are files whose plan breaks a rule.
var illegalFiles = []shortFile{
	{"a dense script with tensor parallelism of experts", "megatron", []interop.File{{Name: "run.sh", Data: []byte(
		"TP=16\n" + strings.NewReplacer("hidden-size 4096", "hidden-size 3072", "heads 32", "heads 24").Replace(
			illegalScript) + "\\\n  --tensor-model-parallel-size $TP --expert-tensor-parallel-size $TP\n")}}, nil, nil},
	{"a script with experts", "megatron", []interop.File{{Name: "run.sh", Data: []byte(
		"TP=16\n" + illegalScript + "\\\n  --tensor-model-parallel-size $TP --expert-tensor-parallel-size $TP " +
			"\\\n  --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 2048\n")}}, nil, nil},
	{"a script with virtual stages by their layers", "megatron", []interop.File{{Name: "run.sh", Data: []byte(
		illegalScript + "\\\n  --tensor-model-parallel-size 16 --num-layers-per-virtual-pipeline-stage 8 " +
			"--pipeline-model-parallel-size 1\n")}}, nil, nil},
	{"torchtitan", "torchtitan", titanOf("data_parallel_shard_degree = 2\ntensor_parallel_degree = 16"),
		[]string{"cluster.nodes=4"}, nil},
	{"DeepSpeed", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "gradient_accumulation_steps": 4,
  "zero_optimization": {"stage": 2}, "tensor_parallel": {"autotp_size": 16}}
`)}}, []string{"model=qwen2.5-7b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"Accelerate", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(`distributed_type: FSDP
mixed_precision: bf16
num_machines: 4
num_processes: 32
fsdp_config: {fsdp_version: 2}
parallelism_config:
  parallelism_config_dp_shard_size: 2  # the rest
  parallelism_config_tp_size: 16
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "train.global_batch=64"}, nil},
	{"TrainingArguments", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(`per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp: true
parallelism_config:
  dp_shard_size: 2  # the rest
  tp_size: 16
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=4"}, nil},
}

// A file whose plan is illegal, changed to any of its edits or to the best plan, says exactly that plan. The files on
// four nodes take seconds each, and are only part of the long run.
func TestEditsOfIllegalFilesSayTheirPlans(t *testing.T) {
	long := isLong(t)
	for _, one := range illegalFiles {
		if four := []string{"torchtitan", "Accelerate", "TrainingArguments"}; !long && slices.Contains(four, one.name) {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			r := reportOfShort(t, &one)
			if r.Format != one.format || r.Verdict != planner.CheckIllegal || r.Best == nil {
				t.Fatalf("format %s, %s: %s", r.Format, r.Verdict, r.Message)
			}
			edited, note := editedFiles(r, one.files, r.Best.Plan.Plan)
			if note != "" {
				t.Fatalf("%v: %s", r.Best.Plan.Plan, note)
			}
			sayPlan(t, r, &one, edited, r.Best.Plan.Plan, &r.Best.Predict)
			count := 0
			for i, e := range r.Edits {
				diff, note, _ := r.EditDiff(i)
				if diff == "" || !e.Fits {
					t.Logf("%s: %s", e.Message, note)
					continue
				}
				count++
				edited, _ := editedFiles(r, one.files, e.Plan.Plan)
				sayPlan(t, r, &one, edited, e.Plan.Plan, &e.Predict)
			}
			if count == 0 {
				t.Error("no edit")
			}
		})
	}
}
