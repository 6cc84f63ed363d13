package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/tensors"
)

// line is a line of metrics.jsonl.
type line struct {
	T, Loss, LR         *float64
	Step, Attempt       int
	Event, Detail       string
	GradNorm            *float64 `json:"grad_norm"`
	ValidLoss           *float64 `json:"valid_loss"`
	Tokens, MemoryBytes int64
	Skipped             int
}

func lines(t *testing.T, dir string) (steps, others []line) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, report.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if l.Event == "" && l.ValidLoss == nil {
			steps = append(steps, l)
		} else {
			others = append(others, l)
		}
	}
	return steps, others
}

// losses are those of all steps, NaN for null.
func losses(t *testing.T, dir string) []float64 {
	steps, _ := lines(t, dir)
	out := make([]float64, len(steps))
	for i, s := range steps {
		out[i] = math.NaN()
		if s.Loss != nil {
			out[i] = *s.Loss
		}
		if s.Step != i+1 {
			t.Errorf("line %d is of step %d", i+1, s.Step)
		}
	}
	return out
}

// weights are the bytes of a checkpoint's tensors.
func weights(t *testing.T, checkpoint string) []byte {
	t.Helper()
	var all []byte
	for _, name := range []string{tensors.ModelFile, tensors.OptimizerFile} {
		b, err := os.ReadFile(filepath.Join(checkpoint, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryPlanTrainsTheSame(t *testing.T) {
	serial := t.TempDir()
	res, err := train(t, bigram[float64](1, 0), serial)
	must(t, err)
	if res.Steps != 12 || !(res.Loss < res.FirstLoss-0.2) || math.IsNaN(res.ValidLoss) {
		t.Errorf("it did not learn: %+v", res)
	}
	want := losses(t, serial)
	for name, p := range map[string]*rank.Program{
		"dp 2": bigram[float64](2, 0), "dp 2 zero 1": bigram[float64](2, 1), "dp 4 zero 1": bigram[float64](4, 1),
		"hybrid": hybrid[float64](),
	} {
		dir := t.TempDir()
		got, err := train(t, p, dir)
		must(t, err)
		for i, l := range losses(t, dir) {
			if math.Abs(l-want[i]) > 1e-12*want[i] {
				t.Errorf("%s step %d: loss %v, want %v", name, i+1, l, want[i])
			}
		}
		if math.Abs(got.ValidLoss-res.ValidLoss) > 1e-12 || math.Abs(got.GradNorm-res.GradNorm) > 1e-12 {
			t.Errorf("%s: validation %v norm %v, want %v %v", name, got.ValidLoss, got.GradNorm, res.ValidLoss,
				res.GradNorm)
		}
	}
}

func TestSameBitsTwice(t *testing.T) {
	a, err := train(t, bigram[float32](2, 1), t.TempDir())
	must(t, err)
	b, err := train(t, bigram[float32](2, 1), t.TempDir())
	must(t, err)
	if !bytes.Equal(weights(t, a.Checkpoint), weights(t, b.Checkpoint)) {
		t.Error("two runs differ")
	}
}

// A run that is stopped after step 5 and continued, on the same or on another plan, ends as one that was not.
func TestResumeIsExact(t *testing.T) {
	whole, err := train(t, bigram[float64](2, 1), t.TempDir())
	must(t, err)
	for name, rest := range map[string]*rank.Program{"same plan": bigram[float64](2, 1),
		"other plan": bigram[float64](4, 0), "hybrid": hybrid[float64]()} {
		dir := t.TempDir()
		_, err := train(t, bigram[float64](2, 1), dir, OnStep(func(s report.Step) error {
			if s.Step == 5 {
				return driver.ErrStop
			}
			return nil
		}))
		var coded *exit.Error
		if !errors.As(err, &coded) || coded.Code != exit.OnRequest {
			t.Fatalf("stopping gave %v", err)
		}
		got, err := train(t, rest, dir)
		must(t, err)
		if got.FirstStep != 6 || got.Steps != 12 || got.Tokens != whole.Tokens {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "same plan" && !bytes.Equal(weights(t, got.Checkpoint), weights(t, whole.Checkpoint)) {
			t.Error("the continued run ended elsewhere")
		}
		if math.Abs(got.Loss-whole.Loss) > 1e-12 {
			t.Errorf("%s: loss %v, want %v", name, got.Loss, whole.Loss)
		}
		steps, others := lines(t, dir)
		if len(steps) != 12 || steps[11].Attempt != 2 || steps[0].Attempt != 1 {
			t.Errorf("%s: %d steps, attempts %d to %d", name, len(steps), steps[0].Attempt, steps[11].Attempt)
		}
		var events []string
		for _, o := range others {
			events = append(events, o.Event)
		}
		if got := strings.Join(events, " "); got != "start checkpoint stop resume  checkpoint" {
			t.Errorf("%s: events %q", name, got)
		}
	}
}

// A process that dies without warning loses only what came after its last checkpoint.
func TestResumeAfterFailure(t *testing.T) {
	whole, err := train(t, bigram[float32](2, 1), t.TempDir())
	must(t, err)
	dir := t.TempDir()
	crash := errors.New("pulled the plug")
	_, err = train(t, bigram[float32](2, 1), dir, Set("train.checkpoint.every", 3), OnStep(func(s report.Step) error {
		if s.Step == 8 {
			return crash
		}
		return nil
	}))
	var coded *exit.Error
	if !errors.Is(err, crash) || !errors.As(err, &coded) || coded.Code != exit.Failed {
		t.Fatalf("crash gave %v", err)
	}
	got, err := train(t, bigram[float32](2, 1), dir)
	must(t, err)
	if got.FirstStep != 7 || !bytes.Equal(weights(t, got.Checkpoint), weights(t, whole.Checkpoint)) {
		t.Errorf("continued at step %d", got.FirstStep)
	}
	earlier, err := train(t, bigram[float32](2, 1), dir, Resume("3"), Set("train.steps", 6))
	if err != nil || earlier.FirstStep != 4 || earlier.Steps != 6 {
		t.Errorf("resume at 3: %+v, %v", earlier, err)
	}
	if next, err := train(t, bigram[float32](2, 1), dir); err != nil || next.FirstStep != 7 {
		t.Errorf("after a resume at 3 the old steps came back: %+v, %v", next, err)
	}
	if over, err := train(t, bigram[float32](2, 1), dir, Resume("never")); err != nil || over.FirstStep != 1 {
		t.Errorf("resume never: %+v, %v", over, err)
	}
}

func TestDamagedCheckpointsAreNotIgnored(t *testing.T) {
	dir := t.TempDir()
	res, err := train(t, bigram[float32](1, 0), dir)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(res.Checkpoint, tensors.ModelFile), []byte("nonsense"), 0o666))
	_, err = train(t, bigram[float32](1, 0), dir)
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != exit.Input ||
		!strings.Contains(err.Error(), "use --resume never to start over") {
		t.Errorf("error %v", err)
	}
}

func TestContextStopsAfterTheStep(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	res, err := Run(ctx, bigram[float32](2, 0), Dir(dir), Data(drawn{40, 0}), Logger(slog.New(slog.DiscardHandler)),
		OnStep(func(s report.Step) error {
			if s.Step == 4 {
				cancel()
			}
			return nil
		}))
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != exit.OnRequest || res.Steps != 4 {
		t.Fatalf("%v, %+v", err, res)
	}
	if want := "stopped on request after step 4 of 12; to continue, resume from checkpoint " +
		filepath.Join(dir, "checkpoints", "step-00000004"); err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
}

func TestFailureOfARankEndsTheRun(t *testing.T) {
	p := bigram[float32](4, 1)
	step := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
		if r.ID == 2 && r.StepID == 3 {
			var none []int
			none[0]++
		}
		step(r, b)
	}
	_, err := train(t, p, t.TempDir()) // were it not to end the run, the others would wait for ever
	if err == nil || !strings.Contains(err.Error(), "rank 2: runtime error: index out of range") {
		t.Error(err)
	}
}

func TestNonfinite(t *testing.T) {
	poisoned := func() *rank.Program {
		p := bigram[float32](2, 1)
		step := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
			if r.ID == 1 && r.StepID == 3 {
				r.LossSum = math.NaN()
			}
			step(r, b)
		}
		return p
	}
	dir := t.TempDir()
	res, err := train(t, poisoned(), dir)
	must(t, err)
	steps, others := lines(t, dir)
	if res.Skipped != 1 || steps[2].Loss != nil || steps[11].Skipped != 1 || others[1].Event != "skip" ||
		others[1].Step != 3 {
		t.Errorf("%+v %+v", res, others)
	}
	if last, err := train(t, poisoned(), t.TempDir(), Set("train.steps", 3)); err != nil || !last.HasSteps() ||
		!math.IsNaN(last.Loss) {
		t.Errorf("a last step that is not finite: %+v, %v", last, err)
	}
	_, err = train(t, poisoned(), dir, Resume("never"), Set("train.steps", 3), OnStep(func(s report.Step) error {
		if s.Step == 2 {
			return driver.ErrStop
		}
		return nil
	}))
	wantExit(t, err, exit.OnRequest)
	if first, err := train(t, poisoned(), dir, Set("train.steps", 4)); err != nil || !math.IsNaN(first.FirstLoss) ||
		first.FirstStep != 3 {
		t.Errorf("a first step that is not finite: %+v, %v", first, err)
	}
	_, err = train(t, poisoned(), t.TempDir(), Set("train.on_nonfinite", "stop"))
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != exit.Nonfinite {
		t.Errorf("stop gave %v", err)
	}
}

// Skipping ends: parameters that are lost stay lost. The checkpoint of before is kept, and is where a run goes on.
func TestSkippingEnds(t *testing.T) {
	poison := func(from, to int) *rank.Program {
		p := bigram[float32](2, 1)
		step := p.Segments[0].Forward
		p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
			if r.ID == 1 && from <= r.StepID && r.StepID <= to {
				r.LossSum = math.NaN()
			}
			step(r, b)
		}
		return p
	}
	poisoned := func(from, to int, more ...Option) (report.Result, string, error) {
		dir := t.TempDir()
		res, err := train(t, poison(from, to), dir, append(more, Set("train.steps", 30),
			Set("train.checkpoint.every", 2))...)
		return res, dir, err
	}
	if res, _, err := poisoned(3, 11); err != nil || res.Skipped != 9 || res.Steps != 30 {
		t.Errorf("nine in a row: %+v, %v", res, err)
	}
	_, dir, err := poisoned(3, 30)
	wantExit(t, err, exit.Nonfinite)
	want := "steps 3 to 12 are not finite (the last: loss NaN, gradient norm "
	rest := "): 10 in a row, and a skipped step changes no parameter, so further steps would be the same. " +
		"Lower train.optimizer.lr (0.05), or raise train.schedule.warmup (3); resume from a checkpoint of step 1 or " +
		"before (--resume STEP), or start over (--resume never)"
	if !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), rest) {
		t.Errorf("error %q", err)
	}
	if _, others := lines(t, dir); others[len(others)-1].Event != "stop" || others[len(others)-1].Step != 12 {
		t.Errorf("last line %+v", others[len(others)-1])
	}
	// goes on from step 10, whose parameters are those of step 2
	_, err = train(t, poison(3, 40), dir, Set("train.steps", 40))
	if err == nil || !strings.HasPrefix(err.Error(), "steps 11 to 20 are not finite") ||
		!strings.Contains(err.Error(), "; resume from a checkpoint of step 1 or before (") {
		t.Errorf("a run that goes on: %v", err)
	}
	if res, err := train(t, bigram[float32](2, 1), dir, Resume("2"), Set("train.steps", 4)); err != nil ||
		res.FirstStep != 3 || res.Skipped != 0 {
		t.Errorf("the checkpoint of step 2: %+v, %v", res, err)
	}
	_, _, err = poisoned(1, 30, Set("train.precision.loss_scale", 8))
	if err == nil || !strings.HasSuffix(err.Error(),
		"the same. Lower train.precision.loss_scale (8), or train.optimizer.lr (0.05); start over (--resume never)") {
		t.Errorf("a static scale: %v", err)
	}
	// free, then 2^16 to 2: all above the least
	res, _, err := poisoned(1, 16, Set("train.precision.loss_scale", "dynamic"))
	if err != nil || res.Skipped != 16 {
		t.Errorf("a scale that finds its place: %+v, %v", res, err)
	}
	_, _, err = poisoned(1, 30, Set("train.precision.loss_scale", "dynamic"))
	if err == nil || !strings.HasPrefix(err.Error(), "steps 18 to 27 are not finite") ||
		!strings.HasSuffix(err.Error(), "; start over (--resume never)") {
		t.Errorf("a scale at its least: %v", err)
	}
}

