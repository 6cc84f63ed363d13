package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
)

// The errors of an illegal plan are at the key that the message asks to change.
func TestErrorsAreAtTheKeyToChange(t *testing.T) {
	const (
		script = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --seq-length 4096 " +
			"--num-attention-heads 32 --max-position-embeddings 4096 --vocab-size 32000 --bf16 \\\n" +
			"  --tensor-model-parallel-size 2 \\\n  --pipeline-model-parallel-size 1 \\\n"
		processes = "distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 12\n"
		sizes     = "distributed_type: FSDP\nnum_machines: 3\nnum_processes: 24\nfsdp_config: {fsdp_version: 2}\n" +
			"parallelism_config:\n  parallelism_config_dp_shard_size: 12\n  parallelism_config_tp_size: 2\n"
	)
	ofModel := []string{"model=llama3.1-8b", "train.seq_len=4096", "train.global_batch=64", "cluster.node=dgx-h100"}
	tests := []struct {
		name, text string
		sets       []string
		want       string
	}{
		{"run.sh", script + "  --micro-batch-size 1 \\\n  --global-batch-size 250\n", []string{"cluster.node=dgx-h100"},
			"run.sh:5:3: --global-batch-size: dp 4 must divide the global batch of 250: use a global batch of 248 or " +
				"252 [BadPlan]"},
		{"run.sh", script + "  --micro-batch-size 3 \\\n  --global-batch-size 256\n", []string{"cluster.node=dgx-h100"},
			"run.sh:4:3: --micro-batch-size: micro_batch 3 × dp 4 must divide the global batch of 256: use " +
				"micro_batch 2 or 4 [BadPlan]"},
		{"acc.yaml", processes, ofModel, "--set train.global_batch=64: dp 12 must divide the global batch of 64: use " +
			"a global batch of 60 or 72 [BadPlan]"},
		{"acc.yaml", sizes, ofModel, "--set train.global_batch=64: dp 12 must divide the global batch of 64: use a " +
			"global batch of 60 or 72 [BadPlan]"},
	}
	for _, test := range tests {
		file := interop.File{Name: test.name, Data: []byte(test.text)}
		r := reportOf(t, []interop.File{file}, noFiles, overrides(test.sets...))
		if got := r.Diags.Error(); got != test.want {
			t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
		}
	}
}

// A number of devices that the cluster does not have is at the key that says it.
func TestErrorOfDevicesIsAtItsKey(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"acc.yaml", "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 12\n",
			"acc.yaml:3:1: a node of dgx-h100 has 8 devices, not 12 [BadCluster]"},
		{"config.yaml", "trainer:\n  strategy: ddp\n  num_nodes: 1\n  devices: 12\ndata: {batch_size: 2}\n",
			"config.yaml:4:3: a node of dgx-h100 has 8 devices, not 12 [BadCluster]"},
	}
	over := overrides("model=llama3.1-8b", "train.seq_len=4096", "train.global_batch=96", "cluster.node=dgx-h100")
	for _, test := range tests {
		files := []interop.File{{Name: test.name, Data: []byte(test.text)}}
		s, err := ReadFor(files, "", interop.Options{}, noFiles, over)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Question(noFiles, over...)
		if err == nil || err.Error() != test.want {
			t.Errorf("got:\n%v\nwant:\n%s", err, test.want)
		}
	}
}
