package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// lossless are edits that keep every line of a file: a key that the plan no longer needs gets the tool's default.
var lossless = []struct {
	name, file, text string
	sets             []string
	to               func(*ir.Plan)
	edits            []string // old and new text, in turns
}{
	{"a comment of TrainingArguments", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
gradient_checkpointing: true  # saves memory
fsdp: true
`, nil, noRecompute, []string{"gradient_checkpointing: true", "gradient_checkpointing: false"}},
	{"a switch of fsdp_config that is off", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
gradient_checkpointing: true
fsdp: true
fsdp_config: {"activation_checkpointing": false, "reshard_after_forward": true}
`, nil, noRecompute, []string{"gradient_checkpointing: true", "gradient_checkpointing: false"}},
	{"fsdp_config without FSDP", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp: true  # for the large model
fsdp_config:
  reshard_after_forward: true
`, []string{"model=llama3.2-1b"}, unsharded, []string{"fsdp: true", "fsdp: false"}},
	{"offload that is none", "ds.json", `{
  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true},
  "zero_optimization": {
    "stage": 3,
    "offload_param": {"device": "none"},
    "offload_optimizer": {"device": "none", "pin_memory": true}
  }
}
`, nil, func(p *ir.Plan) { p.Zero = 2 }, []string{`"stage": 3`, `"stage": 2`}},
	{"offloaded parameters", "ds.json", `{
  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory": true}}
}
`, nil, func(p *ir.Plan) { p.Zero = 2 }, []string{`"stage": 3`, `"stage": 2`, `"cpu"`, `"none"`}},
	{"tensor parallelism of DeepSpeed", "ds.json", `{
  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 1},
  "tensor_parallel": {"autotp_size": 2}
}
`, nil, func(p *ir.Plan) { p.DP, p.TP, p.MicroBatches, p.ZeroGroup = 16, 1, 4, 16 },
		[]string{`"autotp_size": 2`, `"autotp_size": 0`, `steps": 8`, `steps": 4`}},
	{"DeepSpeed in TrainingArguments", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
gradient_checkpointing: true
deepspeed:
  train_micro_batch_size_per_gpu: auto
  gradient_accumulation_steps: auto
  bf16: {enabled: auto}
  zero_optimization: {stage: 3}
  tensor_parallel: {autotp_size: 2}
  activation_checkpointing:
    partition_activations: true  # over tp
`, nil, noRecompute, []string{"gradient_checkpointing: true", "gradient_checkpointing: false"}},
	{"degrees of Accelerate", "acc.yaml", `distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}
parallelism_config:
  parallelism_config_dp_replicate_size: 2  # nodes
  parallelism_config_dp_shard_size: 4
  parallelism_config_tp_size: 2
`, []string{"train.global_batch=128"}, func(p *ir.Plan) { p.ZeroGroup = 8 }, []string{
		"dp_replicate_size: 2", "dp_replicate_size: 1", "dp_shard_size: 4", "dp_shard_size: 8"}},
	{"degrees of Accelerate that become 1", "acc.yaml", `distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}
parallelism_config:
  parallelism_config_dp_shard_size: 8 # the rest
  # a node has NVLink
  parallelism_config_tp_size: 2 # tp
`, []string{"train.global_batch=128"}, func(p *ir.Plan) { p.DP, p.TP, p.ZeroGroup = 16, 1, 16 }, []string{
		"dp_shard_size: 8", "dp_shard_size: 16", "tp_size: 2", "tp_size: 1"}},
	{"degrees of TrainingArguments that become 1", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp: true
fsdp_config: {version: 2}
parallelism_config:  # of a node
  dp_shard_size: 8
  tp_size: 2  # NVLink
`, nil, func(p *ir.Plan) { p.DP, p.TP, p.ZeroGroup, p.MicroBatches = 16, 1, 16, 4 }, []string{
		"dp_shard_size: 8", "dp_shard_size: 16", "tp_size: 2", "tp_size: 1", "steps: 8", "steps: 4"}},
	{"degrees of TrainingArguments that become those of DDP", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp: true
parallelism_config:
  dp_shard_size: 8
  tp_size: 2  # NVLink
`, []string{"model=llama3.2-1b"}, func(p *ir.Plan) {
		p.DP, p.TP, p.Zero, p.ZeroGroup, p.MicroBatches = 16, 1, 0, 1, 4
	}, []string{"dp_shard_size: 8", "dp_shard_size: 1\n  dp_replicate_size: 16", "tp_size: 2", "tp_size: 1", "steps: 8",
		"steps: 4", "fsdp: true", "fsdp: false"}},
	{"the version of FSDP that parallelism_config needs", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp: full_shard auto_wrap
fsdp_config:
  fsdp_backward_prefetch: backward_pre
`, nil, func(p *ir.Plan) { p.DP, p.TP, p.SP, p.ZeroGroup, p.MicroBatches = 8, 2, false, 8, 16 }, []string{
		"backward_pre\n", "backward_pre\n  version: 2\nparallelism_config:\n  dp_shard_size: 8\n  tp_size: 2\n",
		"steps: 8", "steps: 16"}},
	{"a version of FSDP that had no effect", "hf.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
fsdp_config:
  fsdp_version: 1  # old
`, []string{"model=llama3.2-1b"}, func(p *ir.Plan) { p.Zero, p.ZeroGroup = 3, 16 }, []string{
		"fsdp_version: 1  # old\n", "fsdp_version: 2  # old\n  reshard_after_forward: true\nfsdp: true\n"}},
	{"FSDP that becomes DDP in Accelerate", "acc.yaml", `distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2  # of PyTorch 2.6
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
`, []string{"train.global_batch=128", "model=llama3.2-1b"}, unsharded, []string{": FSDP", ": MULTI_GPU"}},
	{"a pipeline of torchtitan", "job.toml", torchtitanConfig, []string{"train.global_batch=128"},
		func(p *ir.Plan) {
			noRecompute(p)
			p.DP, p.PP, p.VPP, p.Schedule, p.StageLayers = 16, 1, 1, "none", "32"
			p.MicroBatch, p.MicroBatches, p.Zero, p.ZeroGroup = 1, 8, 3, 16
		}, []string{"parallel_degree = 2", "parallel_degree = 1", "local_batch_size = 16", "local_batch_size = 1",
			`mode = "selective"`, `mode = "none"`}},
	{"a policy of Lightning", "lightning.yaml", lightningConfig, nil, noRecompute,
		[]string{"_policy: [my.Block]", "_policy: null"}},
	{"groups of Lightning", "lightning.yaml", lightningConfig, nil, func(p *ir.Plan) { p.ZeroGroup = 16 },
		[]string{"HYBRID_SHARD", "FULL_SHARD", "[4, 4]", "null"}},
	{"Megatron-Bridge without the key of context parallelism", "run_config.yaml", bridgeConfig,
		[]string{"cluster.nodes=4"}, func(p *ir.Plan) { p.DP, p.TP, p.MicroBatches, p.ZeroGroup = 8, 2, 16, 8 },
		[]string{"tensor_model_parallel_size: 4", "tensor_model_parallel_size: 2"}},
	{"context parallelism of Megatron-Bridge", "run_config.yaml",
		strings.Replace(bridgeConfig, "train:\n", "  context_parallel_size: 2\n  cp_comm_type: p2p  # ours\ntrain:\n",
			1),
		[]string{"cluster.nodes=4"}, func(p *ir.Plan) { p.DP, p.CP, p.CPKind, p.MicroBatches = 4, 1, "none", 32 },
		[]string{"context_parallel_size: 2", "context_parallel_size: 1", "cp_comm_type: p2p", "cp_comm_type: null"}},
}

