package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
)

// Every format says in the same words that a file offloads state, which planc does not price.
func TestOffloadIsSaidInOneWording(t *testing.T) {
	const megatron = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 " +
		"--num-attention-heads 4 --seq-length 64 --micro-batch-size 1 --global-batch-size 8 --bf16 "
	const bridge = "train:\n  micro_batch_size: 1\n  global_batch_size: 8\nmodel:\n  num_layers: 2\noptimizer:\n"
	for _, c := range []struct{ format, name, text, keys string }{
		{"deepspeed", "ds.json", `{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer":
			{"device": "cpu"}, "offload_param": {"device": "nvme"}}}`,
			"zero_optimization.offload_optimizer.device cpu, zero_optimization.offload_param.device nvme"},
		{"accelerate", "a.yaml", "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n" +
			"  fsdp_offload_params: true\n", "fsdp_config.fsdp_offload_params true"},
		{"accelerate", "a.yaml", "distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config:\n" +
			"  megatron_lm_optimizer_cpu_offload: true\n",
			"megatron_lm_config.megatron_lm_optimizer_cpu_offload true"},
		{"accelerate", "a.yaml", "distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config:\n" +
			"  megatron_lm_optimizer_cpu_offload: false\n", ""},
		{"hf", "a.yaml", "per_device_train_batch_size: 1\nfsdp: full_shard offload\n", "fsdp full_shard offload"},
		{"hf", "a.yaml", "per_device_train_batch_size: 1\nfsdp: true\nfsdp_config: {cpu_offload: true}\n",
			"fsdp_config.cpu_offload true"},
		{"torchtitan", "t.toml", "[training]\nenable_cpu_offload = true\n", "training.enable_cpu_offload true"},
		{"torchtitan", "t.toml", "[training]\nenable_cpu_offload = false\n", ""},
		{"lightning", "l.yaml", "trainer:\n  strategy: deepspeed_stage_3_offload\n  devices: 8\n",
			"trainer.strategy deepspeed_stage_3_offload"},
		{"lightning", "l.yaml", "trainer:\n  devices: 8\n  strategy:\n    class_path: " +
			"lightning.pytorch.strategies.FSDPStrategy\n    init_args:\n      cpu_offload: true\n",
			"trainer.strategy.init_args.cpu_offload true"},
		{"megatron", "run.sh", megatron + "--optimizer-cpu-offload\n", "--optimizer-cpu-offload"},
		{"megatron", "run.sh", megatron + "--cpu-offloading-num-layers 1\n", "--cpu-offloading-num-layers 1"},
		{"swift", "run.sh", "megatron sft --micro_batch_size 1 --global_batch_size 8 --optimizer_cpu_offload true\n",
			"--optimizer_cpu_offload true"},
		{"bridge", "run_config.yaml", bridge + "  optimizer_cpu_offload: true\n",
			"optimizer.optimizer_cpu_offload"},
		{"bridge", "run_config.yaml", bridge + "  optimizer_cpu_offload: false\n", ""},
	} {
		s, err := Read([]interop.File{{Name: c.name, Data: []byte(c.text)}}, c.format, interop.Options{Devices: 8})
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		want := ""
		if c.keys != "" {
			want = "The file offloads state (" + c.keys + "), which planc does not price yet: step time and memory " +
				"are without offload."
		}
		if got := s.offload(); got != want {
			t.Errorf("%s: %q, want %q", c.format, got, want)
		}
	}
}
