package migrate

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// sourcing is a script whose tensor parallelism is in a file that it sources.
const sourcing = `source par.sh
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py $PARALLEL \
  --num-layers 16 --hidden-size 2048 --ffn-hidden-size 8192 --num-attention-heads 32 --group-query-attention \
  --num-query-groups 8 --swiglu --seq-length 4096 --max-position-embeddings 8192 --vocab-size 128256 \
  --micro-batch-size 1 --global-batch-size 64 --bf16 --use-distributed-optimizer
`

// readParallel returns the file that sourcing sources.
func readParallel(path string) ([]byte, error) {
	if path == "par.sh" {
		return []byte("PARALLEL=\"--tensor-model-parallel-size 8 --sequence-parallel\"\n"), nil
	}
	return nil, fs.ErrNotExist
}

// A best plan that cannot be written into the file says why, and which is the best one that can.
func TestBestPlansThatCannotBeWrittenNameOneThatCan(t *testing.T) {
	script := []interop.File{{Name: "run.sh", Data: []byte(sourcing)}}
	r := reportOf(t, script, readParallel, onH100(nil))
	const why = "run.sh: --sequence-parallel cannot be removed from the script: change it in par.sh, line 1; "
	const other = "the best plan that can be written into the file is dp 4 · tp 2 · sp · zero 1 · micro_batch 8×2: " +
		"672.6 ms a step"
	if r.Best.Plan.SP || r.Diff != "" || r.DiffNote != why+other {
		t.Errorf("the best plan is %v\n%q\nwant %q", r.Best.Plan, r.DiffNote, why+other)
	}
	for i, e := range r.Edits {
		diff, note, _ := r.EditDiff(i)
		isOther := e.Fits && diff != "" && e.Predict.StepS < 0.6726
		if isOther {
			t.Errorf("%s is faster and can be written: %s %s", e.Message, diff, note)
		}
	}
}

// A best plan that the file's version cannot express says so if the file can express none that fits.
func TestBestPlansOfFilesThatCanExpressNone(t *testing.T) {
	sets := []string{"model=llama3-8b", "train.global_batch=64", "train.seq_len=32768"}
	r := reportOf(t, oldVersion, noFiles, onH100(sets))
	const want = "plan.cp: FSDP 1 cannot express it: it has no parallelism_config; use tp 1 and cp 1, or change the " +
		"file to FSDP 2 (fsdp_version: 2); no plan that fsdp1.yaml can express fits"
	if !r.IsOutsideFile() || r.Diff != "" || r.DiffNote != want {
		t.Errorf("%q\nwant %q", r.DiffNote, want)
	}
}

// An edit of an argument whose variable is in a path too changes the argument alone, and says so.
func TestEditsSayWhichVariablesTheyLeave(t *testing.T) {
	script := []interop.File{{Name: "run.sh", Data: []byte(`TP=8
SEQ=4096
CKPT=/data/llama_tp${TP}
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --tensor-model-parallel-size $TP --sequence-parallel \
  --num-layers 16 --hidden-size 2048 --ffn-hidden-size 8192 --num-attention-heads 32 --group-query-attention \
  --num-query-groups 8 --swiglu --seq-length $SEQ --max-position-embeddings $SEQ --vocab-size 128256 \
  --micro-batch-size 1 --global-batch-size 64 --bf16 --use-distributed-optimizer --load $CKPT --save $CKPT
`)}}
	r := reportOf(t, script, noFiles, onH100(nil))
	to := r.From()
	to.DP, to.TP, to.MicroBatches, to.Zero, to.ZeroGroup = 4, 2, 16, 1, 4
	diff, note, remarks := r.Source.diffOf(r.Question, r.From(), to)
	const want = "run.sh: TP stays 8, because --load and --save use it too: the edit changes " +
		"--tensor-model-parallel-size alone. Set TP=2 instead if the others should follow"
	if note != "" || len(remarks) != 1 || remarks[0] != want {
		t.Errorf("%q %q\nwant %s", note, remarks, want)
	}
	if !strings.Contains(diff, "pretrain_gpt.py --tensor-model-parallel-size 2 ") {
		t.Error(diff)
	}
	out, err := Export(r.Source.Format, r.Question, to, script, interop.Options{})
	if err != nil || !slices.Contains(out.Notes, want) {
		t.Errorf("%v: the notes of an export are %q", err, out.Notes)
	}
	to = r.From()
	to.MicroBatch, to.MicroBatches = 2, 32
	if _, note, remarks := r.Source.diffOf(r.Question, r.From(), to); note != "" || len(remarks) > 0 {
		t.Errorf("%q %q", note, remarks)
	}
}

// An edit of a file without a micro-batch is priced at the fastest one, which a check of the edited file chooses too.
func TestEditsChooseTheMicroBatch(t *testing.T) {
	sets := []string{"model=llama3-8b", "train.global_batch=64", "train.seq_len=8192"}
	r := reportOf(t, oldVersion, noFiles, onH100(sets))
	found := false
	for _, e := range r.Edits {
		if slices.Contains(e.Keys, "micro_batch") {
			t.Errorf("%s: the file does not say the micro-batch", e.Message)
		}
		isBest := e.Fits && e.Plan.Plan == r.Best.Plan.Plan
		found = found || isBest && e.Message == "recompute full → none · micro_batch 1×4"
	}
	if !found {
		t.Errorf("no edit leads to the best plan, %v", r.Best.Plan.Plan)
	}
}
