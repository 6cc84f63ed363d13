package migrate

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// The message says which keys change the figures and are not priced.
func TestMessageNamesWhatIsNotPriced(t *testing.T) {
	const config = `{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "zero_quantized_weights": true, "zero_hpz_partition_size": 8}}`
	const quantized = " The file uses ZeRO++ (zero_optimization.zero_quantized_weights true, " +
		"zero_optimization.zero_hpz_partition_size 8), which planc does not price yet: step time and " +
		"memory are without it."
	other := func(key string) string {
		return " planc does not price the optimizer (" + key + ") yet: step time and memory are those of AdamW."
	}
	const lightning = "trainer: {devices: 8, strategy: fsdp, precision: bf16-mixed}\n" +
		"data: {init_args: {batch_size: 2}}\noptimizer: {class_path: torch.optim.AdamW}\n"
	const arguments = "per_device_train_batch_size: 1\nbf16: true\n"
	preference := func(key string) string {
		return " The file trains by preference or reinforcement learning (" + key + "), which planc does not price " +
			"yet: step time and memory are those of one model and one pass over each sequence."
	}
	for _, c := range []struct{ name, text, want string }{
		{"hf.yaml", arguments + "rlhf_type: dpo\n", preference("rlhf_type dpo")},
		{"hf.yaml", arguments + "stage: kto\n", preference("stage kto")},
		{"hf.yaml", arguments + "stage: sft\n", ""},
		{"run.sh", "NPROC_PER_NODE=8 megatron rlhf --rlhf_type dpo --micro_batch_size 1 --global_batch_size 64 " +
			"--max_length 1024\n", preference("--rlhf_type dpo")},
		{"ds.json", config, quantized},
		{"ds.json", strings.Replace(config, ": true, \"zero_hpz_partition_size\": 8", ": false", 1), ""},
		{"ds.json", strings.Replace(config, "{", `{"optimizer": {"type": "Muon", "params": {"lr": 1e-4}}, `, 1),
			quantized + other("optimizer.type Muon")},
		{"hf.yaml", "per_device_train_batch_size: 1\nbf16: true\noptim: adafactor\n", other("optim adafactor")},
		{"hf.yaml", "per_device_train_batch_size: 1\nbf16: true\noptim: adamw_torch\n", ""},
		{"cli.yaml", lightning, ""},
		{"cli.yaml", strings.Replace(lightning, "torch.optim.AdamW", "muon.Muon", 1),
			other("optimizer.class_path muon.Muon")},
		{"run.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 768 " +
			"--num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 " +
			"--micro-batch-size 1 --global-batch-size 64 --bf16 --optimizer muon\n", other("--optimizer muon")},
	} {
		r := reportOf(t, []interop.File{{Name: c.name, Data: []byte(c.text)}}, noFiles, onH100([]string{
			"model=gpt2-124m", "cluster.nodes=1", "train.seq_len=1024", "train.global_batch=64"}))
		_, got, ok := strings.Cut(r.Message, "can run")
		if !ok {
			t.Fatalf("%s: %s", c.text, r.Message)
		}
		got = strings.TrimPrefix(strings.TrimPrefix(got, " and the file can express"), ".")
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}
