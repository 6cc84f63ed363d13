package megatron

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// A ramp-up of the batch that Megatron-LM refuses is refused, and so is a schedule.
func TestWrongGrowingBatches(t *testing.T) {
	const ignored = ". Megatron-Core 0.18 and later ignore the option: remove it there [BadOption]"
	const at = "run.sh:1:238: "
	for _, c := range []struct{ options, want string }{
		{"--rampup-batch-size 16 16 1000", ""},
		{"--rampup-batch-size 32 32 1", ""},
		{"--rampup-batch-size 16 16", at + "--rampup-batch-size has no value: give three values [BadOption]"},
		{"--rampup-batch-size 16 x 1000", at + "--rampup-batch-size 16 x 1000: give three integers: the first batch, " +
			"its increment and the number of samples [BadOption]"},
		{"--rampup-batch-size 16 0 1000", at + "--rampup-batch-size 16 0 1000: the first batch, its increment and " +
			"the number of samples must be at least 1" + ignored},
		{"--rampup-batch-size 64 8 1000", at + "--rampup-batch-size 64 8 1000: the first batch must be less than " +
			"--global-batch-size 64" + ignored},
		{"--rampup-batch-size 16 32 1000", at + "--rampup-batch-size 16 32 1000: increments of 32 from 16 do not " +
			"reach --global-batch-size 64: use an increment that divides 48" + ignored},
		{"--rampup-batch-size 8 8 1000", at + "--rampup-batch-size 8 8 1000: the batch of 8 sequences must be a " +
			"multiple of micro-batch 2 × dp 8 = 16" + ignored},
		{"--rampup-batch-size 16 8 1000", at + "--rampup-batch-size 16 8 1000: the batch of 24 sequences must be a " +
			"multiple of micro-batch 2 × dp 8 = 16" + ignored},
		{"--rampup-batch-size 16 8 40", ""}, // the second step has a batch of 32
		{"--rampup-batch-size 8 8 1000 --decrease-batch-size-if-needed", ""},
		{"--step-batch-size-schedule 0:16", at + "--step-batch-size-schedule and --global-batch-size exclude each " +
			"other: remove one [BadOption]"},
	} {
		_, err := Import([]interop.File{{Name: "run.sh", Data: []byte(small + c.options)}}, interop.Options{})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.options, got, c.want)
		}
	}
}

// noBatch is a script without a global batch.
const noBatch = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --bf16 " +
	"--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 " +
	"--tokenizer-type GPT2BPETokenizer "

// The last batch of a schedule is the job's, and edits leave the schedule as it is.
func TestBatchSchedules(t *testing.T) {
	im := importText(t, noBatch+"--step-batch-size-schedule '0:32, 3B:128 1.5B:64'", interop.Options{})
	if f, _ := im.Field("train.global_batch"); f.Value != "128" || f.From != "--step-batch-size-schedule" {
		t.Errorf("the batch is %s from %s", f.Value, f.From)
	}
	script := noBatch + "--step-batch-size-schedule 0:128"
	to := target(t, script, "8xh100", func(p *ir.Plan) { p.DP, p.MicroBatch, p.MicroBatches = 8, 8, 2 })
	for _, v := range im.Values(to) {
		if v.Key == "--global-batch-size" {
			t.Error("an edit sets --global-batch-size, which the schedule excludes")
		}
	}
	const name = "run.sh:1:215: --step-batch-size-schedule "
	for text, want := range map[string]string{
		"0:16 0:32": name + "0:16 0:32: 0:32 must be START:BATCH, with starts from 0 up and batches of at least 1: " +
			"write 0:768 250B:1536 [BadOption]",
		"16": name + "16: 16 must be START:BATCH, with starts from 0 up and batches of at least 1: write " +
			"0:768 250B:1536 [BadOption]",
		"0:8 1M:64": name + "0:8 1M:64: the batch of 8 sequences must be a multiple of micro-batch 2 × dp 8 = " +
			"16 [BadOption]",
	} {
		script := noBatch + "--step-batch-size-schedule '" + text + "'"
		_, err := Import([]interop.File{{Name: "run.sh", Data: []byte(script)}}, interop.Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Edits keep each batch of a ramp-up a whole number of micro-batches.
func TestEditsKeepTheRampUp(t *testing.T) {
	script := small + "--rampup-batch-size 16 16 1000"
	im := importText(t, script, interop.Options{})
	refused := func(micro int) string {
		to := target(t, script, "8xh100", func(p *ir.Plan) { p.DP, p.MicroBatch, p.MicroBatches = 8, micro, 8/micro })
		return im.Refusals(to).Err().Error()
	}
	const want = "plan.micro_batch: --rampup-batch-size 16 16 1000: the batch of 16 sequences must be a multiple of " +
		"micro-batch 4 × dp 8 = 32 [NoExport]"
	if got := refused(4); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	to := target(t, script, "8xh100", func(p *ir.Plan) { p.DP, p.MicroBatch, p.MicroBatches = 8, 1, 8 })
	if diags := im.Refusals(to); len(diags) > 0 {
		t.Error(diags)
	}
}

// The batches of a ramp-up are those of Megatron-Core 0.17's calculator, step by step.
func TestBatchesOfARampUp(t *testing.T) {
	for _, r := range []rampUp{{16, 8, 1000, 64}, {16, 8, 15, 64}, {1, 1, 37, 9}, {5, 7, 311, 75}, {32, 32, 1, 64},
		{2, 1, 3, 12}, {48, 16, 30_000, 256}} {
		var want []int
		each := float64(r.samples) / float64((r.final-r.start)/r.increment)
		for consumed := 0; consumed <= r.samples; {
			batch := r.start + int(float64(consumed)/each)*r.increment
			if len(want) == 0 || want[len(want)-1] != batch {
				want = append(want, batch)
			}
			consumed += batch
		}
		if got := slices.Compact(r.batches()); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", r, got, want)
		}
	}
}
