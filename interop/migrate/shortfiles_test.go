package migrate

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
)

// dsConfig leaves the precision to Accelerate or to the script.
const dsConfig = `{
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 8,
  "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 3, "overlap_comm": true}
}
`

// accelerateOfDS is a configuration that names a ds_config.json.
const accelerateOfDS = `distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: ds.json
  zero3_init_flag: true
num_machines: 2
num_processes: 16
`

// shortFile are files that leave much to the defaults of their trainers, such as the global batch.
type shortFile struct {
	name, format string
	files        []interop.File
	sets         []string
	code         []string // keys of the plan that the training code or the command line says
}

var shortFiles = []shortFile{
	{"torchtitan with tp alone", "torchtitan", titanOf("data_parallel_shard_degree = 1\ntensor_parallel_degree = 8"),
		[]string{"cluster.nodes=1"}, nil},
	{"torchtitan with pp alone", "torchtitan", titanOf("data_parallel_shard_degree = 1\npipeline_parallel_degree = 8"),
		[]string{"cluster.nodes=1"}, nil},
	{"torchtitan with DDP", "torchtitan", titanOf("data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8"),
		[]string{"cluster.nodes=1"}, nil},
	{"torchtitan without a global batch", "torchtitan", []interop.File{{Name: "tt.toml", Data: []byte(`[model]
name = "llama3"
flavor = "8B"

[training]
local_batch_size = 32
seq_len = 8192

[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 4

[activation_checkpoint]
mode = "full"
`)}}, []string{"cluster.nodes=2"}, nil},
	{"Megatron-LM without a global batch", "megatron", []interop.File{{Name: "run.sh", Data: []byte(
		`torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
  --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu --group-query-attention --num-query-groups 8 \
  --vocab-size 128256 --max-position-embeddings 8192 --seq-length 4096 --micro-batch-size 32 --bf16 \
  --untie-embeddings-and-output-weights --tensor-model-parallel-size 8 --use-distributed-optimizer \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
`)}}, nil, nil},
	{"Megatron-LM with one replica", "megatron", []interop.File{{Name: "run.sh", Data: []byte(oneReplica +
		" --use-distributed-optimizer\n")}}, nil, nil},
	{"Megatron-LM with one replica in groups", "megatron", []interop.File{{Name: "run.sh", Data: []byte(oneReplica +
		" --use-distributed-optimizer --num-distributed-optimizer-instances 2\n")}}, nil, nil},
	{"Megatron-FSDP with one replica", "megatron", []interop.File{{Name: "run.sh", Data: []byte(oneReplica +
		" --use-distributed-optimizer --use-megatron-fsdp --ckpt-format fsdp_dtensor\\\n" +
		"  --data-parallel-sharding-strategy optim_grads_params\n")}}, nil, nil},
	{"Megatron-LM with layers of virtual stages in a branch", "megatron", []interop.File{{Name: "run.sh", Data: []byte(
		chunkedScript)}}, nil, nil},
	{"DeepSpeed", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		strings.Replace(dsConfig, `{"enabled": "auto"}`, `{"enabled": true}`, 1))}},
		[]string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed without accumulation steps", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3}}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed with stages", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 1}, "pipeline": {"stages": 2}}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed with stages that the code says", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_batch_size": 64, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 1}, "pipeline": {"stages": "auto"}}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, []string{"pp"}},
	{"TrainingArguments that ignore a pipeline", "hf", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 1}, "pipeline": {"partition": "best"}}
