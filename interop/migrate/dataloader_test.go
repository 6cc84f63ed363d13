package migrate

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// An edit of the micro-batch of a plugin of Accelerate says the batch of the data loader, which the file cannot.
func TestEditsSayTheBatchOfTheDataLoader(t *testing.T) {
	for _, text := range []string{
		"distributed_type: DEEPSPEED\nnum_processes: 8\nmixed_precision: bf16\n" +
			"deepspeed_config: {zero_stage: 3, gradient_accumulation_steps: 1}\n",
		"distributed_type: MEGATRON_LM\nnum_processes: 8\nmixed_precision: bf16\n" +
			"megatron_lm_config: {megatron_lm_tp_degree: 2, megatron_lm_num_micro_batches: 1}\n",
	} {
		r := reportOf(t, []interop.File{{Name: "a.yaml", Data: []byte(text)}}, noFiles, onH100([]string{
			"model=gpt2-124m", "cluster.nodes=1", "train.seq_len=1024", "train.global_batch=64"}))
		from := r.From()
		to := from
		to.MicroBatch, to.MicroBatches = from.MicroBatch/2, 2
		_, note, remarks := r.Source.diffOf(r.Question, from, to)
		want := []string{"a.yaml has no batch: the script's data loader must have a batch of 4 a device, not 8"}
		if from.TP > 1 {
			want[0] = "a.yaml has no batch: the script's data loader must have a batch of 8 a device, not 16"
		}
		if note != "" || !slices.Equal(remarks, want) {
			t.Errorf("%s: %q, %q, want %q", text, note, remarks, want)
		}
		if _, _, remarks := r.Source.diffOf(r.Question, from, from); len(remarks) > 0 {
			t.Errorf("the same plan: %q", remarks)
		}
	}
}

// The best plan of a file whose code decides sequence parallelism is not slower than one without tp, which has none.
func TestBestPlanWithoutTensorParallelism(t *testing.T) {
	const text = "trainer:\n  devices: 8\n  num_nodes: 2\n  precision: bf16-mixed\n  accumulate_grad_batches: 4\n" +
		"  strategy:\n    class_path: lightning.pytorch.strategies.ModelParallelStrategy\n" +
		"    init_args: {data_parallel_size: 8, tensor_parallel_size: 2}\ndata: {init_args: {batch_size: 2}}\n"
	r := reportOf(t, []interop.File{{Name: "cli.yaml", Data: []byte(text)}}, noFiles, onH100([]string{
		"model=llama3-8b", "cluster.nodes=2", "train.seq_len=4096", "train.global_batch=64"}))
	if r.Best == nil || r.Best.Plan.TP != 1 {
		t.Errorf("%s: %+v", r.Message, r.Best)
	}
	for _, e := range r.Edits {
		if e.Fits && e.Diff != "" && e.Predict.StepS < r.Best.Predict.StepS {
			t.Errorf("%s takes %v, and the best plan %v", e.Message, e.Predict.StepS, r.Best.Predict.StepS)
		}
	}
}
