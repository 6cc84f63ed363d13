package runtime

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// tree lists the files and folders below dir.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	return names
}

// wantExit checks an error's code and that its text holds all the parts.
func wantExit(t *testing.T, err error, code int, parts ...string) {
	t.Helper()
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != code {
		t.Fatalf("error %v, want exit %d", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("message %q lacks %q", err, p)
		}
	}
}

// A beginning that is refused leaves the folder as it was: the next run continues the newest checkpoint.
func TestARefusedBeginningLosesNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, bigram[float32](1, 0), dir, Set("train.checkpoint.every", 3))
	must(t, err)
	before := tree(t, dir)
	other := bigram[float32](1, 0)
	other.Optim = Adam
	_, err = train(t, other, dir, Resume("3"))
	wantExit(t, err, exit.Input, "its optimizer is adamw, but the program's is adam",
		"--dir to train in another folder")
	_, err = train(t, bigram[float32](1, 0), dir, Resume("never"), Set("train.init", "/no/such/folder"))
	wantExit(t, err, exit.Input, "train.init: /no/such/folder is not a folder")
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the folder was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	res, err := train(t, bigram[float32](1, 0), dir, Set("train.steps", 14))
	if err != nil || res.FirstStep != 13 {
		t.Errorf("the next run: %+v, %v", res, err)
	}
}

func TestCheckpointsOfAnotherModelAreRefused(t *testing.T) {
	dir := t.TempDir()
	hashed := func(hash string) *rank.Program {
		p := bigram[float32](2, 1)
		p.Model.Hash = hash
		return p
	}
	_, err := train(t, hashed("aaaa"), dir, Set("train.steps", 2))
	must(t, err)
	_, err = train(t, hashed("bbbb"), dir)
	wantExit(t, err, exit.Input, "it is a checkpoint of another model (aaaa of job bigram; the program's is bbbb of "+
		"job bigram), "+
		"although their tensors may have the same shapes; use --resume never", "--dir")
	shorter := hashed("bbbb")
	shorter.Params = slices.Clone(shorter.Params)
	shorter.Params[1].Dims = []Dim{{Size: 7}}
	_, err = train(t, shorter, dir)
	wantExit(t, err, exit.Input, "is bbbb of job bigram): b has shape [11] in the checkpoint, but the program needs "+
		"[7]; use --resume never")
	less := hashed("aaaa")
	less.Params = less.Params[:1]
	_, err = train(t, less, dir)
	wantExit(t, err, exit.Input, "model.safetensors: it has tensors that the program does not have: b; it is of "+
		"another model", "--resume never")
	if res, err := train(t, hashed(""), dir); err != nil || res.FirstStep != 3 {
		t.Errorf("a program that does not know its model's hash: %+v, %v", res, err)
	}
}

// Two beginnings with logs elsewhere, and so no attempts counted, do not collide.
func TestSettingAsideTwice(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		_, err := train(t, bigram[float32](1, 0), dir, LogDir(t.TempDir()), Resume("never"))
		must(t, err)
	}
	for _, aside := range []string{"checkpoints.before-1", "checkpoints.before-2"} {
		if _, err := os.Stat(filepath.Join(dir, aside, "step-00000012")); err != nil {
			t.Error(err)
		}
	}
}

// What a continued run sets otherwise than the run before is said, once, by both values; what is as it was is not.
func TestResumeSaysWhatChanged(t *testing.T) {
	dir, kind := t.TempDir(), Set("train.schedule.kind", "constant")
	_, err := train(t, bigram[float32](1, 0), dir, kind, Set("train.steps", 2), Set("train.optimizer.lr", 0.01))
	must(t, err)
	var same, other bytes.Buffer
	_, err = train(t, bigram[float32](1, 0), dir, kind, Set("train.steps", 3), Set("train.optimizer.lr", 0.01),
		Logger(slog.New(slog.NewTextHandler(&same, nil))))
	must(t, err)
	_, err = train(t, bigram[float32](1, 0), dir, kind, Set("train.steps", 4), Set("train.optimizer.lr", 0.02),
		Logger(slog.New(slog.NewTextHandler(&other, nil))))
	must(t, err)
	const want = "settings differ from the checkpoint: train.optimizer.lr was 0.01, is 0.02\""
	if strings.Contains(same.String(), "differ") || strings.Count(other.String(), want) != 1 {
		t.Errorf("without a change:\n%s\nwith one:\n%s", same.String(), other.String())
	}
}

// Data files that have other contents than those of the checkpoint are reported once, in a warning and an event; the
// same contents in another file are not, and neither is anything if the checkpoint has no hash.
func TestResumeReportsOtherContents(t *testing.T) {
	write := func(path string, contents string) string {
		must(t, os.WriteFile(path, bytes.Repeat([]byte(contents), 300), 0o666))
		return path
	}
	dir, files := t.TempDir(), t.TempDir()
	path := write(filepath.Join(files, "tokens.bin"), "\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00")
	train := func(steps, data string, args ...string) string {
		t.Helper()
		code, _, stderr := runCommand(t, append([]string{"--dir", dir, "--data", data, "--steps", steps}, args...)...)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		return stderr
	}
	train("4", path)
	same := train("6", write(filepath.Join(files, "copy.bin"), "\x01\x00\x04\x00\x02\x00\x07\x00\x00\x00"))
	write(path, "\x02\x00\x04\x00\x02\x00\x07\x00\x00\x00")
	other, repeated := train("8", path), train("10", path)
	text := path + " has changed since step 6: its size is the same, but its contents differ, and training continues " +
		"on the new contents; " +
		"restore the old file, or start over with --resume never"
	if strings.Contains(same+repeated, "changed") || strings.Count(other, "warning: "+text+"\n") != 1 {
		t.Errorf("same contents:\n%s\nother contents:\n%s\nagain:\n%s", same, other, repeated)
	}
	_, events := lines(t, dir)
	events = slices.DeleteFunc(events, func(e line) bool { return e.Event != "data_changed" })
	if len(events) != 1 || events[0].Step != 6 || events[0].Detail != text {
		t.Errorf("events %+v", events)
	}
}

