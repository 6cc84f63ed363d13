package torchtitan

import (
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Degrees that torchtitan 0.2 does not have for a model are refused in its file, and in edits of it.
func TestDegreesThatAModelLacks(t *testing.T) {
	const pipeline, context = "pipeline_parallel_degree", "context_parallel_degree"
	for _, c := range []struct{ model, flavor, key, read, edit string }{
		{"qwen3", "0.6B", pipeline, "job.toml:5:28: parallelism.pipeline_parallel_degree is 2, and torchtitan 0.2 " +
			"has no pipelines for qwen3: set it to 1 [OutOfRange]",
			"plan: pp 2: torchtitan 0.2 has no pipelines for qwen3; type: --set plan.pp=1 [CannotExpress]"},
		{"gpt_oss", "20b", pipeline, "job.toml:5:28: parallelism.pipeline_parallel_degree is 2, and torchtitan 0.2 " +
			"has no pipelines for gpt_oss: set it to 1 [OutOfRange]",
			"plan: pp 2: torchtitan 0.2 has no pipelines for gpt_oss; type: --set plan.pp=1 [CannotExpress]"},
		{"gpt_oss", "20b", context, "job.toml:5:27: parallelism.context_parallel_degree is 2, and torchtitan 0.2 has " +
			"no context parallelism for gpt_oss: set it to 1 [OutOfRange]",
			"plan: cp 2: torchtitan 0.2 has no context parallelism for gpt_oss; type: --set plan.cp=1 [CannotExpress]"},
		{"qwen3", "0.6B", context, "", ""},
		{"llama3", "8B", pipeline, "", ""},
	} {
		text := "[model]\nname = \"" + c.model + "\"\nflavor = \"" + c.flavor + "\"\n[parallelism]\n"
		read := func(line string) (*interop.Import, error) {
			return Format.Import([]interop.File{{Name: "job.toml", Data: []byte(text + line)}},
				interop.Options{Devices: 8})
		}
		_, err := read(c.key + " = 2\n")
		if got := textOf(err); got != c.read {
			t.Errorf("%s: %s\nwant %s", c.model, got, c.read)
		}
		im, err := read("")
		if err != nil {
			t.Fatal(err)
		}
		plan := ir.Plan{PP: 1, CP: 1}
		if c.key == pipeline {
			plan.PP = 2
		} else {
			plan.CP = 2
		}
		if got := textOf(im.Refusals(&interop.Target{Plan: plan}).Err()); got != c.edit {
			t.Errorf("%s: %s\nwant %s", c.model, got, c.edit)
		}
	}
}

// A model of Qwen3 is exported to torchtitan 0.3 with a pipeline, and not to 0.2.
func TestPipelinesOfQwen3(t *testing.T) {
	target := &interop.Target{Plan: ir.Plan{DP: 4, TP: 1, PP: 2, CP: 1, EP: 1, ETP: 1, Schedule: "1f1b", Zero: 3,
		ZeroGroup: 4, Recompute: "none", StageLayers: "14,14"},
		Job: &spec.Job{Config: &spec.Config{Family: spec.Qwen3}}}
	const want = "plan: pp 2: torchtitan 0.2 has no pipelines for qwen3; type: --set plan.pp=1 [CannotExpress]"
	if got := textOf(Format.Refusals(target).Err()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if err := Function.Refusals(target).Err(); err != nil {
		t.Error(err)
	}
}

// textOf returns an error's text; "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
