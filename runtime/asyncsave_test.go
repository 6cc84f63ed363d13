package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// async makes a run write its checkpoints while it trains, with save in place of ckpt.Save.
func async(save func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error)) Option {
	return func(o *driver.Options) {
		Set("train.checkpoint.async", true)(o)
		o.Save = save
	}
}

// Checkpoints that are written while training changes the state are those that are written between steps.
func TestAsyncCheckpointsAreThoseBetweenSteps(t *testing.T) {
	for name, p := range map[string]func() *rank.Program{
		"1 rank":               func() *rank.Program { return bigram[float32](1, 0) },
		"2 replicas":           func() *rank.Program { return bigram[float64](2, 0) },
		"4 ranks, ZeRO-1":      func() *rank.Program { return bigram[float32](4, 1) },
		"2 x 2 ranks, sharded": hybrid[float64],
	} {
		between, during := t.TempDir(), t.TempDir()
		_, err := train(t, p(), between, Set("train.checkpoint.every", 1))
		must(t, err)
		seen := 0
		steps := make(chan int, 100)
		// a checkpoint is written only after the next step has ended, except for that of the last step
		slow := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
			for m.Step < 11 && seen <= int(m.Step) {
				seen = <-steps
			}
			return ckpt.Save(dir, m, contents)
		}
		res, err := train(t, p(), during, Set("train.checkpoint.every", 2), async(slow),
			OnStep(func(s report.Step) error { steps <- s.Step; return nil }))
		must(t, err)
		if res.CopyBytes == 0 {
			t.Errorf("%s: no copy of the state", name)
		}
		got, _ := savedSteps(t, during)
		if !slices.Equal(got, []int{2, 4, 6, 8, 10, 12}) {
			t.Errorf("%s: checkpoints %v", name, got)
		}
		for _, step := range got {
			folder := filepath.Join("checkpoints", fmt.Sprintf("step-%08d", step))
			if !bytes.Equal(weights(t, filepath.Join(during, folder)), weights(t, filepath.Join(between, folder))) {
				t.Errorf("%s: step %d differs", name, step)
			}
		}
	}
}

// A save waits for the previous checkpoint, which then is durable; a stop waits for the last one.
func TestAsyncSavesAreInOrder(t *testing.T) {
	var running, peak atomic.Int32
	var saved []int64
	save := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
		peak.Store(max(peak.Load(), running.Add(1)))
		defer running.Add(-1)
		saved = append(saved, m.Step)
		return ckpt.Save(dir, m, contents)
	}
	dir := t.TempDir()
	_, err := train(t, bigram[float32](2, 1), dir, async(save), Set("train.checkpoint.every", 1),
		OnStep(func(s report.Step) error {
			if s.Step == 7 {
				return driver.ErrStop
			}
			return nil
		}))
	wantExit(t, err, exit.OnRequest, "resume from checkpoint "+filepath.Join(dir, "checkpoints", "step-00000007"))
	if peak.Load() != 1 || !slices.Equal(saved, []int64{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("saved %v, %d at once", saved, peak.Load())
	}
	if got, _ := savedSteps(t, dir); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("checkpoints %v", got)
	}
}

// A checkpoint that cannot be written while training continues costs no state: the next step's is written at once. If
// that fails too, the run ends as it does for any checkpoint that cannot be written.
func TestAsyncFailureSavesALaterStep(t *testing.T) {
	full := fmt.Errorf("checkpoint: cannot save step 4: %w", syscall.ENOSPC)
	for _, failures := range []int{1, 2} {
		dir, left := t.TempDir(), failures
		save := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
			if m.Step >= 4 && left > 0 {
				left--
				return ckpt.Saved{}, full
			}
			return ckpt.Save(dir, m, contents)
		}
		var output bytes.Buffer
		_, err := train(t, bigram[float32](2, 1), dir, async(save), Set("train.checkpoint.every", 2),
			text(&output, false))
		got, _ := savedSteps(t, dir)
		switch {
		case failures == 2 && (!errors.Is(err, syscall.ENOSPC) || !slices.Equal(got, []int{2})):
			t.Errorf("two failures: %v, checkpoints %v", err, got)
		case failures == 1 && (err != nil || len(got) < 5 || !slices.Contains(got, 12)):
			t.Errorf("one failure: %v, checkpoints %v", err, got)
		}
		if want := "warning: " + full.Error() + "; a later step is saved instead\n"; !strings.Contains(
			output.String(), want) {
			t.Errorf("no %q in\n%s", want, output.String())
		}
		_, events := lines(t, dir)
		if !slices.ContainsFunc(events, func(l line) bool { return l.Event == "checkpoint_failed" }) {
			t.Errorf("no event of the failure: %+v", events)
		}
	}
}

// A state that is not finite is not saved, and the run ends as it does if it looks between steps.
func TestAsyncNonfiniteStateIsNotSaved(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, overflowing(), dir, Set("train.optimizer.clip_norm", 0), Set("train.checkpoint.every", 1),
		async(nil))
	wantExit(t, err, exit.Nonfinite, "step 2 is not saved: element 7 of tensor b.exp_avg_sq is +Inf, which is not a "+
		"finite number. ", "the last good checkpoint is of step 1; to continue, resume from ")
	if got, _ := savedSteps(t, dir); !slices.Equal(got, []int{1}) {
		t.Errorf("checkpoints %v", got)
	}
}

// A run that ends with an error while a checkpoint is written leaves it complete.
func TestAsyncCheckpointOfARunThatFails(t *testing.T) {
	dir, lost := t.TempDir(), errors.New("lost")
	failed := make(chan bool)
	save := func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error) {
		<-failed
		return ckpt.Save(dir, m, contents)
	}
	_, err := train(t, bigram[float32](2, 1), dir, async(save), Set("train.checkpoint.every", 4),
		OnStep(func(s report.Step) error {
			if s.Step == 5 {
				close(failed)
				return lost
			}
			return nil
		}))
	if !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
	if got, _ := savedSteps(t, dir); !slices.Equal(got, []int{4}) {
		t.Errorf("checkpoints %v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "checkpoints", ".tmp-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