`)}, {Name: "args.json", Data: []byte(`{"output_dir": "out", "per_device_train_batch_size": 2, "bf16": true}`)}},
		[]string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed that recomputes", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}, "gradient_accumulation_steps": 2,
  "activation_checkpointing": {"partition_activations": true}, "zero_optimization": {"stage": 3}}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed that recomputes a small model", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "gradient_accumulation_steps": 4,
  "activation_checkpointing": {"partition_activations": true}, "zero_optimization": {"stage": 2},
  "tensor_parallel": {"autotp_size": 2}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=1"}, nil},
	{"Accelerate with a ds_config.json", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(accelerateOfDS)},
		{Name: "ds.json", Data: []byte(dsConfig)}}, []string{"model=llama3-8b", "train.seq_len=4096"}, nil},
	{"a ds_config.json before Accelerate", "accelerate", []interop.File{{Name: "ds.json", Data: []byte(dsConfig)},
		{Name: "acc.yaml", Data: []byte(accelerateOfDS)}}, []string{"model=llama3-8b", "train.seq_len=4096"}, nil},
	{"TrainingArguments with FSDP", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 4
gradient_accumulation_steps: 2
gradient_checkpointing: true
bf16: true
fsdp: full_shard
output_dir: out
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"TrainingArguments with FSDP 1", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 1
gradient_accumulation_steps: 4
gradient_checkpointing: true
bf16: true
fsdp: hybrid_shard auto_wrap
fsdp_config:
  version: 1
  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"TrainingArguments with FSDP 1 that does not shard", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 4
gradient_accumulation_steps: 4
bf16: true
fsdp: no_shard auto_wrap
fsdp_config: {version: 1}
`)}}, ofQwen[:3], []string{"sp"}},
	{"Accelerate with FSDP 1 that does not shard", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: FSDP
mixed_precision: bf16
num_processes: 8
fsdp_config: {fsdp_sharding_strategy: NO_SHARD, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}
`)}}, append(slices.Clone(ofQwen), "plan.micro_batch=16"), []string{"sp", "micro_batch", "micro_batches"}},
	{"TrainingArguments with words of FSDP", "hf", []interop.File{{Name: "hf.json", Data: []byte(
		`{"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8, "bf16": true,
  "fsdp": ["full_shard", "auto_wrap"]}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"TrainingArguments with FSDP 1 by its key", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp: true
fsdp_config: {fsdp_version: 1, fsdp_reshard_after_forward: full_shard}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096"}, nil},
	{"TrainingArguments with context parallelism", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 1
gradient_accumulation_steps: 2
bf16: true
fsdp: true
fsdp_config:
  activation_checkpointing: true
parallelism_config:
  dp_shard_size: 2
  cp_size: 8
`)}}, []string{"model=llama3-8b", "train.seq_len=131072", "cluster.nodes=2"}, nil},
	{"TrainingArguments with a mapping of DeepSpeed", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 1
gradient_accumulation_steps: 8
gradient_checkpointing: true
bf16: true
deepspeed:
  train_micro_batch_size_per_gpu: auto
  gradient_accumulation_steps: auto
  bf16: {enabled: auto}
  zero_optimization: {stage: 3}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"a ds_config.json that TrainingArguments fill", "hf", []interop.File{
		{Name: "ds.json", Data: []byte(dsConfig)}, {Name: "args.json", Data: []byte(
			`{"output_dir": "out", "per_device_train_batch_size": 2, "gradient_accumulation_steps": 8, "bf16": true}`)}},
		[]string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"Accelerate with FSDP", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_activation_checkpointing: true
`)}}, []string{"model=llama3-8b", "train.seq_len=32768", "train.global_batch=32"}, nil},
	{"Accelerate with FSDP 1", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(fsdp1)}},
		[]string{"model=llama3-8b", "train.seq_len=4096", "train.global_batch=64"}, nil},
	{"Accelerate with FSDP 1 on a node", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: FSDP
mixed_precision: bf16
num_processes: 8
fsdp_config: {sharding_strategy: 1, activation_checkpointing: true}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096", "train.global_batch=64"}, nil},
	{"Accelerate with DDP", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: MULTI_GPU
mixed_precision: bf16
num_machines: 2
num_processes: 16
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "train.global_batch=64"}, nil},
	{"Accelerate with FSDP of a small model", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config: {fsdp_version: 2, fsdp_activation_checkpointing: true}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "train.global_batch=64"}, nil},
	{"TrainingArguments with DDP", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 1
gradient_accumulation_steps: 4
bf16: true
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"TrainingArguments with FSDP of a small model", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 1
gradient_accumulation_steps: 4
fp16: true
fsdp: true
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed with stage 0", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		strings.Replace(strings.Replace(dsConfig, `{"enabled": "auto"}`, `{"enabled": true}`, 1), ": 3", ": 0", 1))}},
		[]string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed with fp32 sums of fp16", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true}, "gradient_accumulation_steps": 2,
  "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 2}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=2"}, nil},
	{"DeepSpeed with state in bf16", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=1"}, nil},
	{"DeepSpeed with a master copy in bf16", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2},
  "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=1"}, nil},
	{"DeepSpeed on one device", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "gradient_accumulation_steps": 8,
  "zero_optimization": {"stage": 2}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=2048", "cluster.devices=1", "cluster.nodes=1"}, nil},
	{"DeepSpeed with one replica", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "gradient_accumulation_steps": 16,
  "zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 8}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096", "cluster.nodes=1"}, nil},
	{"Accelerate with FSDP on one device", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: FSDP
mixed_precision: bf16
num_processes: 1
fsdp_config: {fsdp_version: 2, fsdp_activation_checkpointing: true}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=2048", "train.global_batch=8"}, nil},
	{"Accelerate with Megatron-LM and one replica", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: MEGATRON_LM
mixed_precision: bf16
num_processes: 8
megatron_lm_config: {megatron_lm_tp_degree: 8, megatron_lm_use_distributed_optimizer: true}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=2048", "train.global_batch=8"}, nil},
	{"Accelerate with Megatron-LM and two replicas", "accelerate", []interop.File{{Name: "acc.yaml", Data: []byte(
		`distributed_type: MEGATRON_LM
mixed_precision: bf16
num_processes: 8
megatron_lm_config: {megatron_lm_tp_degree: 4, megatron_lm_use_distributed_optimizer: true}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=2048", "train.global_batch=8"}, nil},
	{"Accelerate with uniform recomputation of Megatron-LM", "accelerate", []interop.File{{Name: "acc.yaml",
		Data: []byte(`distributed_type: MEGATRON_LM
mixed_precision: bf16
num_processes: 8
megatron_lm_config:
  megatron_lm_tp_degree: 2
  megatron_lm_pp_degree: 2
  megatron_lm_num_micro_batches: 8
  megatron_lm_use_distributed_optimizer: true
  megatron_lm_recompute_granularity: full
  megatron_lm_recompute_method: uniform
  megatron_lm_recompute_num_layers: 1
`)}}, []string{"model=llama3.2-1b", "train.seq_len=8192", "train.global_batch=64"}, nil},
	{"Accelerate with recomputed blocks of Megatron-LM", "accelerate", []interop.File{{Name: "acc.yaml",
		Data: []byte(`distributed_type: MEGATRON_LM
mixed_precision: bf16
num_processes: 8
megatron_lm_config:
  megatron_lm_tp_degree: 2
  megatron_lm_pp_degree: 2
  megatron_lm_num_micro_batches: 8
  megatron_lm_recompute_granularity: full
  megatron_lm_recompute_method: block
  megatron_lm_recompute_num_layers: 8
`)}}, []string{"model=llama3.2-1b", "train.seq_len=8192", "train.global_batch=64"}, nil},
	{"TrainingArguments with FSDP on one device", "hf", []interop.File{{Name: "hf.yaml", Data: []byte(
		`per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp: true
fsdp_config: {activation_checkpointing: true}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=2048", "cluster.devices=1", "cluster.nodes=1"}, nil},
	{"Lightning with FSDP", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(lightningFSDP)}},
		[]string{"model=llama3-8b", "train.seq_len=8192"}, []string{"sp"}},
	{"Lightning with FSDP by name", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(
		`trainer: {devices: 8, num_nodes: 2, precision: bf16-mixed, strategy: fsdp, accumulate_grad_batches: 4}
data: {init_args: {batch_size: 2}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096"}, []string{"sp"}},
	{"Lightning with subcommands", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(`validate:
  trainer: {devices: 1}
fit:
  trainer: {devices: 8, num_nodes: 2, precision: bf16-mixed, strategy: fsdp, accumulate_grad_batches: 4}
  data: {init_args: {batch_size: 2}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096"}, []string{"sp"}},
	{"Lightning with a fixed data module", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(`trainer:
  devices: 8
  strategy: deepspeed_stage_3
  precision: bf16-mixed
  accumulate_grad_batches: 2
data:
  batch_size: 4
`)}}, []string{"model=llama3-8b", "train.seq_len=4096"}, []string{"sp"}},
	{"Lightning with DDP", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(`trainer:
  devices: auto
  strategy: ddp
  precision: 16
data:
  class_path: a.B
  init_args: {batch_size: 1}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096"}, []string{"sp"}},
	{"Lightning with a class of DDP", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(`trainer:
  devices: 8
  num_nodes: 2
  strategy: {class_path: DDPStrategy, init_args: {find_unused_parameters: true}}
  precision: bf16-mixed
data: {init_args: {batch_size: 1}}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096"}, []string{"sp"}},
	{"Lightning with DeepSpeed", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(
		`trainer: {devices: 8, num_nodes: 2, precision: bf16-mixed, strategy: deepspeed_stage_3}
data: {init_args: {batch_size: 2}}
`)}}, []string{"model=llama3.2-1b", "train.seq_len=4096"}, []string{"sp"}},
	{"Lightning with tensor parallelism", "lightning", []interop.File{{Name: "cli.yaml", Data: []byte(
		`trainer:
  devices: 8
  num_nodes: 2
  precision: bf16-mixed
  accumulate_grad_batches: 2
  strategy:
    class_path: ModelParallelStrategy
    init_args: {tensor_parallel_size: 8, data_parallel_size: 2}
data: {init_args: {batch_size: 2}}
`)}}, []string{"model=llama3-8b", "train.seq_len=4096"}, []string{"sp"}},
	{"Accelerate with stage 0 of DeepSpeed", "accelerate", accelerateOfStage("0"), ofQwen, []string{"sp"}},
	{"Accelerate with stage 1 of DeepSpeed", "accelerate", accelerateOfStage("1"), ofQwen, []string{"sp"}},
	{"DeepSpeed with stage 1", "deepspeed", []interop.File{{Name: "ds.json", Data: []byte(
		`{"train_batch_size": 128, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 1}}
`)}}, ofQwen, []string{"sp"}},
	{"Megatron-Bridge", "bridge", []interop.File{{Name: "run_config.yaml", Data: []byte(bridgeConfig)}},
		[]string{"cluster.nodes=4"}, nil},
	{"Megatron-Bridge with one replica", "bridge", []interop.File{{Name: "one.yaml", Data: []byte(bridgeConfig)}},
		[]string{"cluster.nodes=1"}, nil},
	{"ms-swift", "swift", []interop.File{{Name: "run.sh", Data: []byte(
		`NPROC_PER_NODE=8 NNODES=2 megatron sft --load_from_cache_file true --dataset x --bf16 true \
  --tensor_model_parallel_size 4 --sequence_parallel true --micro_batch_size 1 --global_batch_size 64 \
  --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 --max_length 8192
`)}}, []string{"model=llama3-8b"}, nil},
}

// ofQwen is a job for files that say neither the model nor the devices.
var ofQwen = []string{"model=qwen2.5-1.5b", "train.seq_len=4096", "cluster.nodes=1", "train.global_batch=128"}

// accelerateOfStage returns a configuration of DeepSpeed with a stage of ZeRO.
func accelerateOfStage(stage string) []interop.File {
	return []interop.File{{Name: "accelerate.yaml", Data: []byte(`distributed_type: DEEPSPEED
mixed_precision: bf16
num_processes: 8
deepspeed_config:
  zero_stage: ` + stage + `
  gradient_accumulation_steps: 16
`)}}
}

// titanOf returns a TOML of torchtitan with the given lines of its section parallelism.
func titanOf(parallelism string) []interop.File {
	return []interop.File{{Name: "tt.toml", Data: []byte(`[model]
name = "llama3"
flavor = "8B"

[training]
local_batch_size = 2
global_batch_size = 64
seq_len = 4096

[parallelism]
` + parallelism + "\n")}}
}

// fileNamed returns one of shortFiles.
func fileNamed(name string) *shortFile {
	return &shortFiles[slices.IndexFunc(shortFiles, func(f shortFile) bool { return f.name == name })]
}

// oneReplica is a script whose ranks hold one replica: options of ZeRO have no effect.
const oneReplica = `torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --bf16 \
  --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu --group-query-attention --num-query-groups 8 \
  --vocab-size 128256 --max-position-embeddings 8192 --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 \
  --untie-embeddings-and-output-weights --tensor-model-parallel-size 8 \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1`

const lightningFSDP = `trainer:
  devices: 8
  num_nodes: 2
  precision: bf16-mixed
  accumulate_grad_batches: 4
  strategy:
    class_path: lightning.pytorch.strategies.FSDPStrategy
    init_args:
      sharding_strategy: FULL_SHARD
      activation_checkpointing_policy: [my.Block]
data:
  class_path: my.Data
  init_args:
    batch_size: 1
`

// fsdp1 is a configuration of Accelerate without fsdp_version.
const fsdp1 = `distributed_type: FSDP
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_sharding_strategy: HYBRID_SHARD
  fsdp_use_orig_params: true
mixed_precision: bf16
num_machines: 2
num_processes: 16
`

const bridgeConfig = `model:
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 14336
  num_attention_heads: 32
  num_query_groups: 8
  vocab_size: 128256
  seq_length: 8192
  gated_linear_unit: true
  normalization: RMSNorm
  share_embeddings_and_output_weights: false
  add_bias_linear: false
  bf16: true
  tensor_model_parallel_size: 4
  sequence_parallel: true
  pipeline_model_parallel_size: 2
  recompute_granularity: full
  recompute_method: uniform
  recompute_num_layers: 1
train:
  micro_batch_size: 1
  global_batch_size: 128
ddp:
  use_distributed_optimizer: true
`

const chunkedScript = `PP=4
if [ $PP -gt 1 ]; then
  CHUNKS="--num-layers-per-virtual-pipeline-stage 4"
fi
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --bf16 \
  --num-attention-heads 32 --ffn-hidden-size 14336 --swiglu --group-query-attention --num-query-groups 8 \
  --vocab-size 128256 --max-position-embeddings 8192 --seq-length 8192 --micro-batch-size 1 --global-batch-size 64 \
  --untie-embeddings-and-output-weights --use-distributed-optimizer --tensor-model-parallel-size 2 \
  --pipeline-model-parallel-size $PP $CHUNKS
`
