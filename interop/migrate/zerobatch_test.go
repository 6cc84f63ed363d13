package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec"
)

// If a script computes a global batch of 0, because a replica has more ranks than the cluster has devices, the rule
// about ranks comes first.
func TestRanksBeforeABatchOfZero(t *testing.T) {
	const zero = "run.sh:4:8: --global-batch-size: train.global_batch is 0; it must be at least 1 [OutOfRange]"
	for _, c := range []struct{ name, degrees, batch, want string }{
		{"too many ranks", "TP=16 PP=4", "$((32/(TP*PP)*32))", "run.sh:3:34: --pipeline-model-parallel-size: " +
			"tp 16 · pp 4 is 64 ranks per replica, which must divide 32 devices: use pp 2 [BadPlan]\n" + zero},
		{"tp alone", "TP=64 PP=1", "$((32/(TP*PP)*32))", "run.sh:3:1: --tensor-model-parallel-size: tp 64 must " +
			"divide 32 devices: use tp 32 [BadPlan]\n" + zero},
		{"a batch of 0", "TP=2 PP=2", "0", zero},
	} {
		file := interop.File{Name: "run.sh", Data: []byte(c.degrees + "\n" +
			"torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1 --seq-length 4096 \\\n" +
			"--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \\\n--bf16 --global-batch-size " +
			c.batch + "\n")}
		over := []spec.Override{spec.SetFlag("cluster.node=dgx-h100"), spec.SetFlag("model=llama3-8b")}
		s, err := ReadFor([]interop.File{file}, "", interop.Options{}, noFiles, over)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Question(noFiles, over...)
		if err == nil {
			t.Fatalf("%s: no error", c.name)
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
