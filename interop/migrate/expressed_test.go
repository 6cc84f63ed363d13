package migrate

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// planFormats are the names of the formats of trainers that planc writes.
var planFormats = []string{"megatron", "deepspeed", "accelerate", "hf", "torchtitan", "torchtitan:0.3", "lightning",
	"bridge", "swift"}

// commonJobs are jobs that many users have.
var commonJobs = [][]string{
	{"model=llama3-8b", "cluster.node=dgx-h100", "train.global_batch=128", "train.seq_len=8192"},
	{"model=llama3-70b", "cluster.node=dgx-h100", "cluster.nodes=8", "train.global_batch=512", "train.seq_len=8192"},
	{"model=gpt2-1558m", "cluster.node=dgx-h100", "cluster.nodes=2", "train.global_batch=256", "train.seq_len=1024"},
}

// questionOf is a common job under an engine, with further overrides.
func questionOf(t *testing.T, job []string, engine string, more ...string) *planner.Question {
	t.Helper()
	sets := append([]string{"train.engine=" + engine, "objective.prefer=fastest"}, job...)
	q, err := planner.Load("", noFiles, overrides(append(sets, more...)...)...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// engines returns the engines whose plans files of a format say.
func engines(f *interop.Format) []string { return append([]string{f.Engine}, f.Engines...) }

// The best plan that a format can express is written, under each engine whose plans it says, unless only the model is
// refused. The model of 70 billion parameters is only part of the long run.
func TestBestPlansAreWritten(t *testing.T) {
	long := isLong(t)
	for _, name := range planFormats {
		f := formats.Find(name)
		for _, engine := range engines(f) {
			for _, job := range commonJobs {
				if !long && job[0] == "model=llama3-70b" {
					continue
				}
				q := questionOf(t, job, engine)
				plan, err := Best(f, q, decide(t, q), nil, interop.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if diags := f.Refusals(target(q, plan)); len(diags) > 0 {
					if _, _, ok := fastest(t, q, expressedBy(f, q)); !ok {
						continue // no plan that the format can express fits
					}
					t.Errorf("%s, %s, %s: %v: %v", f.Name, engine, job[0], plan, diags)
				}
				_, err = Export(f, q, plan, nil, interop.Options{})
				isOtherModel := f.Engine == "fsdp" && job[0] == "model=gpt2-1558m" // torchtitan has no GPT-2
				if err != nil && !isOtherModel {
					t.Errorf("%s, %s, %s: %v", f.Name, engine, job[0], err)
				}
			}
		}
	}
}

// A file that planc exports is read back as a plan that fits, in no more memory than the search counted.
func TestExportedFilesFit(t *testing.T) {
	for _, model := range []string{"llama3-8b", "llama3.2-1b"} { // FSDP and DDP
		job := []string{"model=" + model, "cluster.node=dgx-h100", "train.global_batch=64", "train.seq_len=4096"}
		for _, name := range []string{"hf", "accelerate"} {
			f := formats.Find(name)
			q := questionOf(t, job, f.Engine)
			best, err := planner.BestOf(q, expressedBy(f, q))
			if err != nil || best.Plan == nil {
				t.Fatal(err)
			}
			plan := best.Plan.Plan
			out, err := Export(f, q, plan, nil, interop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read([]interop.File{{Name: "export" + f.Ext, Data: out.Text}}, name, interop.Options{Devices: 8})
			if err != nil {
				t.Fatal(err)
			}
			file, err := s.Question(noFiles, overrides(append(job, "objective.prefer=fastest")...)...)
			if err != nil {
				t.Fatal(err)
			}
			d, err := planner.Decide(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if d.NoPlan != nil {
				t.Errorf("%s, %s: %v does not fit", name, model, plan)
				continue
			}
			counted, needed := best.Predict.MemoryBytes.Total, d.Best.Predict.MemoryBytes.Total
			if needed > counted {
				t.Errorf("%s, %s: %v needs %v, and the search counted %v", name, model, plan, needed, counted)
			}
		}
	}
}

// fastest returns the fastest plan of a question and whether one fits.
func fastest(t *testing.T, q *planner.Question, expresses func(*ir.Plan) bool) (ir.Plan, costmodel.Seconds, bool) {
	t.Helper()
	best, err := planner.BestOf(q, expresses)
	if err != nil {
		t.Fatal(err)
	}
	if best.Plan == nil {
		return ir.Plan{}, 0, false
	}
	return best.Plan.Plan, best.Predict.StepS, true
}

// No plan with a given value of zero, which recomputes all blocks or none, is expressed and faster than the best.
func TestNoExpressedPlanIsFaster(t *testing.T) {
	job := commonJobs[2]
	compared := 0
	for _, name := range planFormats {
		f := formats.Find(name)
		for _, engine := range engines(f) {
			q := questionOf(t, job, engine)
			expresses := expressedBy(f, q)
			best, step, ok := fastest(t, q, expresses)
			if !ok || !expresses(&best) {
				t.Fatalf("%s, engine %s: the best plan is %v", f.Name, engine, best)
			}
			for _, zero := range []string{"0", "1", "2", "3"} {
				for _, recompute := range [][]string{{"plan.recompute=none"},
					{"plan.recompute=full", "plan.recompute_layers=48", "plan.recompute_every=1"}} {
					pinned := append([]string{"plan.zero=" + zero, "plan.pp=1", "plan.tp=1"}, recompute...)
					plan, took, fits := fastest(t, questionOf(t, job, engine, pinned...), nil)
					if !fits || !expresses(&plan) {
						continue
					}
					compared++
					if took < step {
						t.Errorf("%s, engine %s: %v takes %v, and the best one, %v, %v", f.Name, engine, plan,
							took, best, step)
					}
				}
			}
		}
	}
	if compared < 40 {
		t.Errorf("only %d plans were compared", compared)
	}
}

// A check's best plan is no slower than the edits that the file can express, nor than the file with another
// recomputation. Its message says that the engine can run a faster plan.
func TestBestOfCheckIsTheFastestExpressed(t *testing.T) {
	const config = `compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
  fsdp_activation_checkpointing: true
`
	file := interop.File{Name: "a.yaml", Data: []byte(config)}
	sets := overrides(commonJobs[2]...)
	s, err := ReadFor([]interop.File{file}, "accelerate", interop.Options{}, noFiles, sets)
	if err != nil {
		t.Fatal(err)
	}
	q, err := s.Question(noFiles, append(sets, spec.SetFlag("plan.micro_batch=16"))...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReport(s, q)
	if err != nil {
		t.Fatal(err)
	}
	isNone := false
	for _, e := range r.Edits {
		if e.Fits && !e.IsRefused && e.Predict.StepS < r.Best.Predict.StepS {
			t.Errorf("%s takes %v, and the best plan %v", e.Message, e.Predict.StepS, r.Best.Predict.StepS)
		}
		isNone = isNone || e.Plan.Recompute == "none" && len(e.Keys) == 1 && e.Keys[0] == "recompute"
	}
	if !isNone || *r.SlowerBy < 0.1 {
		t.Errorf("%s, with edits %v", r.Message, r.Edits)
	}
	if p := r.Best.Plan; p.Recompute == "full" && p.RecomputeLayers < p.LargestChunk() || p.PP > 1 {
		t.Errorf("the file cannot express the best plan, %v", p)
	}
}
