package migrate

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
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
		if got := offload(s.Keys); got != want {
			t.Errorf("%s: %q, want %q", c.format, got, want)
		}
	}
}

// Every format says in the same words that a file trains adapters, which planc prices as full training.
func TestAdaptersAreSaidInOneWording(t *testing.T) {
	const swift = "megatron sft --micro_batch_size 1 --global_batch_size 8 "
	const bridge = "train:\n  micro_batch_size: 1\n  global_batch_size: 8\nmodel:\n  num_layers: 2\n"
	const arguments = "per_device_train_batch_size: 1\n"
	for _, c := range []struct{ format, name, text, keys string }{
		{"swift", "run.sh", swift + "--train_type lora --lora_rank 8\n", "--train_type lora"},
		{"swift", "run.sh", swift + "--tuner_type lora --target_modules all-linear\n", "--tuner_type lora"},
		{"swift", "run.sh", swift + "--train_type full\n", ""},
		{"hf", "a.yaml", arguments + "use_peft: true\nlora_r: 16\nload_in_4bit: true\n",
			"use_peft true, load_in_4bit true"},
		{"hf", "a.yaml", arguments + "use_peft: false\nload_in_4bit: false\n", ""},
		{"hf", "a.yaml", arguments + "finetuning_type: lora\n", "finetuning_type lora"},
		{"hf", "a.yaml", arguments + "finetuning_type: full\n", ""},
		{"bridge", "run_config.yaml", bridge + "peft: lora\n", "peft lora"},
		{"bridge", "run_config.yaml", bridge + "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  dim: 8\n",
			"peft._target_ megatron.bridge.peft.lora.LoRA"},
		{"bridge", "run_config.yaml", bridge + "peft: null\n", ""},
	} {
		s, err := Read([]interop.File{{Name: c.name, Data: []byte(c.text)}}, c.format, interop.Options{Devices: 8})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		want := ""
		if c.keys != "" {
			want = "The file trains adapters, such as LoRA's (" + c.keys + "), which planc does not price yet: step " +
				"time and memory are those of full training."
		}
		if got := adapters(s.Keys); got != want {
			t.Errorf("%s: %q, want %q", c.text, got, want)
		}
	}
}

// A plan that does not fit without its offload does not fit only if what stays on the device does not. Otherwise, the
// verdict is that planc does not price it.
func TestOffloadDecidesWhetherAPlanFits(t *testing.T) {
	const config = `{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}`
	const sentence = " The file offloads state (zero_optimization.offload_optimizer.device cpu), which planc does " +
		"not price yet: step time and memory are without offload."
	for _, c := range []struct {
		sets, message string
		verdict       planner.CheckVerdict
	}{
		{"model=llama3-8b cluster.devices=1", "This plan is legal, and whether it fits is not known. Without " +
			"offload it is 135.2 GiB over, in the forward pass of the first step; what stays on the device needs " +
			"at least 41.8 GiB of 71.2 GiB." + sentence, planner.CheckUnpriced},
		{"model=llama3-70b cluster.devices=1", "This plan is legal and does not fit, also with offload: what stays " +
			"on the device needs at least 157.7 GiB of 71.2 GiB." + sentence, planner.CheckNoFit},
		{"model=gpt2-124m cluster.devices=1", "", planner.CheckFine},
	} {
		files := []interop.File{{Name: "ds.json", Data: []byte(config)}}
		sets := append(strings.Fields(c.sets), "train.seq_len=1024", "train.global_batch=8", "cluster.nodes=1")
		if c.verdict == planner.CheckUnpriced {
			sets[len(sets)-3] = "train.seq_len=4096"
		}
		r := reportOf(t, files, noFiles, onH100(sets))
		isSaid := r.Message == c.message || c.message == "" && strings.HasSuffix(r.Message, sentence)
		if r.Verdict != c.verdict || !isSaid {
			t.Errorf("%s: %s, %s", c.sets, r.Verdict, r.Message)
		}
		m := r.Yours.Predict.MemoryBytes
		if r.Offloaded.LeastBytes != m.Total-m.Grads-m.Optimizer {
			t.Errorf("%s: %+v of %+v", c.sets, r.Offloaded, m)
		}
	}
}

