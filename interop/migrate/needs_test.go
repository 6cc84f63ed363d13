package migrate

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// Options that Megatron-LM accepts only with sequence parallelism or virtual stages leave the script with them.
func TestOptionsLeaveWithWhatTheyNeed(t *testing.T) {
	const head = "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \\\n" +
		"  --bf16 --num-attention-heads 32 --vocab-size 128256 --max-position-embeddings 4096 --seq-length 4096 \\\n" +
		"  --micro-batch-size 1 --global-batch-size 64 --use-distributed-optimizer "
	for _, c := range []struct {
		name, options string
		to            func(p *ir.Plan)
		leaves, stays []string
	}{
		{"no sp", "--tensor-model-parallel-size 4 --sequence-parallel --tp-comm-overlap",
			func(p *ir.Plan) { p.SP = false }, []string{"--sequence-parallel", "--tp-comm-overlap"}, nil},
		{"tp 1", "--tensor-model-parallel-size 4 --sequence-parallel --tp-comm-overlap",
			func(p *ir.Plan) { p.TP, p.DP, p.MicroBatches, p.ZeroGroup, p.SP = 1, 16, 4, 16, false },
			[]string{"--tp-comm-overlap"}, nil},
		{"tp 2", "--tensor-model-parallel-size 4 --sequence-parallel --tp-comm-overlap",
			func(p *ir.Plan) { p.TP, p.DP, p.MicroBatches, p.ZeroGroup = 2, 8, 8, 8 },
			nil, []string{"--tp-comm-overlap", "--sequence-parallel"}},
		{"vpp 1", "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4 " +
			"--overlap-p2p-communication-warmup-flush",
			func(p *ir.Plan) { p.VPP, p.Schedule, p.StageLayers = 1, "1f1b", "16,16" },
			[]string{"--overlap-p2p-communication-warmup-flush"}, nil},
		{"vpp 2", "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4 " +
			"--overlap-p2p-communication-warmup-flush",
			func(p *ir.Plan) { p.VPP, p.StageLayers = 2, "8,8,8,8" },
			nil, []string{"--overlap-p2p-communication-warmup-flush"}},
	} {
		file := interop.File{Name: "run.sh", Data: []byte(head + c.options + "\n")}
		r := reportOf(t, []interop.File{file}, noFiles, onH100(nil))
		to := r.From()
		c.to(&to)
		edited, note := editedFiles(r, []interop.File{file}, to)
		if note != "" {
			t.Errorf("%s: %s", c.name, note)
			continue
		}
		text := string(edited[0].Data)
		for _, option := range c.leaves {
			if strings.Contains(text, option) {
				t.Errorf("%s: %s stays:\n%s", c.name, option, text)
			}
		}
		for _, option := range c.stays {
			if !strings.Contains(text, option) {
				t.Errorf("%s: %s leaves:\n%s", c.name, option, text)
			}
		}
	}
}