func TestEpochs(t *testing.T) {
	dir := t.TempDir()
	res, err := train(t, bigram[float64](2, 0), dir, Data(drawn{20, 0}), Set("train.epochs", 1))
	must(t, err)
	if res.Steps != 3 {
		t.Errorf("%d steps for 20 samples in batches of 8", res.Steps)
	}
	want := 0
	buf := make([]int32, 6)
	for g := range int64(20) {
		n, _ := drawn{20, 0}.Train(g, buf, buf)
		want += n
	}
	if res.Tokens != int64(want) {
		t.Errorf("%d tokens in an epoch, want %d: each sample once", res.Tokens, want)
	}
}

func TestSampleAndFirstLines(t *testing.T) {
	var out bytes.Buffer
	p := bigram[float32](2, 1)
	p.Predict = Predict{StepSeconds: 0.25, TokensPerSecond: 192, MemoryBytes: 3 << 20}
	res, err := train(t, p, t.TempDir(), text(&out, false), Set("train.eval.sample", "\x01\x02"))
	must(t, err)
	if len(res.Sample) != 162 {
		t.Errorf("sampled %d bytes", len(res.Sample))
	}
	want := "bigram: dp test · 2 ranks on this CPU\n" +
		"program 0123456789ab · 132 params\n        predicted 250.0 ms a step, 192 tokens/s, 3.0 MiB a rank\n" +
		"start: step 0 of 12, from random parameters, seed 5\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("first lines are\n%s\nwant\n%s", out.String(), want)
	}
}

