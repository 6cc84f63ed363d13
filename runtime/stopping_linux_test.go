package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/report"
)

// replaceFile makes this process's open descriptor of a file be that of another file: /dev/full is a full disk.
func replaceFile(t *testing.T, path, by string) {
	t.Helper()
	to, err := os.OpenFile(by, os.O_RDWR, 0)
	must(t, err)
	defer to.Close()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range list {
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && link == path {
			must(t, syscall.Dup3(int(to.Fd()), fd, syscall.O_CLOEXEC))
			return
		}
	}
	t.Fatalf("%s is not open", path)
}

// atStep runs f after a step.
func atStep(step int, f func()) Option {
	return OnStep(func(s report.Step) error {
		if s.Step == step {
			f()
		}
		return nil
	})
}

// wantCheckpoint wants the newest checkpoint to be whole and of that step.
func wantCheckpoint(t *testing.T, dir string, step int64) {
	t.Helper()
	c, _, err := ckpt.Newest(filepath.Join(dir, "checkpoints"))
	if err != nil || c == nil || c.Manifest.Step != step {
		t.Fatalf("newest checkpoint %+v, %v; want step %d", c, err, step)
	}
}

// A disk for metrics that is full ends the run after its state is saved.
func TestFullMetricsDisk(t *testing.T) {
	for name, every := range map[string]int{"no checkpoint due": 0, "a checkpoint due at that step": 5} {
		dir := t.TempDir()
		path := filepath.Join(dir, report.MetricsFile)
		_, err := train(t, bigram[float32](2, 1), dir, Set("train.checkpoint.every", every), atStep(4, func() {
			replaceFile(t, path, "/dev/full")
		}))
		wantExit(t, err, exit.Failed)
		saved := filepath.Join(dir, "checkpoints", "step-00000005")
		want := "cannot write the metrics: write " + path + ": no space left on device; free some space, or choose " +
			"another folder with --log-dir; " +
			"step 5 of 12 is saved; to continue, resume from checkpoint " + saved
		if err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
		wantCheckpoint(t, dir, 5)
		if res, err := train(t, bigram[float32](2, 1), dir); err != nil || res.FirstStep != 6 {
			t.Errorf("%s: the next run: %+v, %v", name, res, err)
		}
	}
	dir := t.TempDir() // full when the last step writes
	_, err := train(t, bigram[float32](2, 1), dir, atStep(11, func() {
		replaceFile(t, filepath.Join(dir, report.MetricsFile), "/dev/full")
	}))
	wantExit(t, err, exit.Failed, "no space left on device", "step 12 of 12 is saved")
	wantCheckpoint(t, dir, 12)
}

// The metrics are synced before a checkpoint is committed: of /dev/null, which cannot be synced, that is an error.
func TestMetricsAreSyncedWithEachCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, report.MetricsFile)
	_, err := train(t, bigram[float32](1, 0), dir, Set("train.checkpoint.every", 6), atStep(4, func() {
		replaceFile(t, path, "/dev/null")
	}))
	wantExit(t, err, exit.Failed)
	if want := "cannot sync the metrics: sync " + path + ": invalid argument; --log-dir chooses another folder; step " +
		"6 of 12 is saved; to continue, resume from checkpoint "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	wantCheckpoint(t, dir, 6)
}

// unreadableFile makes reading a file fail with EIO: nothing is mapped at the first byte of /proc/self/mem.
func unreadableFile(t *testing.T, path string) (mend func()) {
	t.Helper()
	must(t, os.Rename(path, path+".kept"))
	must(t, os.Symlink("/proc/self/mem", path))
	return func() { must(t, os.Rename(path+".kept", path)) }
}

// A checkpoint that cannot be read now is neither passed over nor replaced, and to start again may help.
func TestUnreadableCheckpoint(t *testing.T) {
	constant := Set("train.schedule.kind", "constant")
	whole, err := train(t, bigram[float32](2, 1), t.TempDir(), constant)
	must(t, err)
	dir := t.TempDir()
	res, err := train(t, bigram[float32](2, 1), dir, Set("train.checkpoint.every", 3), Set("train.steps", 9), constant)
	must(t, err)
	mend := unreadableFile(t, filepath.Join(res.Checkpoint, "manifest.json"))
	before := tree(t, dir)
	_, err = train(t, bigram[float32](2, 1), dir)
	wantExit(t, err, exit.Failed, "input/output error; this checkpoint may be complete, so no older one is used in "+
		"its place: "+
		"make it readable and start again, or continue an older one with --resume STEP")
	_, err = train(t, bigram[float32](2, 1), dir, Resume("9"))
	wantExit(t, err, exit.Failed, "input/output error")
	_, err = train(t, bigram[float32](2, 1), dir, Resume(res.Checkpoint))
	wantExit(t, err, exit.Failed, "input/output error")
	_, err = train(t, bigram[float32](2, 1), t.TempDir(), Set("train.init", res.Checkpoint))
	wantExit(t, err, exit.Failed, "input/output error")
	_, err = train(t, bigram[float32](2, 1), t.TempDir(), Set("train.init", filepath.Join(dir,
		strings.Repeat("x", 300))))
	wantExit(t, err, exit.Failed, "file name too long")
	if after := tree(t, dir); len(after) != len(before) {
		t.Errorf("the folder was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	mend()
	if got, err := train(t, bigram[float32](2, 1), dir, constant); err != nil || got.FirstStep != 10 ||
		string(weights(t, got.Checkpoint)) != string(weights(t, whole.Checkpoint)) {
		t.Errorf("after the disk was mended: %+v, %v", got, err)
	}
}
