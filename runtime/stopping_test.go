package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/tensors"
)

// truncated is data that ends in an error from a sample on.
type truncated struct {
	drawn
	train, valid int64
	err          error
}

func (d truncated) Train(g int64, tokens, labels []int32) (int, error) {
	if g >= d.train {
		return 0, d.err
	}
	return d.drawn.Train(g, tokens, labels)
}

func (d truncated) Valid(g int64, tokens, labels []int32) (int, error) {
	if g >= d.valid {
		return 0, d.err
	}
	return d.drawn.Valid(g, tokens, labels)
}

// When data cannot be read any more, the state is saved, and then the run ends with the cause and its exit code.
func TestDataThatFailsSavesFirst(t *testing.T) {
	lost := errors.New("data: train.bin: input/output error")
	whole, err := train(t, bigram[float32](2, 1), t.TempDir())
	must(t, err)
	for name, test := range map[string]struct {
		data feed.Source
		opts []Option
		step string
		code int
	}{
		"training":    {truncated{drawn{40, 10}, 40, 10, lost}, nil, "5", exit.Failed},
		"wrong input": {truncated{drawn{40, 10}, 40, 10, exit.Errorf(exit.Input, "%w", lost)}, nil, "5", exit.Input},
		"validation": {truncated{drawn{40, 10}, 1 << 40, 3, lost}, []Option{Set("train.eval.every", 4)}, "4",
			exit.Failed},
		"last validation": {truncated{drawn{40, 10}, 1 << 40, 3, lost}, nil, "12", exit.Failed},
	} {
		dir := t.TempDir()
		_, err = train(t, bigram[float32](2, 1), dir, append(test.opts, Data(test.data))...)
		wantExit(t, err, test.code)
		saved := filepath.Join(dir, "checkpoints", "step-000000"+("0" + test.step)[len(test.step)-1:])
		if want := lost.Error() + "; step " + test.step + " of 12 is saved; to continue, resume from checkpoint " +
			saved; err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
		_, others := lines(t, dir)
		if last := others[len(others)-1]; last.Event != "stop" {
			t.Errorf("%s: the last line is %+v", name, last)
		}
		got, err := train(t, bigram[float32](2, 1), dir)
		if err != nil || !bytes.Equal(weights(t, got.Checkpoint), weights(t, whole.Checkpoint)) {
			t.Errorf("%s: the run that continues ends elsewhere: %v", name, err)
		}
	}
	dir := t.TempDir()
	_, err = train(t, bigram[float32](2, 1), dir, Data(truncated{drawn{40, 10}, 0, 10, lost}))
	wantExit(t, err, exit.Failed)
	if err.Error() != lost.Error() {
		t.Errorf("before the first step: %v", err)
	}
	if c, _, err := ckpt.Newest(filepath.Join(dir, "checkpoints")); c != nil || err != nil {
		t.Errorf("before the first step: checkpoint %v, %v", c, err)
	}
}

// stopsIn asks the run to stop while it evaluates.
type stopsIn struct {
	drawn
	at   int32
	seen *atomic.Int32
	stop context.CancelFunc
}

func (d stopsIn) Valid(g int64, tokens, labels []int32) (int, error) {
	if d.seen.Add(1) == d.at {
		d.stop()
	}
	return d.drawn.Valid(g, tokens, labels)
}

// An evaluation that a stop interrupts is done by the run that continues, so that no validation loss is missing.
func TestInterruptedEvaluationIsDoneLater(t *testing.T) {
	for at, step := range map[int32]int{4: 4, 14: 8, 24: 12} { // 10 samples are evaluated after each of these steps
		interruptEvaluation(t, at, fmt.Sprintf("after step %d of 12", step))
	}
}

func interruptEvaluation(t *testing.T, at int32, want string) {
	t.Helper()
	every := Set("train.eval.every", 4)
	whole := t.TempDir()
	_, err := train(t, bigram[float64](1, 0), whole, every)
	must(t, err)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	source := stopsIn{drawn{40, 10}, at, new(atomic.Int32), cancel}
	_, err = Run(ctx, bigram[float64](1, 0), Dir(dir), Data(source), Logger(slog.New(slog.DiscardHandler)), every)
	wantExit(t, err, exit.OnRequest, want)
	_, err = train(t, bigram[float64](1, 0), dir, every)
	must(t, err)
	valid := func(dir string) (out []line) {
		_, others := lines(t, dir)
		for _, l := range others {
			if l.ValidLoss != nil {
				out = append(out, l)
			}
		}
		return out
	}
	got, usual := valid(dir), valid(whole)
	if len(got) != 3 || len(usual) != 3 {
		t.Fatalf("%s: %d validation losses, and %d without a stop", want, len(got), len(usual))
	}
	for i := range got {
		if got[i].Step != usual[i].Step || *got[i].ValidLoss != *usual[i].ValidLoss {
			t.Errorf("validation %d: step %d, %v; want %d, %v", i, got[i].Step, *got[i].ValidLoss, usual[i].Step,
				*usual[i].ValidLoss)
		}
	}
}

// A damaged checkpoint is set aside, and stays when the run saves that step again.
func TestDamagedCheckpointIsSetAside(t *testing.T) {
	dir := t.TempDir()
	res, err := train(t, bigram[float32](1, 0), dir, Set("train.checkpoint.every", 6))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(res.Checkpoint, tensors.ModelFile), []byte("nonsense"), 0o666))
	var output bytes.Buffer
	second, err := train(t, bigram[float32](1, 0), dir, Set("train.checkpoint.every", 6), text(&output, false))
	must(t, err)
	if second.FirstStep != 7 || second.Checkpoint != res.Checkpoint {
		t.Errorf("%+v", second)
	}
	aside := filepath.Join(dir, "checkpoints.before-1")
	for _, want := range []string{
		"warning: checkpoint: " + filepath.Join(res.Checkpoint, tensors.ModelFile) +
			" is damaged: it has 8 bytes, and ",
		" were saved; trying the previous checkpoint\n",
		"warning: moved 1 checkpoint after step 6, where this run begins, to " + aside + "\n",
	} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("no %q in\n%s", want, output.String())
		}
	}
	if b, err := os.ReadFile(filepath.Join(aside, "step-00000012", tensors.ModelFile)); err != nil ||
		string(b) != "nonsense" {
		t.Errorf("the damaged one: %q, %v", b, err)
	}
}

// Data without validation samples owe no evaluation, even after data that had some: the run ends, and is not "stopped
// on request".
func TestNothingIsOwedWithoutValidation(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, bigram[float32](2, 1), dir, Data(drawn{40, 0}), Set("train.steps", 4),
		Set("train.eval.every", 4))
	must(t, err)
	_, err = train(t, bigram[float32](2, 1), dir, Data(drawn{40, 0}), Set("train.steps", 8), Set("train.eval.every", 4))
	must(t, err)
}
