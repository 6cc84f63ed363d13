package runtime

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/tensors"
)

// spoil makes the first number of a checkpoint's model NaN, and the manifest match: as planc saved it before it looked.
func spoil(t *testing.T, checkpoint string) {
	t.Helper()
	c, err := ckpt.Open(checkpoint)
	must(t, err)
	var contents []ckpt.Content
	for _, name := range []string{tensors.ModelFile, tensors.OptimizerFile} {
		f, err := c.File(name)
		must(t, err)
		defer f.Close()
		contents = append(contents, ckpt.Content{Name: name, Tensors: f.Tensors(),
			Fill: func(i int, w io.Writer) error {
				_, r, err := f.Tensor(f.Tensors()[i].Name)
				must(t, err)
				b, err := io.ReadAll(r)
				must(t, err)
				if i == 0 && name == tensors.ModelFile {
					copy(b, "\xff\xff\xff\x7f")
				}
				_, err = w.Write(b)
				return err
			}})
	}
	saved, err := ckpt.Save(filepath.Dir(checkpoint), c.Manifest, contents)
	must(t, err)
	must(t, os.RemoveAll(saved.Aside))
}

// What is not finite is not saved: the run stops, and names the last good step and what may help.
func TestNonfiniteStateIsNotSaved(t *testing.T) {
	dir := t.TempDir()
	good, err := train(t, bigram[float32](2, 1), dir, Set("train.steps", 3))
	must(t, err)
	wild := []Option{Set("train.optimizer.lr", 3.4e38), Set("train.optimizer.clip_norm", 0),
		Set("train.checkpoint.every", 1), Set("train.schedule.warmup", 0),
		Set("train.schedule.kind", "constant")}
	for name, test := range map[string]struct {
		dir  string
		opts []Option
		want string
	}{
		"after a good checkpoint": {dir, nil,
			"step 4 is not saved: element 0 of tensor w is -Inf, which is not a finite number. Lower " +
				"train.optimizer.lr (3.4e+38), or raise " +
				"train.schedule.warmup (0), or clip gradients (train.optimizer.clip_norm=1); the last good " +
				"checkpoint is " +
				"of step 3; to continue, resume from " + good.Checkpoint},
		"with no checkpoint": {t.TempDir(), []Option{Set("train.optimizer.clip_norm", 0.5)},
			"step 1 is not saved: element 0 of tensor w is -Inf, which is not a finite number. " +
				"Lower train.optimizer.lr (3.4e+38), or raise train.schedule.warmup (0); no checkpoint was " +
				"saved before: " +
				"start over (--resume never)"},
		"asked to stop": {t.TempDir(), []Option{Set("train.checkpoint.every", 0), OnStep(func(report.Step) error {
			return driver.ErrStop
		})}, "step 1 is not saved: "},
		"the last step": {t.TempDir(), []Option{Set("train.checkpoint.every", 0), Set("train.steps", 1)},
			"step 1 is not saved: "},
	} {
		_, err := train(t, bigram[float32](2, 1), test.dir, append(wild, test.opts...)...)
		wantExit(t, err, exit.Nonfinite)
		if !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, test.want)
		}
		_, others := lines(t, test.dir)
		if last := others[len(others)-1]; last.Event != "stop" {
			t.Errorf("%s: the last line is %+v", name, last)
		}
	}
	if res, err := train(t, bigram[float32](2, 1), dir, Set("train.steps", 4)); err != nil || res.FirstStep != 4 {
		t.Errorf("with another rate: %+v, %v", res, err)
	}
}

// overflowing returns a program whose moments overflow in step 2 while the loss is finite still.
func overflowing() *rank.Program {
	p := bigram[float32](2, 1)
	step := p.Segments[0].Backward
	p.Segments[0].Backward = func(r *rank.Rank, b *rank.Block) {
		step(r, b)
		if r.StepID == 2 {
			View[float32](r, r.Stage.Arena.Grads.Offset, 2*vocabPad)[vocabPad+7] = 1e25
		}
	}
	return p
}

// A moment that overflows is seen while the loss is finite still, on whichever rank has it.
func TestNonfiniteMomentIsNotSaved(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, overflowing(), dir, Set("train.optimizer.clip_norm", 0), Set("train.checkpoint.every", 1))
	wantExit(t, err, exit.Nonfinite, "step 2 is not saved: element 7 of tensor b.exp_avg_sq is +Inf, which is not a "+
		"finite number. ", "the last good checkpoint is of step 1; to continue, resume from ")
	steps, _ := lines(t, dir)
	if len(steps) != 2 || steps[1].Loss == nil {
		t.Errorf("%d steps, the last %+v", len(steps), steps[len(steps)-1])
	}
	wantCheckpoint(t, dir, 1)
}

// What is not finite is not continued, begun with or exported either: older programs saved it.
func TestNonfiniteStateIsNotRead(t *testing.T) {
	dir := t.TempDir()
	res, err := train(t, bigram[float32](1, 0), dir, Set("train.checkpoint.every", 6))
	must(t, err)
	spoil(t, res.Checkpoint)
	const what = "element 0 of tensor w is NaN, which is not a finite number; training cannot "
	_, err = train(t, bigram[float32](1, 0), t.TempDir(), Resume(res.Checkpoint))
	wantExit(t, err, exit.Input, filepath.Join(res.Checkpoint, tensors.ModelFile)+": "+what+"continue from it")
	weights := t.TempDir() // without a manifest
	must(t, os.Rename(filepath.Join(res.Checkpoint, tensors.ModelFile), filepath.Join(weights, tensors.ModelFile)))
	must(t, os.Link(filepath.Join(weights, tensors.ModelFile), filepath.Join(res.Checkpoint, tensors.ModelFile)))
	_, err = train(t, bigram[float32](1, 0), t.TempDir(), Set("train.init", weights))
	wantExit(t, err, exit.Input, "train.init "+weights+": "+what+"begin with it")
	var output bytes.Buffer
	second, err := train(t, bigram[float32](1, 0), dir, text(&output, false))
	must(t, err)
	if second.FirstStep != 7 || !strings.Contains(output.String(),
		what+"continue from it; trying the previous checkpoint\n") {
		t.Errorf("began at step %d\n%s", second.FirstStep, output.String())
	}
}

// An export of what is not finite is refused, from a checkpoint and from files of other tools, and leaves nothing
// behind.
func TestNonfiniteStateIsNotExported(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, publishedBigram[float32](1), dir, Set("train.steps", 2))
	must(t, err)
	good := filepath.Join(dir, "good")
	_, err = train(t, publishedBigram[float32](1), dir, Export(good))
	must(t, err)
	spoil(t, filepath.Join(dir, "checkpoints", "step-00000002"))
	bad := filepath.Join(dir, "bad")
	_, err = train(t, publishedBigram[float32](1), dir, Export(bad), Resume("2"))
	wantExit(t, err, exit.Input, "element 0 of tensor w is NaN, which is not a finite number")
	b, err := os.ReadFile(filepath.Join(good, tensors.ModelFile))
	must(t, err)
	copy(b[len(b)-4:], "\x00\x00\x80\x7f")
	must(t, os.WriteFile(filepath.Join(good, tensors.ModelFile), b, 0o666))
	_, err = train(t, publishedBigram[float32](1), dir, Export(bad), Resume("never"), Set("train.init", good))
	wantExit(t, err, exit.Input, "is +Inf, which is not a finite number; training cannot begin with it")
	if _, err := os.Stat(bad); err == nil {
		t.Error("the folder of a refused export is there")
	}
}
