package migrate

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
)

// Megatron-LM trains experts with tensor parallelism only with sequence parallelism.
func TestExpertsWithTensorParallelismNeedSequenceParallelism(t *testing.T) {
	const script = `torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --hidden-size 2048 --bf16 \
  --num-attention-heads 16 --ffn-hidden-size 1024 --swiglu --normalization RMSNorm --disable-bias-linear \
  --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 50304 --num-experts 16 \
  --moe-router-topk 2 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 \
  --use-distributed-optimizer --tensor-model-parallel-size 2 --expert-model-parallel-size 4
`
	check := func(options string) *Report {
		text := strings.TrimSuffix(script, "\n") + options + "\n"
		return reportOf(t, []interop.File{{Name: "run.sh", Data: []byte(text)}}, noFiles, onH100(nil))
	}
	r := check("")
	const want = "This plan is illegal: sp false: engine megatron trains experts with tp above 1 only with sp (sp " +
		"true, or tp 1)."
	if r.Verdict != planner.CheckIllegal || r.Message != want {
		t.Errorf("%q, want %q", r.Message, want)
	}
	if len(r.Edits) == 0 || !strings.Contains(r.Edits[0].Diff, "--sequence-parallel") {
		t.Errorf("no edit adds --sequence-parallel: %+v", r.Edits)
	}
	r = check(" --sequence-parallel")
	if r.Verdict != planner.CheckFine {
		t.Error(r.Message)
	}
}
