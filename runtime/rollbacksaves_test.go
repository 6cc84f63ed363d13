package runtime

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/report"
)

// namesOf returns the names in a run's folder of checkpoints.
func namesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "checkpoints"))
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// rolledBack trains with a spike at step 30, after which training continues from step 20, and stops after n steps.
func rolledBack(t *testing.T, n int, options ...Option) (dir string) {
	t.Helper()
	dir = t.TempDir()
	taken := 0
	_, err := train(t, spiky(2, 1000), dir, append(options, text(new(bytes.Buffer), false), Set("train.steps", 60),
		Set("train.checkpoint.every", 20), Set("train.checkpoint.best", "valid_loss"),
		Set("train.on_spike", "rollback"), Data(damaged{drawn{800, 10}, 8 * 29, 0, 0}), OnStep(func(report.Step) error {
			taken++
			if taken == n {
				return driver.ErrStop
			}
			return nil
		}))...)
	if taken != n {
		t.Fatalf("%d steps: %v", taken, err)
	}
	return dir
}

// Checkpoints of the steps that a rollback takes back are set aside: they do not count as the newest ones.
func TestRollbackKeepsTheLastSave(t *testing.T) {
	dir := rolledBack(t, 31, Set("train.eval.every", 4), Set("train.checkpoint.keep_last", 1)) // 29 steps, then 20+2
	if names := namesOf(t, dir); !slices.Contains(names, "step-00000022") {
		t.Errorf("checkpoints %v", names)
	}
}

// A step that was saved before a rollback is saved again after it: its state is another one.
func TestRollbackSavesNewStates(t *testing.T) {
	dir := rolledBack(t, 37, Set("train.eval.every", 28)) // 29 steps, then 20+8
	c, err := ckpt.Find(filepath.Join(dir, "checkpoints"), 28)
	must(t, err)
	if want := int64(38 * 8); c.Manifest.Samples != want { // of 30 steps and of 8
		t.Errorf("step 28 has %d samples, want %d", c.Manifest.Samples, want)
	}
}

// If the checkpoint to which a run would roll back was not written, another one from before the spike takes its place.
func TestRollbackAfterFailedWrite(t *testing.T) {
	dir, left := t.TempDir(), 1
	save := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
		if m.Step >= 20 && left > 0 {
			left--
			return ckpt.Saved{}, errors.New("disk full")
		}
		return ckpt.Save(dir, m, contents)
	}
	var log bytes.Buffer
	_, err := train(t, spiky(2, 1000), dir, text(&log, false), Set("train.steps", 60),
		Set("train.checkpoint.every", 10), Set("train.on_spike", "rollback"),
		Data(damaged{drawn{800, 10}, 8 * 28, 0, 0}), async(save))
	if err != nil || left != 0 {
		t.Errorf("%v, %d failures left\n%s", err, left, log.String())
	}
}

// A stop during validation does not lose the best checkpoint: the resumed run keeps the same as the whole one.
func TestStopInValidationKeepsTheBest(t *testing.T) {
	job := []Option{Set("train.eval.every", 4), Set("train.checkpoint.best", "valid_loss"),
		Set("train.checkpoint.keep_last", 1), Set("train.optimizer.lr", 1.5), Set("train.schedule.kind", "constant")}
	whole, dir := t.TempDir(), t.TempDir()
	_, err := train(t, bigram[float64](1, 0), whole, job...)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = Run(ctx, bigram[float64](1, 0), append(job, Dir(dir), Logger(slog.New(slog.DiscardHandler)),
		Data(stopsIn{drawn{40, 10}, 4, new(atomic.Int32), cancel}))...)
	if err == nil {
		t.Fatal("the run did not stop")
	}
	_, err = train(t, bigram[float64](1, 0), dir, job...)
	must(t, err)
	names := namesOf(t, dir)
	for _, name := range namesOf(t, whole) {
		if !slices.Contains(names, name) {
			t.Errorf("checkpoints %v lack %s", names, name)
		}
	}
}
