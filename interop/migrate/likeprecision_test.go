package migrate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
)

// The precision of a user's file holds for jobs that name none. An export in another one notes it.
func TestExportLikeAFileKeepsItsPrecision(t *testing.T) {
	for _, c := range []struct {
		format, name, text string
		sets, notes        []string
	}{
		{"deepspeed", "ds.json", `{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true},
  "zero_optimization": {"stage": 1}}`, []string{"train.precision.compute=fp16", "train.precision.grads=fp16",
			"train.precision.reduce=fp16", "train.precision.master=f32", "train.precision.moments=f32",
			"train.precision.loss_scale={init: 65536, window: 1000, hysteresis: 2, min: 1}"},
			[]string{"ds.json trains in fp16, and the job in bf16: the file changes to bf16; --set " +
				"train.precision=fp16 keeps it"}},
		{"accelerate", "acc.yaml", "distributed_type: MULTI_GPU\nmixed_precision: fp16\nnum_processes: 8\n",
			[]string{"train.precision.compute=fp16"},
			[]string{"acc.yaml trains in fp16, and the job in bf16: the file changes to bf16; --set " +
				"train.precision=fp16 keeps it"}},
		{"megatron", "run.sh", oneReplica, []string{"train.precision=bf16"}, nil},
	} {
		f := formats.Find(c.format)
		like := []interop.File{{Name: c.name, Data: []byte(c.text)}}
		sets, err := Precision(f, like, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.sets, sets); diff != "" {
			t.Errorf("%s: %s", c.format, diff)
		}
		job := []string{"model=llama3-8b", "cluster=8xh100", "train.global_batch=64", "train.seq_len=4096"}
		for i, more := range [][]string{{"train.precision=bf16"}, c.sets} {
			q := questionOf(t, job, f.Engine, append(slices.Clone(more), "plan.recompute=none", "plan.pp=1")...)
			plan, err := Best(f, q, decide(t, q), like, interop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			out, err := Export(f, q, plan, like, interop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, note := range c.notes {
				if isNoted := slices.Contains(out.Notes, note); isNoted != (i == 0) {
					t.Errorf("%s with %v: %q", c.format, more, out.Notes)
				}
			}
		}
	}
}
