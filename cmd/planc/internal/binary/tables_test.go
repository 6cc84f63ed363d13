package binary

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime"
)

const fullJob = `
model: gpt2-124m
data: {root: "${DATA}", train: [{path: a, weight: 2}, b], valid: [c]}
train:
  seq_len: 64
  global_batch: 8
  steps: 7
  optimizer: {kind: adam, lr: 0.5, betas: [0.25, 0.75], eps: 0.125, weight_decay: 0.0625, clip_norm: 2}
  schedule: {kind: wsd, warmup: 3, min_lr: 0.01, decay: 4}
  seed: 11
  eval: {every: 5, batches: 6, sample: "The"}
  early_stop: {metric: valid_loss, patience: 4, min_delta: 0.5}
  checkpoint: {every: 9, keep_last: 2, keep_every: 18, best: valid_loss, top_k: 3}
  on_nonfinite: stop
  on_spike: rollback
cluster: 2xcpu
`

// Every run-time field of a job reaches the binary.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "full.yaml")
	if err := os.WriteFile(file, []byte(fullJob), 0o666); err != nil {
		t.Fatal(err)
	}
	j, err := spec.Load(file, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.Settings{ // no Dir: ${DATA} says where the files are
		Data: runtime.DataSettings{Root: "${DATA}", Train: []runtime.File{{Path: "a", Weight: 2},
			{Path: "b", Weight: 1}},
			Valid: []runtime.File{{Path: "c", Weight: 1}}, Tokenizer: "bytes"},
		Train: runtime.TrainSettings{Steps: 7, Init: "random", Seed: 11, OnNonfinite: "stop", OnSpike: "rollback",
			Optimizer: runtime.OptimizerSettings{LR: 0.5, Betas: [2]float64{0.25, 0.75}, Eps: 0.125,
				WeightDecay: 0.0625, ClipNorm: 2},
			Schedule:  runtime.ScheduleSettings{Kind: "wsd", Warmup: 3, MinLR: 0.01, Decay: 4},
			Eval:      runtime.EvalSettings{Every: 5, Batches: 6, Sample: "The"},
			EarlyStop: runtime.EarlyStopSettings{Metric: "valid_loss", Patience: 4, MinDelta: 0.5},
			Checkpoint: runtime.CheckpointSettings{Every: 9, Async: true, KeepLast: 2, KeepEvery: 18,
				Best: "valid_loss", TopK: 3}},
	}
	l := &planner.Question{Job: j}
	if diff := cmp.Diff(want, SettingsOf(l, DataFolder(l))); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	j.Data.Root = "here"
	if got := SettingsOf(l, DataFolder(l)).Dir; got != dir {
		t.Errorf("Dir of relative files is %q, want %q", got, dir)
	}
}

// tinyJob is the job of a cluster, with further lines.
func tinyJob(t *testing.T, cluster string, sets ...string) *planner.Question {
	t.Helper()
	overrides := []spec.Override{spec.SetFlag("cluster=" + cluster)}
	for _, s := range sets {
		overrides = append(overrides, spec.SetFlag(s))
	}
	text := "model: {model_type: gpt2, vocab_size: 256, n_positions: 64, n_embd: 32, n_layer: 2, n_head: 4}\n" +
		"train: {seq_len: 32, global_batch: 8, precision: f32}\n"
	q, err := planner.Load("tiny.yaml", func(string) ([]byte, error) { return []byte(text), nil }, overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A binary expects of its steps what this CPU can do, not what the job's cluster could.
func TestExpectedOnCPU(t *testing.T) {
	away, here := tinyJob(t, "1xdgx-h100"), tinyJob(t, "8xcpu")
	found, err := search.Search(away.Problem())
	if err != nil {
		t.Fatal(err)
	}
	price, err := search.Price(here.Problem(), found.Best.Plan)
	if err != nil {
		t.Fatal(err)
	}
	want := lock.ExpectOf(here, search.Priced{Plan: found.Best.Plan, Predict: price})
	got := lock.ExpectOf(away, found.Best)
	if got != want || got.PeakFlops == 0 || got.StepS <= found.Best.Predict.StepS || got.MemoryBytes == 0 {
		t.Errorf("a plan for H100 is expected to run as %+v on this CPU, want %+v", got, want)
	}
	lost := found.Best
	lost.Plan.TP = 3
	if got := lock.ExpectOf(away, lost); got != (lock.Expect{}) {
		t.Errorf("a plan without a price is expected to run as %+v", got)
	}
}

// The model's hash is that of what is trained: neither the plan, nor the batch, nor its length, nor dropout, nor its
// name changes it.
func TestModelHash(t *testing.T) {
	want := modelHash(tinyJob(t, "1xcpu"))
	for _, c := range []struct {
		set  string
		same bool
	}{
		{"train.dropout=0.5", true}, {"train.global_batch=16", true}, {"plan.tp=2", true}, {"name=other", true},
		{"train.seq_len=32", true}, {"model.n_layer=3", false}, {"model.vocab_size=257", false},
		{"train.precision=f64", true}, {"train.precision=bf16", true},
	} {
		if got := modelHash(tinyJob(t, "4xcpu", c.set)); len(got) != 16 || (got == want) != c.same {
			t.Errorf("%s: hash %s, was %s", c.set, got, want)
		}
	}
}
