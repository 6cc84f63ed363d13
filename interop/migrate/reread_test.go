package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/planner"
)

// editedFiles returns files of a check, edited to a plan; note says why they cannot be edited.
func editedFiles(r *Report, files []interop.File, to ir.Plan) (out []interop.File, note string) {
	doc, note := r.Source.edited(r.Question, r.From(), to)
	if note != "" {
		return nil, note
	}
	parts, ok := doc.(interop.Parts)
	if !ok {
		parts = interop.Parts{{Name: r.Source.Main(), Doc: doc}}
	}
	out = append(out, files...)
	for _, part := range parts {
		for i := range out {
			if out[i].Name == part.Name {
				out[i].Data = part.Doc.Bytes()
			}
		}
	}
	return out, ""
}

// onH100 returns overrides of a cluster of H100.
func onH100(sets []string) []spec.Override {
	return overrides(append([]string{"cluster.node=dgx-h100"}, sets...)...)
}

// sayPlan reports an error unless edited files say a plan with the batch of their check. If they say no micro-batch, it
// must be the fastest one. A prediction that is not nil must be that of the edited files.
func sayPlan(t *testing.T, r *Report, one *shortFile, edited []interop.File, to ir.Plan, promise *costmodel.Predict) {
	t.Helper()
	sets := append(slices.Clone(one.sets), "objective.prefer=fastest")
	for _, key := range one.code {
		sets = append(sets, fmt.Sprintf("plan.%s=%v", key, to.JSON()[key]))
	}
	_, q := questionOfFiles(t, edited, noFiles, onH100(sets))
	report, err := planner.BestOf(q, nil)
	if err != nil {
		t.Fatal(err)
	}
	batch := r.Question.Train.GlobalBatch
	if report.Plan == nil || report.Plan.Plan != to || q.Train.GlobalBatch != batch {
		t.Errorf("the plan is %v with batch %d; the file says %v with batch %d %s:\n%s", to, batch, report.Plan,
			q.Train.GlobalBatch, report.Message, edited[0].Data)
		return
	}
	step, memory := report.Predict.StepS, report.Predict.MemoryBytes.Total
	if promise != nil && (step != promise.StepS || memory != promise.MemoryBytes.Total) {
		t.Errorf("%v: the edited file takes %v and %d bytes, and the edit promises %v and %d", to, step, memory,
			promise.StepS, promise.MemoryBytes.Total)
	}
}

// A file that is changed to the best plan of its check says exactly this plan, with the same global batch.
func TestEditedFilesSayTheBestPlan(t *testing.T) {
	for _, one := range shortFiles {
		t.Run(one.name, func(t *testing.T) {
			r := reportOfShort(t, &one)
			if r.Format != one.format || r.Best == nil || r.Best.Plan.Plan == r.From() {
				t.Fatalf("format %s, %s", r.Format, r.Message)
			}
			edited, note := editedFiles(r, one.files, r.Best.Plan.Plan)
			if note != "" {
				t.Fatalf("%v: %s", r.Best.Plan.Plan, note)
			}
			sayPlan(t, r, &one, edited, r.Best.Plan.Plan, &r.Best.Predict)
		})
	}
}

// A file with any edit that fits says exactly the edited plan, with the same global batch.
func TestEveryEditSaysItsPlan(t *testing.T) {
	for _, one := range shortFiles {
		t.Run(one.name, func(t *testing.T) {
			r := reportOfShort(t, &one)
			count := 0
			for i, e := range r.Edits {
				diff, _, _ := r.EditDiff(i)
				if diff == "" || !e.Fits {
					continue
				}
				count++
				edited, _ := editedFiles(r, one.files, e.Plan.Plan)
				sayPlan(t, r, &one, edited, e.Plan.Plan, &e.Predict)
			}
			if count == 0 {
				t.Error("no edit")
			}
		})
	}
}