// Megatron-LM keeps gradients on the device, and can offload a fraction of the optimizer state.
func TestMegatronOffloadsAFraction(t *testing.T) {
	for options, part := range map[string]int64{"--optimizer-cpu-offload": 1,
		"--optimizer-cpu-offload --optimizer-offload-fraction 0.25": 4} {
		r := reportOf(t, []interop.File{{Name: "run.sh", Data: []byte(oneReplica + " " + options + "\n")}}, noFiles,
			onH100(nil))
		m := r.Yours.Predict.MemoryBytes
		if want := m.Total - m.Optimizer/part; r.Offloaded.LeastBytes != want {
			t.Errorf("%s: %d, want %d of %+v", options, r.Offloaded.LeastBytes, want, m)
		}
	}
}

// The memory that offload moves is that of the state which a key names.
func TestOffloadedParts(t *testing.T) {
	for what, want := range map[string]string{interop.OptimizerState: "grads optimizer", interop.Parameters: "params",
		interop.OptimizerAlone: "optimizer", interop.AllState: "params grads optimizer",
		interop.SavedActivations: "activations"} {
		k := interop.Key{Use: interop.Unsupported, Note: interop.OffloadNote(what, "cpu")}
		if got := strings.Join(k.OffloadedParts(), " "); got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// An edit that switches FSDP on does not switch on what keys say that had no effect: offload, recomputation and other
// units.
func TestEditsSwitchNoOffloadOn(t *testing.T) {
	for _, c := range []struct{ format, name, text, want string }{
		{"hf", "a.yaml", `per_device_train_batch_size: 1
gradient_accumulation_steps: 4
bf16: true
fsdp: ""  # off for now
fsdp_config:
  activation_checkpointing: true  # to fit
  cpu_offload: true
  fsdp_offload_params: true
  auto_wrap_policy: NO_WRAP
  reshard_after_forward: true
`, `-fsdp: ""  # off for now
+fsdp: true  # off for now
 fsdp_config:
-  activation_checkpointing: true  # to fit
-  cpu_offload: true
-  fsdp_offload_params: true
-  auto_wrap_policy: NO_WRAP
+  activation_checkpointing: false  # to fit
+  cpu_offload: false
+  fsdp_offload_params: false
+  auto_wrap_policy: TRANSFORMER_BASED_WRAP
   reshard_after_forward: true
`},
		{"accelerate", "a.yaml", `distributed_type: MULTI_GPU
num_machines: 1
num_processes: 8
mixed_precision: bf16
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: NO_WRAP
  fsdp_activation_checkpointing: true  # to fit
  fsdp_offload_params: true
  fsdp_reshard_after_forward: true
`, `-distributed_type: MULTI_GPU
+distributed_type: FSDP
 num_machines: 1
 num_processes: 8
 mixed_precision: bf16
 fsdp_config:
   fsdp_version: 2
-  fsdp_auto_wrap_policy: NO_WRAP
-  fsdp_activation_checkpointing: true  # to fit
-  fsdp_offload_params: true
+  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
+  fsdp_activation_checkpointing: false  # to fit
+  fsdp_offload_params: false
   fsdp_reshard_after_forward: true
`},
	} {
		files := []interop.File{{Name: c.name, Data: []byte(c.text)}}
		sets := []string{"model=llama3-8b", "cluster.nodes=1", "train.seq_len=4096"}
		if c.format == "accelerate" {
			sets = append(sets, "train.global_batch=32", "plan.micro_batch=1")
		}
		r := reportOf(t, files, noFiles, onH100(sets))
		if yours := r.From(); yours.Recompute != "none" || r.Offload != "" || r.Offloaded != nil {
			t.Errorf("%s: the file's plan is %v, %q", c.format, yours, r.Offload)
		}
		to := r.From()
		to.Zero, to.ZeroGroup = 3, 8
		diff, note, _ := r.Source.diffOf(r.Question, r.From(), to)
		if !strings.HasSuffix(diff, c.want) || note != "" {
			t.Errorf("%s: %s\n%s", c.format, note, diff)
			continue
		}
		edited, _ := editedFiles(r, files, to)
		s, _ := questionOfFiles(t, edited, noFiles, onH100(sets))
		if got := offload(s.Keys); got != "" {
			t.Errorf("%s: %s", c.format, got)
		}
	}
}