// torchtitanConfig has a pipeline and recomputation, with comments.
const torchtitanConfig = `[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 16
global_batch_size = 128
seq_len = 4096
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"  # as in the paper
pipeline_parallel_microbatch_size = 1  # small
context_parallel_rotate_method = "alltoall"  # faster
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"  # of our own
`

// lightningConfig has groups of ranks that share state, and recomputation, with comments.
const lightningConfig = `trainer:
  num_nodes: 2
  devices: 8
  precision: bf16-mixed
  accumulate_grad_batches: 8
  strategy:
    class_path: lightning.pytorch.strategies.FSDPStrategy
    init_args:
      sharding_strategy: HYBRID_SHARD
      device_mesh: [4, 4]  # half a node
      activation_checkpointing_policy: [my.Block]  # all of them
data:
  init_args:
    batch_size: 1
`

func noRecompute(p *ir.Plan) {
	p.Recompute, p.RecomputeLayers, p.RecomputeEvery, p.RecomputeSplit = "none", 0, 0, false
}

func unsharded(p *ir.Plan) { p.Zero, p.ZeroGroup = 0, 1 }

// An edit keeps the lines that it does not need to delete, with their comments, and leaves no empty mapping.
func TestEditsKeepLines(t *testing.T) {
	for _, c := range lossless {
		sets := append([]string{"model=llama3-8b", "train.seq_len=4096", "cluster.nodes=2"}, c.sets...)
		if c.file == "run_config.yaml" {
			sets = c.sets
		}
		files := []interop.File{{Name: c.file, Data: []byte(c.text)}}
		s, q := questionOfFiles(t, files, noFiles, onH100(sets))
		from := decide(t, q)
		to := from
		c.to(&to)
		doc, note := s.edited(q, from, to)
		if note != "" {
			t.Errorf("%s: %v: %s", c.name, to, note)
			continue
		}
		want := strings.NewReplacer(c.edits...).Replace(c.text)
		if diff := cmp.Diff(want, string(doc.Bytes())); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
