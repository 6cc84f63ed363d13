package runtime

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/report"
)

// savedSteps returns the steps of a run's checkpoints, and their validation losses.
func savedSteps(t *testing.T, dir string) (steps []int, valid map[int]string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "checkpoints"))
	must(t, err)
	valid = map[int]string{}
	for _, e := range entries {
		if digits, ok := strings.CutPrefix(e.Name(), "step-"); ok {
			step, err := strconv.Atoi(digits)
			must(t, err)
			c, err := ckpt.Open(filepath.Join(dir, "checkpoints", e.Name()))
			must(t, err)
			steps, valid[step] = append(steps, step), c.Manifest.Extra[ckpt.ValidLossExtra]
		}
	}
	return steps, valid
}

// A run keeps the newest checkpoints, those of every Nth step and the best, and removes the others, also after a stop.
func TestRetention(t *testing.T) {
	job := []Option{Set("train.checkpoint.every", 2), Set("train.checkpoint.keep_last", 2),
		Set("train.checkpoint.keep_every", 6)}
	whole, dir := t.TempDir(), t.TempDir()
	_, err := train(t, bigram[float32](2, 1), whole, job...)
	must(t, err)
	if steps, _ := savedSteps(t, whole); !slices.Equal(steps, []int{6, 10, 12}) {
		t.Errorf("steps %v", steps)
	}
	_, err = train(t, bigram[float32](2, 1), dir, append(job, OnStep(func(s report.Step) error {
		if s.Step == 7 {
			return driver.ErrStop
		}
		return nil
	}))...)
	wantExit(t, err, exit.OnRequest)
	if steps, _ := savedSteps(t, dir); !slices.Equal(steps, []int{6, 7}) {
		t.Errorf("steps %v after the stop", steps)
	}
	_, err = train(t, bigram[float32](2, 1), dir, job...)
	must(t, err)
	if steps, _ := savedSteps(t, dir); !slices.Equal(steps, []int{6, 10, 12}) {
		t.Errorf("steps %v after the resume", steps)
	}
	last := filepath.Join("checkpoints", "step-00000012")
	if !bytes.Equal(weights(t, filepath.Join(whole, last)), weights(t, filepath.Join(dir, last))) {
		t.Error("the resumed run ended elsewhere")
	}
}

// With best, each evaluation whose loss is among the top_k lowest saves a checkpoint with its loss, and these are kept.
func TestBestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	job := []Option{Set("train.eval.every", 1), Set("train.checkpoint.keep_last", 1),
		Set("train.checkpoint.best", "valid_loss"), Set("train.checkpoint.top_k", 3),
		Set("train.optimizer.lr", 3), Set("train.schedule.kind", "constant")} // so high that the loss rises again
	for _, steps := range []int{6, 12} { // the second run continues the first
		_, err := train(t, bigram[float32](2, 1), dir, append(job, Set("train.steps", steps))...)
		must(t, err)
		measured := loggedScalars(t, dir)["valid_loss"]
		var order []int
		for step := range measured {
			order = append(order, step)
		}
		slices.SortFunc(order, func(a, b int) int {
			if measured[a] != measured[b] {
				return map[bool]int{true: -1, false: 1}[measured[a] < measured[b]]
			}
			return a - b
		})
		want := append(slices.Clone(order[:3]), steps)
		slices.Sort(want)
		got, valid := savedSteps(t, dir)
		if !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("kept %v, want %v: losses %v", got, want, measured)
		}
		for step, text := range valid {
			if loss, err := strconv.ParseFloat(text, 64); err != nil || loss != measured[step] {
				t.Errorf("step %d has loss %q, measured %v", step, text, measured[step])
			}
		}
	}
}

func TestRetentionMessages(t *testing.T) {
	for _, c := range []struct {
		options []Option
		want    string
	}{
		{[]Option{Set("train.checkpoint.keep_every", 5)},
			"train.checkpoint.keep_every is 5, but without train.checkpoint.keep_last all checkpoints are kept; set " +
				"keep_last, such as 3, or leave keep_every out"},
		{[]Option{Set("train.checkpoint.top_k", 2)},
			"train.checkpoint.top_k is 2, but train.checkpoint.best is not set; set best to valid_loss, or leave " +
				"top_k out"},
		{[]Option{Set("train.checkpoint.best", "valid_loss"), Data(drawn{40, 0})},
			"train.checkpoint.best is valid_loss, but there is no validation data: set data.valid, such as 0.05, or " +
				"leave best out"},
		{[]Option{Set("train.checkpoint.best", "loss")}, `train.checkpoint.best is "loss"; it must be valid_loss`},
	} {
		_, err := train(t, bigram[float32](1, 0), t.TempDir(), c.options...)
		wantExit(t, err, exit.Input, c.want)
	}
}

// Checkpoints are due every so many minutes after the last one, or after the step that ends a pass over the data.
func TestSaveIntervals(t *testing.T) {
	clock := time.Unix(0, 0)
	ticks := func(o *driver.Options) {
		o.Now = func() time.Time { return clock }
		o.OnStep = func(report.Step) error { clock = clock.Add(time.Minute); return nil }
	}
	for _, c := range []struct {
		options []Option
		want    []int
	}{
		{[]Option{Set("train.checkpoint.every_minutes", 5)}, []int{6, 11, 12}},
		{[]Option{Set("train.checkpoint.every_minutes", 4.5)}, []int{6, 11, 12}},
		{[]Option{Set("train.checkpoint.every_minutes", 5), Set("train.checkpoint.every", 4)}, []int{4, 8, 12}},
		{[]Option{Set("train.checkpoint.every_minutes", 3), Set("train.checkpoint.every", 5)}, []int{4, 5, 8, 10, 12}},
		{[]Option{Set("train.checkpoint.every_epochs", 1)}, []int{5, 10, 12}},
		{[]Option{Set("train.checkpoint.every_epochs", 0.5)}, []int{3, 5, 8, 10, 12}},
		{[]Option{Set("train.checkpoint.every_epochs", 0.1)}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{nil, []int{12}},
	} {
		for _, during := range []bool{false, true} {
			dir := t.TempDir()
			_, err := train(t, bigram[float32](2, 1), dir, append(c.options, ticks,
				Set("train.checkpoint.async", during))...)
			must(t, err)
			if got, _ := savedSteps(t, dir); !slices.Equal(got, c.want) {
				t.Errorf("%v, async %t: checkpoints %v", c.want, during, got)
			}
		}
	}
	_, err := train(t, bigram[float32](1, 0), t.TempDir(), Set("train.checkpoint.every_epochs", 1), Data(drawn{0, 10}))
	wantExit(t, err, exit.Input, "train.checkpoint.every_epochs needs data of known length; use every (steps) or "+
		"every_minutes instead")
	for value, want := range map[any]string{
		0.0:   "",
		-1:    "train.checkpoint.every_minutes is -1; it must be above 0 and at most 1e+09",
		"30m": `train.checkpoint.every_minutes: "30m" is not a number`,
	} {
		_, err := train(t, bigram[float32](1, 0), t.TempDir(), Set("train.checkpoint.every_minutes", value))
		if want == "" {
			must(t, err)
			continue
		}
		wantExit(t, err, exit.Input, want)
	}
}
