package ckpt

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
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
	if again, err := Lock(dir); err != nil {
		t.Errorf("after the release: %v", err)
	} else {
		again()
	}
}

func TestLockWhereNothingCanBeMade(t *testing.T) {
	file := tempFile(t, nil)
	if _, err := Lock(filepath.Join(file, "checkpoints")); err == nil || !strings.Contains(err.Error(), "--checkpoint-dir") {
		t.Errorf("below a file: %v", err)
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
	for _, want := range [][]string{{filepath.Join(root, "a", "b"), filepath.Join(root, "a"), root}, {filepath.Join(root, "a", "b")}} {
		d := &dirFS{}
		if err := makeDir(d, dir); err != nil || !slices.Equal(d.synced, want) {
			t.Errorf("synced %v, %v, want %v", d.synced, err, want)
		}
	}
}
