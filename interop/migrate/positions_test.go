package migrate

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// samples is a file of each format that is read, by the format's name.
var samples = map[string]interop.File{
	"megatron": {Name: "run.sh", Data: []byte(`export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \
  --num-layers 32 \
  --hidden-size 4096 \
  --num-attention-heads 32 \
  --seq-length 4096 --max-position-embeddings 4096 \
  --vocab-size 32000 \
  --tensor-model-parallel-size 2 \
  --pipeline-model-parallel-size 2 \
  --context-parallel-size 2 \
  --sequence-parallel \
  --micro-batch-size 1 \
  --global-batch-size 64 \
  --bf16 --use-distributed-optimizer \
  --recompute-granularity full --recompute-method block --recompute-num-layers 4
`)},
	"swift": {Name: "run.sh", Data: []byte(swiftScript)},
	"deepspeed": {Name: "ds.json", Data: []byte(`{
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 2, "reduce_bucket_size": 500000000, "overlap_comm": true},
  "tensor_parallel": {"autotp_size": 1},
  "bf16": {"enabled": true},
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}}
}
`)},
	"accelerate": {Name: "accelerate.yaml", Data: []byte(`distributed_type: FSDP
num_machines: 1
num_processes: 8
mixed_precision: bf16
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
  fsdp_activation_checkpointing: true
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 2
  parallelism_config_tp_size: 2
`)},
	"hf": {Name: "args.yaml", Data: []byte(`output_dir: out
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
gradient_checkpointing: true
fsdp: full_shard
fsdp_config:
  reshard_after_forward: true
max_grad_norm: 1.0
`)},
	"torchtitan": {Name: "t.toml", Data: []byte(`[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 4
global_batch_size = 64
seq_len = 4096
[parallelism]
data_parallel_shard_degree = 2
tensor_parallel_degree = 2
pipeline_parallel_degree = 2
pipeline_parallel_microbatch_size = 1
context_parallel_degree = 1
[activation_checkpoint]
mode = "selective"
selective_ac_option = "2"
`)},
	"lightning": {Name: "config.yaml", Data: []byte(`trainer:
  accelerator: gpu
  strategy: fsdp
  devices: 8
  num_nodes: 1
  precision: bf16-mixed
  accumulate_grad_batches: 4
  gradient_clip_val: 1.0
data:
  batch_size: 2
`)},
	"bridge": {Name: "run_config.yaml", Data: []byte(`_target_: megatron.bridge.training.config.ConfigContainer
model:
  _target_: megatron.bridge.models.llama.LlamaModelProvider
  num_layers: 32
  hidden_size: 4096
  num_attention_heads: 32
  num_query_groups: 8
  ffn_hidden_size: 14336
  seq_length: 8192
  vocab_size: 128256
  gated_linear_unit: true
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  activation_func: {_target_: torch.nn.functional.silu, _call_: false}
train:
  micro_batch_size: 1
  global_batch_size: 128
mixed_precision: bf16_mixed
`)},
}

var (
	scalarPattern = regexp.MustCompile(`[ =](-?[0-9][0-9.e]*|true|false|bf16[a-z_-]*|full|block|"[a-zA-Z0-9]+")`)
	wrongValues   = []string{"0", "-1", "3", "7", "1000000", "1e30", "none", "null", `""`, "[1, 2]", "auto"}
)

// wrongFiles returns a file without one of its lines, for each line, and with one value replaced, for each value.
func wrongFiles(f interop.File) (out []interop.File) {
	text := string(f.Data)
	add := func(text string) { out = append(out, interop.File{Name: f.Name, Data: []byte(text)}) }
	lines := strings.SplitAfter(text, "\n")
	for i := range lines {
		add(strings.Join(lines[:i], "") + strings.Join(lines[i+1:], ""))
	}
	for _, at := range scalarPattern.FindAllStringSubmatchIndex(text, -1) {
		for _, value := range wrongValues {
			add(text[:at[2]] + value + text[at[3]:])
		}
	}
	add("{}")
	add("")
	add("words")
	return out
}

// Every error about a file names a line of it.
func TestErrorsNameALine(t *testing.T) {
	for name, sample := range samples {
		if s, err := Read([]interop.File{sample}, "", interop.Options{}); err != nil || s.Format.Name != name {
			t.Fatalf("%s: the sample is not read: %v", name, err)
		}
		errs := 0
		for _, f := range wrongFiles(sample) {
			err := readAndLoad(f, name)
			var diags ir.Diags
			if err != nil && !errors.As(err, &diags) {
				t.Errorf("%s: %v is no input error\n%s", name, err, f.Data)
			}
			errs += len(diags)
			for _, d := range diags {
				if d.Pos.File == f.Name && d.Pos.Line == 0 || d.Pos.File == "" {
					t.Errorf("%s: %v\n%s", name, d, f.Data)
				}
			}
		}
		if errs < 10 {
			t.Errorf("%s: only %d errors", name, errs)
		}
	}
}

// readAndLoad returns the error of a file, or of the job that it describes.
func readAndLoad(f interop.File, format string) error {
	over := overrides("cluster.node=dgx-h100", "model=llama3-8b", "train.seq_len=4096")
	s, err := ReadFor([]interop.File{f}, format, interop.Options{}, noFiles, over)
	if err != nil {
		return err
	}
	_, err = s.Question(noFiles, over...)
	return err
}
