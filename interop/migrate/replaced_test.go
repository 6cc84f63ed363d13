package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec"
)

// Flags that contradict the files are noted, with what is used.
func TestReplacedValuesAreNoted(t *testing.T) {
	quick := func(flag, value string) spec.Override {
		o, ok := spec.QuickFlag(flag, value)
		if !ok {
			t.Fatal(flag)
		}
		return o
	}
	for _, c := range []struct {
		file      interop.File
		overrides []spec.Override
		want      []string
	}{
		{interop.File{Name: "run.sh", Data: []byte(oneReplica)}, []spec.Override{quick("seq-len", "2048"),
			quick("global-batch", "128"), quick("model", "llama3-8b"), spec.SetFlag("plan.tp=4"),
			spec.SetFlag("plan.zero=0")}, []string{
			"run.sh:3:54: planc uses --seq-len 2048 instead of train.seq_len 4096 (--seq-length)",
			"run.sh:3:93: planc uses --global-batch 128 instead of train.global_batch 64 (--global-batch-size)",
			"planc uses --model llama3-8b instead of the model in run.sh",
			"run.sh:4:41: planc uses --set plan.tp=4 instead of plan.tp 8 (--tensor-model-parallel-size)",
		}},
		{interop.File{Name: "run.sh", Data: []byte(oneReplica)}, []spec.Override{quick("seq-len", "4096"),
			quick("global-batch", "64")}, nil},
		{interop.File{Name: "ds.json", Data: []byte(`{"train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 2}}`)}, []spec.Override{
			spec.SetFlag("cluster=8xh100"), quick("global-batch", "128"), quick("model", "llama3-8b"),
			quick("seq-len", "4096")}, []string{
			"planc uses --global-batch 128 instead of train.global_batch 64 (train_micro_batch_size_per_gpu · " +
				"gradient_accumulation_steps · 8 data-parallel ranks)",
		}},
		{interop.File{Name: "l.yaml", Data: []byte("trainer: {devices: 8, num_nodes: 2, strategy: fsdp,\n" +
			"  accumulate_grad_batches: 4}\ndata: {batch_size: 2}\n")}, []spec.Override{
			spec.SetFlag("cluster=dgx-h100"), spec.SetFlag("cluster.nodes=2"), quick("global-batch", "256"),
			quick("model", "llama3-8b"), quick("seq-len", "4096")}, []string{
			"planc uses --global-batch 256 instead of train.global_batch 128 (data.batch_size · " +
				"trainer.accumulate_grad_batches · 16 data-parallel ranks)",
		}},
	} {
		s, err := ReadFor([]interop.File{c.file}, "", interop.Options{}, noFiles, c.overrides)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range s.Notes {
			got = append(got, n.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.file.Name, diff)
		}
	}
}
