package ckpt

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "checkpoints")
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second lock: %v", err)
	}
	mustSave(t, dir, 1, 1)
	if c, skipped, err := Newest(dir); c == nil || len(skipped) > 0 || err != nil {
		t.Errorf("in a locked folder: %v, %v", skipped, err)
	}
	release()
	if second, err := Lock(dir); err != nil {
		t.Errorf("after the release: %v", err)
	} else {
		second()
	}
}

func TestLockWhereNothingCanBeMade(t *testing.T) {
	file := tempFile(t, nil)
	if _, err := Lock(filepath.Join(file, "checkpoints")); err == nil ||
		!strings.Contains(err.Error(), "--checkpoint-dir") {
		t.Errorf("below a file: %v", err)
	}
}

// readOnlyFS is a folder without write permission. A fake, because the superuser may write anywhere.
type readOnlyFS struct{ osFS }

func (readOnlyFS) Mkdir(path string) error {
	return &os.PathError{Op: "mkdir", Path: path, Err: syscall.EACCES}
}

// A folder that has a lock file but cannot be written is refused when it is locked, and a check leaves nothing in one
// that can.
func TestLockOfAFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	err := tryWrite(readOnlyFS{}, dir)
	const before, after = "checkpoint: cannot write in the folder: mkdir ",
		": permission denied; choose a folder that can be written with --checkpoint-dir"
	if err == nil || !strings.HasPrefix(err.Error(), before) || !strings.HasSuffix(err.Error(), after) ||
		!errors.Is(err, os.ErrPermission) {
		t.Errorf("%v\nwant %s...%s", err, before, after)
	}
	release, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != lockName {
		t.Errorf("%v, %v", entries, err)
	}
	if os.Geteuid() == 0 {
		return // may write anywhere
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	if _, err := Lock(dir); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a folder of mode 555: %v", err)
	}
}

// dirFS records the folders that are synced.
type dirFS struct {
	osFS
	synced []string
}

func (d *dirFS) SyncDir(path string) error {
	d.synced = append(d.synced, path)
	return d.osFS.SyncDir(path)
}

// The names of all folders that a save makes are durable, and of the checkpoints' own folder in any case.
func TestMadeFoldersAreSynced(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b", "c")
	for _, want := range [][]string{{filepath.Join(root, "a", "b"), filepath.Join(root, "a"), root},
		{filepath.Join(root, "a", "b")}} {
		d := &dirFS{}
		if err := makeDir(d, dir); err != nil || !slices.Equal(d.synced, want) {
			t.Errorf("synced %v, %v, want %v", d.synced, err, want)
		}
	}
}
