package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
)

// An export like a file makes the same changes as the edit of a check.
func TestExportsLikeAFileChangeOnlyThePlan(t *testing.T) {
	count := 0
	for _, one := range shortFiles {
		r := reportOfShort(t, &one)
		to := r.Best.Plan.Plan
		diff, note, _ := r.Source.diffOf(r.Question, r.From(), to)
		if note != "" || slices.Contains(one.code, "micro_batch") {
			continue
		}
		count++
		out, err := Export(r.Source.Format, r.Question, to, one.files, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		patch := string(out.Text)
		if len(one.files) == 1 {
			patch = unified(one.files[0].Name, one.files[0].Data, out.Text)
		}
		if diff := cmp.Diff(diff, patch); diff != "" {
			t.Errorf("%s: %s", one.name, diff)
		}
	}
	if count < 10 {
		t.Errorf("only %d files", count)
	}
}

// An export like a file adds no defaults, leaves mappings without effect, and notes another model.
func TestExportLikeAFileOfAnotherModel(t *testing.T) {
	const config = `{
  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8,
  "bf16": {"enabled": true}, "fp16": {"enabled": false},
  "zero_optimization": {"stage": 3, "offload_optimizer": {}}
}
`
	for _, c := range []struct {
		format, file string
		edits, notes []string
	}{
		{"deepspeed", config, []string{`"stage": 3`, `"stage": 2`}, []string{}},
		{"bridge", bridgeConfig, []string{
			"tensor_model_parallel_size: 4", "tensor_model_parallel_size: 8",
			"pipeline_model_parallel_size: 2", "pipeline_model_parallel_size: 1",
			"  recompute_granularity: full\n  recompute_method: uniform\n  recompute_num_layers: 1\n",
			"  recompute_granularity: null\n  recompute_method: null\n  recompute_num_layers: null\n",
			"global_batch_size: 128", "global_batch_size: 64",
		}, []string{
			"set CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment (Megatron-LM needs it with tp or cp on GPUs before " +
				"Blackwell)",
			"file trains a model of 8.03 B parameters, and the job's llama3.2-1b has 1.24 B: the plan is that of the " +
				"job's model, and the file keeps its own",
			"file has sequences of 8192 tokens, and the job of 4096: the plan is that of the job, and the file keeps " +
				"its own",
		}},
	} {
		f := formats.Find(c.format)
		model, tp, zero := "llama3-8b", "1", "2"
		if c.format == "bridge" {
			model, tp, zero = "llama3.2-1b", "8", "0"
		}
		job := []string{"model=" + model, "cluster=8xh100", "train.global_batch=64", "train.seq_len=4096"}
		q := questionOf(t, job, f.Engine, "plan.zero="+zero, "plan.tp="+tp, "plan.pp=1",
			"plan.sp="+strconv.FormatBool(tp != "1"),
			"plan.micro_batch=1", "plan.recompute=none")
		out, err := Export(f, q, decide(t, q), []interop.File{{Name: "file", Data: []byte(c.file)}}, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.NewReplacer(c.edits...).Replace(c.file), string(out.Text)); diff != "" {
			t.Errorf("%s: %s", c.format, diff)
		}
		if diff := cmp.Diff(c.notes, append([]string{}, out.Notes...)); diff != "" {
			t.Errorf("%s: %s", c.format, diff)
		}
	}
}

// An export like a file notes all that the file cannot express.
func TestExportLikeAFileNotesAllThatItCannotExpress(t *testing.T) {
	const text = `trainer:
  devices: 8
  num_nodes: %d
  precision: bf16-mixed
  strategy:
    class_path: ModelParallelStrategy
    init_args: {tensor_parallel_size: 2, data_parallel_size: %d}
data: {init_args: {batch_size: 1}}
`
	const sp, recompute = "format lightning has no key that says sp: the model's code decides it",
		"format lightning has no key that says recompute full"
	f := formats.Find("lightning")
	job := []string{"model=llama3.2-1b", "cluster=8xh100", "train.global_batch=64", "train.seq_len=4096"}
	q := questionOf(t, job, f.Engine, "plan.zero=3", "plan.tp=2", "plan.sp=true", "plan.micro_batch=1",
		"plan.recompute=full", "plan.zero_group=4", "plan.recompute_layers=16")
	plan := decide(t, q)
	for _, c := range []struct {
		nodes, dp int
		want      []string
	}{
		{1, 4, []string{sp, recompute}},
	} {
		like := []interop.File{{Name: "cli.yaml", Data: fmt.Appendf(nil, text, c.nodes, c.dp)}}
		out, err := Export(f, q, plan, like, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, out.Notes); diff != "" {
			t.Errorf("%d nodes: %s", c.nodes, diff)
		}
	}
}

// All keys of the plan are set in a file whose own plan cannot run on the job's GPUs, and a note says why.
func TestExportLikeAFileWithoutAPlanForTheJob(t *testing.T) {
	f := formats.Find("megatron")
	q := questionOf(t, []string{"model=llama3-8b", "cluster=dgx-a100", "train.global_batch=64", "train.seq_len=4096"},
		f.Engine, "plan.tp=4", "plan.micro_batch=2")
	like := []interop.File{{Name: "run.sh", Data: []byte(strings.Replace(oneReplica, "--bf16", "--bf16 --fp8-format "+
		"hybrid", 1) + "\n")}}
	out, err := Export(f, q, decide(t, q), like, interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const note = "run.sh has no plan for the job, so all keys of the plan are set: A100-SXM-80GB does not compute in " +
		"fp8; its peak_tflops are those of bf16, f32, f64, fp16, int8, tf32"
	if !slices.Contains(out.Notes, note) {
		t.Errorf("%q\nwant %s", out.Notes, note)
	}
	for _, option := range []string{"--tensor-model-parallel-size 4", "--micro-batch-size 2"} {
		if !strings.Contains(string(out.Text), option) {
			t.Errorf("no %s in %s", option, out.Text)
		}
	}
}