type broken struct{ drawn }

func (broken) Train(int64, []int32, []int32) (int, error) { panic("no more data") }

func TestPanicOfASourceIsAnError(t *testing.T) {
	_, err := train(t, bigram[float32](2, 0), t.TempDir(), Data(broken{}))
	if err == nil || !strings.HasPrefix(err.Error(), "reading samples from 0 on: no more data") {
		t.Errorf("error %v", err)
	}
}

func TestArenasThatDoNotFitAreRefused(t *testing.T) {
	p := bigram[float32](1, 0)
	p.Stages[0].Arena.Size = 1 << 60
	_, err := train(t, p, t.TempDir())
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != exit.Cannot || !strings.HasPrefix(err.Error(),
		"not enough memory: 1 × ") {
		t.Errorf("error %v", err)
	}
}

func TestArenaIsExact(t *testing.T) {
	p := bigram[float32](4, 1)
	world := comm.NewWorld(p.CommMesh(), 0)
	for id := range 4 {
		r, err := rank.New(p, world, id)
		must(t, err)
		if len(r.Arena) != r.Stage.Arena.Size || cap(r.Arena) != len(r.Arena) {
			t.Errorf("arena of %d bytes, capacity %d, want %d", len(r.Arena), cap(r.Arena), r.Stage.Arena.Size)
		}
	}
}
func TestTwoLengthsAreRefused(t *testing.T) {
	_, err := train(t, bigram[float32](1, 0), t.TempDir(), Set("train.steps", 3), Set("train.tokens", "1K"))
	wantExit(t, err, exit.Input, "train.steps and train.tokens are both given")
	res, err := train(t, bigram[float32](1, 0), t.TempDir(), Set("train.steps", 3), Set("train.steps", 2))
	if err != nil || res.Steps != 2 {
		t.Errorf("the last of two steps: %+v, %v", res, err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for path, want := range map[string]string{
		"train.steps=0": "there is nothing to train: train.steps, train.epochs and train.tokens are 0; " +
			"set one of them, such as --steps 100",
		"train.schedule.kind=step": `train.schedule.kind is "step"; it must be constant, linear, cosine, wsd or ` +
			`inverse_sqrt`,
		"train.on_nonfinite=ignore": `train.on_nonfinite is "ignore"; it must be skip or stop`,
		"train.optimizer.lr=-1":     "train.optimizer.lr is -1; it must be above 0 and at most 3.4e+38",
	} {
		path, value, _ := strings.Cut(path, "=")
		_, err := train(t, bigram[float32](1, 0), t.TempDir(), Set(path, value))
		var coded *exit.Error
		if !errors.As(err, &coded) || coded.Code != exit.Input || err.Error() != want {
			t.Errorf("%s=%s: %v, want %s", path, value, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	p := bigram[float64](2, 1)
	p.Stages[0].Buckets[0].Elems = 95
	if err := p.Validate(); err == nil ||
		err.Error() != "runtime: the program is wrong: bucket 0 has 95 elements, which 2 shards do not divide" {
		t.Errorf("error %v", err)
	}
}

// A run whose arenas need more memory than there is ends before it allocates them.
func TestNotEnoughMemory(t *testing.T) {
	p := bigram[float32](2, 0)
	p.Stages[0].Arena.Size = 1 << 58
	_, err := train(t, p, t.TempDir())
	wantExit(t, err, exit.Cannot, "not enough memory: 2 × 262144.0 TiB for the ranks' arenas, ", " free within ")
	if !strings.HasSuffix(err.Error(), " short; compile for fewer ranks, a smaller micro_batch or with recompute") {
		t.Error(err)
	}
}
