package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/report"
)

// hanging is a source whose reads from some sample on do not end, as those of a disk that hangs.
type hanging struct {
	drawn
	train, valid int64         // the first sample that hangs; 0: none does
	hangs        func()        // called by the first read that does
	over         chan struct{} // closed at the end of the test
}

func (h *hanging) wait(g, from int64) {
	if from > 0 && g >= from {
		h.hangs()
		<-h.over
	}
}

func (h *hanging) Train(g int64, tokens, labels []int32) (int, error) {
	h.wait(g, h.train)
	return h.drawn.Train(g, tokens, labels)
}

func (h *hanging) Valid(g int64, tokens, labels []int32) (int, error) {
	h.wait(g, h.valid)
	return h.drawn.Valid(g, tokens, labels)
}

// A disk that hangs does not keep a run from being stopped: it ends with a checkpoint of its last step while the read
// still waits.
func TestStopWhileTheDiskHangs(t *testing.T) {
	for _, tt := range []struct {
		name         string
		train, valid int64
		step         int
	}{{"in training", 3*8 + 5, 0, 3}, {"in validation", 0, 12, 4}} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			hung := make(chan struct{})
			h := &hanging{drawn{40, 30}, tt.train, tt.valid, sync.OnceFunc(func() { close(hung) }), make(chan struct{})}
			defer close(h.over)
			cancelLater := func() { // once the run has nothing to do but wait
				<-hung
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			if tt.valid > 0 {
				go cancelLater()
			}
			steps := OnStep(func(s report.Step) error {
				if s.Step == tt.step {
					go cancelLater()
				}
				return nil
			})
			dir := t.TempDir()
			done := make(chan error, 1)
			go func() {
				_, err := Run(ctx, bigram[float64](2, 0), Dir(dir), Data(h), steps,
					Logger(slog.New(slog.DiscardHandler)), Set("train.eval.every", 4))
				done <- err
			}()
			select {
			case err := <-done:
				checkpoint := filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%08d", tt.step))
				wantExit(t, err, exit.OnRequest,
					fmt.Sprintf("stopped on request after step %d of 12; to continue, resume from checkpoint %s",
						tt.step,
						checkpoint))
				weights(t, checkpoint)
			case <-time.After(time.Minute):
				t.Fatal("the request to stop is not heard")
			}
			res, err := train(t, bigram[float64](2, 0), dir, Data(drawn{40, 30}), Set("train.eval.every", 4))
			if err != nil || res.FirstStep != tt.step+1 || res.Steps != 12 {
				t.Errorf("resumed: steps %d to %d, %v", res.FirstStep, res.Steps, err)
			}
		})
	}
}

// A run that is over does not wait for the batch that it has begun to read and does not want.
func TestEndWhileTheDiskHangs(t *testing.T) {
	h := &hanging{drawn{40, 0}, 12 * 8, 0, func() {}, make(chan struct{})}
	defer close(h.over)
	done := make(chan error, 1)
	go func() {
		_, err := train(t, bigram[float64](2, 0), t.TempDir(), Data(h))
		done <- err
	}()
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("a run that is done does not end")
	}
}

// sluggish is a source whose validation takes a while.
type sluggish struct{ drawn }

func (s sluggish) Valid(g int64, tokens, labels []int32) (int, error) {
	time.Sleep(40 * time.Millisecond)
	return s.drawn.Valid(g, tokens, labels)
}

// A validation that takes long says within a second how far it is, and nothing if it is short.
func TestValidationShowsProgress(t *testing.T) {
	var out bytes.Buffer
	begun := time.Now()
	_, err := train(t, bigram[float32](2, 0), t.TempDir(), Data(sluggish{drawn{40, 40}}), text(&out, false),
		Set("train.steps", 1))
	must(t, err)
	lines := regexp.MustCompile(`(?m)^step 1  validating, \d+ of 10 batches(  \d+s left)?$`).FindAllString(
		out.String(), -1)
	if want := int(time.Since(begun)/report.LineEvery) + 1; len(lines) < 1 || len(lines) > want {
		t.Errorf("%d lines of progress, want 1 to %d:\n%s", len(lines), want, out.String())
	}
	out.Reset()
	_, err = train(t, bigram[float32](2, 0), t.TempDir(), Data(sluggish{drawn{40, 40}}), text(&out, true),
		Set("train.steps", 1))
	must(t, err)
	if !strings.Contains(out.String(), "\r\x1b[Kstep 1  validating, ") ||
		!strings.Contains(out.String(), "\r\x1b[Kstep 1  valid_loss ") {
		t.Errorf("a terminal shows %q", out.String())
	}
	out.Reset()
	_, err = train(t, bigram[float32](2, 0), t.TempDir(), Logger(slog.New(slog.NewTextHandler(&out, nil))),
		Data(sluggish{drawn{40, 40}}), Set("train.steps", 1))
	must(t, err)
	if !regexp.MustCompile(`msg=validating step=1 done=\d+ batches=10\n`).MatchString(out.String()) {
		t.Errorf("the log is\n%s", out.String())
	}
}

// Data that are truncated or overwritten while training end the run with their name and sizes after its state is saved;
// to start it again would train on what they have become, so the exit status says not to.
func TestDataThatChangeEndTheRunWithACheckpoint(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(path string) error
		want   string
	}{
		{"truncated", func(path string) error { return os.Truncate(path, 10) },
			`^data: FILE was truncated while training: it had 12000 bytes when it was opened, and has 10 now; ` +
				`restore the complete file, then start the run again; `},
		{"overwritten", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0) // it is never shorter
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(bytes.Repeat([]byte{3, 0}, 6000))
			return err
		},
			`^data: FILE was overwritten while training: it had 12000 bytes when it was opened and has 12000 now, ` +
				`and its contents have changed; restore the old file, then start the run again; to train on the new ` +
				`contents, start over with ` +
				`--resume never; `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "tokens.bin")
			must(t, os.WriteFile(path, bytes.Repeat([]byte{1, 0, 4, 0}, 3000), 0o666))
			earlier := time.Now().Add(-time.Hour)
			must(t, os.Chtimes(path, earlier, earlier))
			res, err := train(t, bigram[float64](2, 0), dir, Data(nil), Set("data.train", path), Set("train.steps",
				100), OnStep(func(s report.Step) error {
				if s.Step == 4 {
					must(t, tt.change(path))
				}
				if s.Step > 4 { // files are looked at once a second
					time.Sleep(100 * time.Millisecond)
				}
				return nil
			}))
			var coded *exit.Error
			if !errors.As(err, &coded) || coded.Code != exit.Input {
				t.Fatalf("got %v, want exit %d", err, exit.Input)
			}
			want := tt.want + fmt.Sprintf(`step %d of 100 is saved; to continue, resume from checkpoint `+
				`DIR/checkpoints/step-%08[1]d$`, res.Steps)
			if got := strings.NewReplacer(path, "FILE", dir, "DIR").Replace(err.Error()); !regexp.MustCompile(want).
				MatchString(got) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if res.Steps < 4 || res.Steps > 30 {
				t.Errorf("it ends after step %d", res.Steps)
			}
			weights(t, res.Checkpoint)
		})
	}
}
