package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
)

// A given global batch keeps the accumulation steps of a file that has no micro-batch.
func TestGivenBatchKeepsTheSteps(t *testing.T) {
	file := interop.File{Name: "acc.yaml", Data: []byte(`distributed_type: DEEPSPEED
mixed_precision: bf16
num_processes: 8
deepspeed_config: {zero_stage: 2, gradient_accumulation_steps: 4}
`)}
	sets := []string{"model=llama3.2-1b", "train.seq_len=2048", "train.global_batch=128"}
	r := reportOf(t, []interop.File{file}, noFiles, onH100(sets))
	if p := r.From(); p.MicroBatches != 4 || p.MicroBatch != 4 {
		t.Error(p)
	}
}

// A given global batch replaces the steps of a file that has a micro-batch, unless it is that of the file.
func TestGivenBatchReplacesTheSteps(t *testing.T) {
	one := fileNamed("DeepSpeed with stage 0")
	for batch, want := range map[string]int{"256": 8, "512": 16} {
		sets := append([]string{"train.global_batch=" + batch}, one.sets...)
		r := reportOf(t, one.files, noFiles, onH100(sets))
		if p := r.From(); p.MicroBatches != want || p.MicroBatch != 2 {
			t.Errorf("%s: %v", batch, p)
		}
	}
}