// A run that continues a checkpoint of another folder has nothing before it in its own.
// Where the checkpoint is past the last step, it is said that nothing is left to do, and what would do more.
func TestResumePastTheLastStep(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, bigram[float32](1, 0), dir, Set("train.steps", 4))
	must(t, err)
	var output bytes.Buffer
	res, err := train(t, bigram[float32](1, 0), dir, Set("train.steps", 3),
		Logger(slog.New(slog.NewTextHandler(&output, nil))))
	const want = "\"nothing to do: step 4 is after --steps 3; `--steps 7` trains 3 more, `--resume never` starts over\""
	if err != nil || res.Steps != 4 || !strings.Contains(output.String(), want) {
		t.Errorf("%+v, %v\n%s", res, err, output.String())
	}
}

func TestResumeFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, bigram[float32](1, 0), dir, Set("train.steps", 2))
	must(t, err)
	other, err := train(t, bigram[float32](1, 0), t.TempDir(), Set("train.steps", 4))
	must(t, err)
	res, err := train(t, bigram[float32](1, 0), dir, Resume(other.Checkpoint+"/"), Set("train.steps", 4))
	if err != nil || res.FirstStep != 5 || res.Checkpoint != filepath.Join(dir, "checkpoints", "step-00000004") {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "checkpoints.before-1", "step-00000002")); err != nil {
		t.Error(err)
	}
	t.Chdir(res.Checkpoint)
	if own, err := train(t, bigram[float32](1, 0), dir, Resume("."), Set("train.steps", 4)); err != nil ||
		own.Checkpoint != "." {
		t.Errorf("its own checkpoint by another path: %+v, %v", own, err)
	}
}

func TestTwoRunsInOneFolder(t *testing.T) {
	dir := t.TempDir()
	_, err := train(t, bigram[float32](1, 0), dir, OnStep(func(s report.Step) error {
		if s.Step == 2 {
			_, err := train(t, bigram[float32](1, 0), dir)
			wantExit(t, err, exit.Cannot, "another run is saving its checkpoints in "+filepath.Join(dir, "checkpoints"),
				"--dir")
		}
		return nil
	}))
	must(t, err)
	if got := len(losses(t, dir)); got != 12 {
		t.Errorf("%d steps in the metrics", got)
	}
}

// Two runs do not mix their lines in one metrics.jsonl, wherever their checkpoints go.
func TestTwoRunsWithOneLog(t *testing.T) {
	logs, dir := t.TempDir(), t.TempDir()
	_, err := train(t, bigram[float32](1, 0), t.TempDir(), LogDir(logs), OnStep(func(s report.Step) error {
		if s.Step == 2 {
			_, err := train(t, bigram[float32](1, 0), dir, LogDir(logs))
			wantExit(t, err, exit.Cannot)
			want := "another run is writing its metrics to " + filepath.Join(logs, report.MetricsFile) +
				"; wait until it ends, or choose another folder with --log-dir"
			if err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		}
		return nil
	}))
	must(t, err)
	if got := len(losses(t, logs)); got != 12 {
		t.Errorf("%d steps in the metrics", got)
	}
	if res, err := train(t, bigram[float32](1, 0), dir, LogDir(logs)); err != nil || res.FirstStep != 1 {
		t.Errorf("one run after the other: %+v, %v", res, err)
	}
}

func TestMetricsAreAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, report.MetricsFile)
	must(t, os.Symlink("/dev/zero", path)) // whose lines have no end
	_, err := train(t, bigram[float32](1, 0), dir)
	wantExit(t, err, exit.Input, path+" must be a regular file, because metrics are appended to it; choose "+
		"another folder "+
		"with --log-dir")
}

// A run of epochs that is continued with another global batch ends where the data does.
func TestEpochsWithAnotherBatch(t *testing.T) {
	half := func() *rank.Program {
		p := bigram[float64](1, 0)
		p.Batch.MicroBatches, p.Batch.GlobalBatch = 1, 4
		return p
	}
	for name, test := range map[string]struct {
		first, second *rank.Program
		stop, steps   int
	}{
		"smaller": {bigram[float64](1, 0), half(), 2, 2 + 6}, // 40 samples: 2×8, then 6×4
		"larger":  {half(), bigram[float64](1, 0), 4, 4 + 3}, // 4×4, then 3×8
	} {
		dir := t.TempDir()
		_, err := train(t, test.first, dir, Set("train.epochs", 1), OnStep(func(s report.Step) error {
			if s.Step == test.stop {
				return driver.ErrStop
			}
			return nil
		}))
		wantExit(t, err, exit.OnRequest)
		res, err := train(t, test.second, dir, Set("train.epochs", 1))
		must(t, err)
		if res.Steps != test.steps || math.IsNaN(res.Loss) || res.Skipped != 0 {
			t.Errorf("%s: %d steps, loss %v, want %d steps", name, res.Steps, res.Loss, test.steps)
		}
		whole, err := train(t, bigram[float64](1, 0), t.TempDir(), Set("train.epochs", 1))
		if err != nil || whole.Tokens != res.Tokens {
			t.Errorf("%s: %d tokens, want %d, %v", name, res.Tokens, whole.Tokens, err)
		}
	}
}
