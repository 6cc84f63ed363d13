package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/planner"
)

// files are several files that belong together, and the patch of them for zero 1, 4 micro-batches of 2, and no
// recomputation.
var together = []struct {
	format string
	files  []interop.File
	patch  string
}{
	{"accelerate", []interop.File{
		{Name: "acc.yaml", Data: []byte("distributed_type: DEEPSPEED\nnum_processes: 8\nnum_machines: 1\n" +
			"deepspeed_config:\n  deepspeed_config_file: ds.json\n")},
		{Name: "ds.json", Data: []byte("{\n  \"train_micro_batch_size_per_gpu\": 4,\n" +
			"  \"gradient_accumulation_steps\": 2,\n  \"bf16\": {\"enabled\": true},\n" +
			"  \"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}}\n}\n")},
	}, `--- ds.json
+++ ds.json
@@ -1,6 +1,6 @@
 {
-  "train_micro_batch_size_per_gpu": 4,
-  "gradient_accumulation_steps": 2,
+  "train_micro_batch_size_per_gpu": 2,
+  "gradient_accumulation_steps": 4,
   "bf16": {"enabled": true},
-  "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}
+  "zero_optimization": {"stage": 1, "offload_param": {"device": "none"}}
 }
`},
	{"hf", []interop.File{
		{Name: "ds.json", Data: []byte("{\n  \"train_batch_size\": \"auto\",\n" +
			"  \"train_micro_batch_size_per_gpu\": \"auto\",\n" +
			"  \"gradient_accumulation_steps\": \"auto\",\n  \"bf16\": {\"enabled\": true},\n" +
			"  \"zero_optimization\": {\"stage\": 3}\n}\n")},
		{Name: "args.yaml", Data: []byte("per_device_train_batch_size: 4  # ours\ngradient_accumulation_steps: 2\n" +
			"bf16: true\ngradient_checkpointing: true\n")},
	}, `--- args.yaml
+++ args.yaml
@@ -1,4 +1,4 @@
-per_device_train_batch_size: 4  # ours
-gradient_accumulation_steps: 2
+per_device_train_batch_size: 2  # ours
+gradient_accumulation_steps: 4
 bf16: true
-gradient_checkpointing: true
+gradient_checkpointing: false
--- ds.json
+++ ds.json
@@ -3,5 +3,5 @@
   "train_micro_batch_size_per_gpu": "auto",
   "gradient_accumulation_steps": "auto",
   "bf16": {"enabled": true},
-  "zero_optimization": {"stage": 3}
+  "zero_optimization": {"stage": 1}
 }
`},
	{"hf", []interop.File{
		{Name: "args.yaml", Data: []byte("per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n" +
			"bf16: true\ndeepspeed: ds.json\n")},
		{Name: "ds.json", Data: []byte("{\n  \"train_micro_batch_size_per_gpu\": 4,\n" +
			"  \"gradient_accumulation_steps\": \"auto\",\n  \"bf16\": {\"enabled\": true},\n" +
			"  \"zero_optimization\": {\"stage\": 3}\n}\n")},
	}, `--- args.yaml
+++ args.yaml
@@ -1,4 +1,4 @@
-per_device_train_batch_size: 4
-gradient_accumulation_steps: 2
+per_device_train_batch_size: 2
+gradient_accumulation_steps: 4
 bf16: true
 deepspeed: ds.json
--- ds.json
+++ ds.json
@@ -1,6 +1,6 @@
 {
-  "train_micro_batch_size_per_gpu": 4,
+  "train_micro_batch_size_per_gpu": 2,
   "gradient_accumulation_steps": "auto",
   "bf16": {"enabled": true},
-  "zero_optimization": {"stage": 3}
+  "zero_optimization": {"stage": 1}
 }
`},
}

// A patch changes each key in the file that holds it.
func TestPatchesOfSeveralFiles(t *testing.T) {
	for _, c := range together {
		s, err := ReadFor(c.files, c.format, interop.Options{Devices: 8, DevicesPerNode: 8}, noFiles,
			overrides("cluster=dgx-h100"))
		if err != nil {
			t.Fatal(err)
		}
		q, err := s.Question(noFiles, overrides("cluster=dgx-h100", "model=gpt2-124m", "train.seq_len=1024")...)
		if err != nil {
			t.Fatal(err)
		}
		check, err := planner.NewCheck(q)
		if err != nil {
			t.Fatal(err)
		}
		to := check.From()
		to.Zero, to.MicroBatch, to.MicroBatches, to.Recompute, to.RecomputeLayers = 1, 2, 4, "none", 0
		patch, note, _ := s.diffOf(q, check.From(), to)
		if diff := cmp.Diff(c.patch, patch); diff != "" || note != "" {
			t.Errorf("%s: %s\n%s", c.format, note, diff)
		}
		exported, err := Export(s.Format, q, to, c.files, s.options)
		if err != nil {
			t.Fatal(err)
		}
		if string(exported.Text) != c.patch {
			t.Errorf("%s: an export gives another patch:\n%s", c.format, exported.Text)
		}
	}
}