// No edit of a file with stage 1 of DeepSpeed gives up the FP32 copy of the weights, as stage 0 in BF16 does.
func TestEditsKeepTheWeightsInFP32(t *testing.T) {
	for _, name := range []string{"Accelerate with stage 1 of DeepSpeed", "DeepSpeed with stage 1"} {
		one := fileNamed(name)
		r := reportOfShort(t, one)
		if r.Best.Plan.Plan.Zero == 0 {
			t.Errorf("%s: the best plan is %v", name, r.Best.Plan.Plan)
		}
		for i, e := range r.Edits {
			if diff, _, _ := r.EditDiff(i); e.Plan.Zero == 0 && diff != "" {
				t.Errorf("%s: %s has a diff:\n%s", name, e.Message, diff)
			}
		}
	}
}

// Edits of a plan with one replica shard over added replicas as the file says, and a plan that shards less removes the
// file's option.
func TestAddedReplicasShardAsTheFileSays(t *testing.T) {
	one := fileNamed("Megatron-LM with one replica")
	r := reportOfShort(t, one)
	count := 0
	for _, e := range r.Edits {
		if e.Plan.Replicas() > 1 && !slices.Contains(e.Keys, "zero") {
			count++
			if e.Plan.Zero != 1 {
				t.Errorf("%s: zero %d", e.Message, e.Plan.Zero)
			}
		}
	}
	if count < 3 {
		t.Errorf("only %d edits add replicas", count)
	}
	to := r.From()
	to.TP, to.DP, to.MicroBatches, to.Zero, to.ZeroGroup = 4, 2, 32, 0, 1
	edited, note := editedFiles(r, one.files, to)
	if note != "" {
		t.Fatal(note)
	}
	sayPlan(t, r, one, edited, to, nil)
}

// An edit that only the training code can make says so.
func TestRecomputationOfDeepSpeedIsTheCodes(t *testing.T) {
	one := fileNamed("DeepSpeed")
	r := reportOfShort(t, one)
	to := r.From()
	to.Recompute, to.RecomputeLayers, to.RecomputeEvery = "full", to.LargestChunk(), 1
	_, note, _ := r.Source.diffOf(r.Question, r.From(), to)
	if note != "format deepspeed has no key that says recompute full: the model's code switches recomputation on: "+
		"model.gradient_checkpointing_enable()" {
		t.Error(note)
	}
}

// A JSON file with a syntax error gets that error, and not one about its format.
func TestBrokenJSONIsASyntaxError(t *testing.T) {
	broken := strings.Replace(dsConfig, "2,", "2,,", 1)
	_, err := Read([]interop.File{{Name: "b.json", Data: []byte(broken)}}, "", interop.Options{})
	var diags ir.Diags
	if !errors.As(err, &diags) || diags[0].Code != strict.Syntax || diags[0].Pos.Line != 3 {
		t.Errorf("%v", err)
	}
}

