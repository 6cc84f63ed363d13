package migrate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

// An import names every key that is not in the job, with the reason.
func TestKeysThatAreNotTakenAreNoted(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"run.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --bf16 " +
			"--num-attention-heads 16 --seq-length 2048 --global-batch-size 64 --vocab-size 50000 \\\n" +
			"  --micro-batch-size 2 --rampup-batch-size 16 16 1000 --optimizer-cpu-offload --save out",
			[]string{
				"run.sh:2:24: --rampup-batch-size 16 16 1000 is not in the job: raises the batch size during " +
					"training; planc prices the final batch size. Megatron-Core 0.18 and later ignore it",
				"run.sh:2:55: --optimizer-cpu-offload is not in the job: offload: keeps the optimizer state without " +
					"the gradients in the host's memory",
				"these keys do not change which plan is best, and are not in the job: --save",
			}},
		{"ds.json", `{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_stage": 3,
 "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "dump_state": true,
 "steps_per_print": 5, "wall_clock_breakdown": true, "memory_breakdown": true, "prescale_gradients": true,
 "tensorboard": {"enabled": true, "output_path": "o", "job_name": "j"}, "wandb": {"enabled": true, "project": "p"}}`,
			[]string{
				"ds.json:1:66: zero_stage 3 is not in the job: DeepSpeed ignores it: DeepSpeed does not know it",
				"ds.json:2:58: zero_optimization.offload_optimizer.device cpu is not in the job: offload: keeps the " +
					"optimizer state in the host's memory",
				"these keys do not change which plan is best, and are not in the job: dump_state, steps_per_print, " +
					"wall_clock_breakdown, memory_breakdown, prescale_gradients, tensorboard.enabled, " +
					"tensorboard.output_path, tensorboard.job_name and 2 more (planc check ds.json --keys lists them)",
			}},
	} {
		s, err := Read([]interop.File{{Name: c.name, Data: []byte(c.text)}}, "", interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, s.NotTaken()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// The notes of a file with very many unknown options are limited.
func TestNotesOfManyKeysAreLimited(t *testing.T) {
	const many = 500
	text := oneReplica
	for i := range many {
		text += fmt.Sprintf(" --unknown-%d %d", i, i)
	}
	s, err := Read([]interop.File{{Name: "run.sh", Data: []byte(text)}}, "", interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	notes := s.NotTaken()
	const want = "401 more keys have notes (planc check run.sh --keys lists them)"
	if len(notes) != mostNotes+1 || notes[mostNotes] != want {
		t.Errorf("%d notes, the last is %s\nwant %s", len(notes), notes[len(notes)-1], want)
	}
}