// An empty file, and one that is not written in the syntax of its extension, get that error.
func TestBrokenFilesAreNotUnrecognized(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"e.sh", "", "e.sh:1:1: the file is empty [Empty]"},
		{"e.yaml", "\n", "e.yaml:1:1: the file is empty [Empty]"},
		{"e.toml", "", "e.toml:1:1: the file is empty [Empty]"},
		{"e.json", "", "e.json:1:1: the file is empty [Empty]"},
		{"tab.yaml", "bf16: true\nfsdp_config:\n\tversion: 1\n", "tab.yaml:3:1: there is a tab here: indent YAML " +
			"with spaces [Syntax]"},
		{"t.toml", "a = \n", "t.toml:1:5: this is not TOML: unexpected character U+000A at start of value " +
			"[Syntax]"},
	} {
		_, err := Read([]interop.File{{Name: c.name, Data: []byte(c.text)}}, "", interop.Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// Changes that the training code must make say so, and those that the file's format cannot express.
func TestWhyAFileIsNotEdited(t *testing.T) {
	for _, c := range []struct {
		file string
		to   func(p *ir.Plan)
		want string
	}{
		{"TrainingArguments with context parallelism", func(p *ir.Plan) { p.CPKind = "ring" },
			"plan.cp_kind: TrainingArguments cannot express it: cp_size gathers keys and values; use cp_kind gather " +
				"(`--set plan.cp_kind=gather`)"},
		{"Accelerate with FSDP 1", func(p *ir.Plan) { p.DP, p.TP, p.ZeroGroup = 8, 2, 8 },
			"plan.tp: FSDP 1 cannot express it: it has no parallelism_config; use tp 1 and cp 1, or change the file " +
				"to FSDP 2 (fsdp_version: 2)"},
		{"Accelerate with FSDP 1", func(p *ir.Plan) { p.ZeroGroup = 4 },
			"plan.zero_group: FSDP 1 cannot express it: it shards over all devices or over those of a node; use " +
				"zero_group 8 or 16, or change the file to FSDP 2 (fsdp_version: 2)"},
		{"Accelerate with stage 1 of DeepSpeed", func(p *ir.Plan) { p.DP, p.PP, p.ZeroGroup = p.DP/2, 2, p.DP/2 },
			"plan.pp: a configuration of Accelerate cannot express it: deepspeed_config has only ZeRO; use pp 1, or " +
				"export to deepspeed"},
		{"Accelerate with FSDP 1 on a node", func(p *ir.Plan) { p.ZeroGroup = 4 },
			"plan.zero_group: FSDP 1 cannot express it: it shards over all devices or over those of a node; use " +
				"zero_group 8, or change the file to FSDP 2 (fsdp_version: 2)"},
		{"TrainingArguments with FSDP 1", func(p *ir.Plan) { p.ZeroGroup = 4 },
			"plan.zero_group: FSDP 1 cannot express it: it shards over all devices or over those of a node; use " +
				"zero_group 8 or 16, or change the file to FSDP 2 (fsdp_config.version: 2)"},
		{"a ds_config.json that TrainingArguments fill", func(p *ir.Plan) {
			p.Recompute, p.RecomputeLayers, p.RecomputeEvery = "full", 1, 1
		}, "plan.recompute: TrainingArguments cannot express it: gradient_checkpointing recomputes every block; use " +
			"recompute full over all blocks, or none"},
		{"DeepSpeed with stages", func(p *ir.Plan) { p.DP, p.PP, p.ZeroGroup = 16, 1, 16 },
			"format deepspeed has no key that says pp 1: the model's code decides it"},
		{"Lightning with FSDP", func(p *ir.Plan) { p.DP, p.TP, p.ZeroGroup = 8, 2, 8 },
			"format lightning has no key that says recompute full in this plan: the model's code must recompute its " +
				"blocks"},
		{"Lightning with FSDP by name", func(p *ir.Plan) { p.DP, p.TP, p.SP, p.ZeroGroup = 8, 2, true, 8 },
			"format lightning has no key that says sp: the model's code decides it"},
		{"Lightning with tensor parallelism", func(p *ir.Plan) { p.Zero, p.ZeroGroup = 0, 1 },
			"plan: zero 0 with tp: the code for ModelParallelStrategy shards parameters with fully_shard; type: " +
				"--set plan.zero=3"},
		{"Lightning with DeepSpeed", func(p *ir.Plan) {
			p.Recompute, p.RecomputeLayers, p.RecomputeEvery = "full", 16, 1
		}, "format lightning has no key that says recompute full"},
	} {
		one := fileNamed(c.file)
		r := reportOfShort(t, one)
		to := r.From()
		c.to(&to)
		if _, note, _ := r.Source.diffOf(r.Question, r.From(), to); note != c.want {
			t.Errorf("%s: %q, want %q", c.file, note, c.want)
		}
	}
}
