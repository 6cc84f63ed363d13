package ckpt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// crashFS is the disk until its operations run out; after that the process is dead and nothing works.
// What was not synced may then be lost: see lose.
type crashFS struct {
	left    int // operations
	err     error
	files   map[string]bool // path to synced
	folders map[string]bool
	renames [][2]string // since their folder was synced
	ops     []string
}

var errCrash = errors.New("the machine stopped")

func newCrashFS(left int, err error) *crashFS {
	return &crashFS{left: left, err: err, files: map[string]bool{}, folders: map[string]bool{}}
}

func (c *crashFS) op(format string, args ...any) error {
	c.left--
	if c.left < 0 {
		return c.err
	}
	c.ops = append(c.ops, fmt.Sprintf(format, args...))
	return nil
}

func (c *crashFS) MkdirAll(path string) error {
	return errors.Join(c.op("mkdirall"), run(c, func() error { return osFS{}.MkdirAll(path) }))
}

// run does the operation if the disk still works.
func run(c *crashFS, do func() error) error {
	if c.left < 0 {
		return c.err
	}
	return do()
}

func (c *crashFS) Mkdir(path string) error {
	if err := c.op("mkdir"); err != nil {
		return err
	}
	c.folders[path] = false
	return osFS{}.Mkdir(path)
}

func (c *crashFS) Create(path string) (syncFile, error) {
	if err := c.op("create %s", filepath.Base(path)); err != nil {
		return nil, err
	}
	f, err := osFS{}.Create(path)
	if err != nil {
		return nil, err
	}
	c.files[path], c.folders[filepath.Dir(path)] = false, false
	return &crashFile{c, f, path}, nil
}

func (c *crashFS) SyncDir(path string) error {
	if err := c.op("syncdir"); err != nil {
		return err
	}
	c.folders[path] = true
	c.renames = slices.DeleteFunc(c.renames, func(r [2]string) bool { return filepath.Dir(r[1]) == path })
	return osFS{}.SyncDir(path)
}

func (c *crashFS) Rename(from, to string) error {
	if err := c.op("rename"); err != nil {
		return err
	}
	for _, m := range []map[string]bool{c.files, c.folders} {
		for path, synced := range m {
			if path == from || strings.HasPrefix(path, from+"/") {
				delete(m, path)
				m[to+strings.TrimPrefix(path, from)] = synced
			}
		}
	}
	c.renames = append(c.renames, [2]string{from, to})
	return osFS{}.Rename(from, to)
}

func (c *crashFS) RemoveAll(path string) error {
	if err := c.op("removeall"); err != nil {
		return err
	}
	for _, m := range []map[string]bool{c.files, c.folders} {
		for p := range m {
			if p == path || strings.HasPrefix(p, path+"/") {
				delete(m, p)
			}
		}
	}
	return osFS{}.RemoveAll(path)
}

// lose is a power failure. With renames, those that were not synced are undone; the disk may do either.
func (c *crashFS) lose(renames bool) {
	for path, synced := range c.files {
		if !synced {
			if info, err := os.Stat(path); err == nil {
				os.Truncate(path, info.Size()/2)
			}
		}
		if !c.folders[filepath.Dir(path)] {
			os.Remove(path)
		}
	}
	for _, r := range slices.Backward(c.renames) {
		if renames {
			os.Rename(r[1], r[0])
		}
	}
}

type crashFile struct {
	c    *crashFS
	f    syncFile
	path string
}

// Write writes half when the machine stops in the middle.
func (f *crashFile) Write(p []byte) (int, error) {
	if err := f.c.op("write"); err != nil {
		f.f.Write(p[:len(p)/2])
		return len(p) / 2, err
	}
	return f.f.Write(p)
}

func (f *crashFile) Sync() error {
	if err := f.c.op("sync"); err != nil {
		return err
	}
	f.c.files[f.path] = true
	return f.f.Sync()
}

func (f *crashFile) Close() error {
	f.f.Close()
	return f.c.op("close")
}

// Wherever a save stops, the newest checkpoint of the folder is the one before, or the new one, whole;
// the next save of the same step works, whether or not Clean ran before it.
func TestCrashAtEveryOperation(t *testing.T) {
	for _, replaced := range []bool{false, true} { // is there a checkpoint of the same step already?
		for _, power := range []string{"stays", "fails", "fails, renames undone"} {
			done := false
			for n := 0; !done; n++ {
				done = crashAt(t, n, replaced, power)
				if n > 100 {
					t.Fatal("a save of more than 100 operations")
				}
			}
		}
	}
}

func crashAt(t *testing.T, n int, replaced bool, power string) (done bool) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	mustSave(t, dir, 1, 10)
	if replaced {
		mustSave(t, dir, 2, 15)
	}
	c := newCrashFS(n, errCrash)
	_, err := save(c, dir, Manifest{Step: 2, Samples: 2}, contents(20))
	done = err == nil
	if !done && !errors.Is(err, errCrash) {
		t.Fatalf("operation %d: %v", n, err)
	}
	if power != "stays" {
		c.lose(power != "fails")
	}
	what := fmt.Sprintf("after %v (replaced %t, power %s)", c.ops, replaced, power)
	check := func() int64 {
		t.Helper()
		got, skipped, err := Newest(dir)
		if err != nil || got == nil {
			t.Fatalf("%s: no checkpoint: %v, %v", what, skipped, err)
		}
		step, value := got.Manifest.Step, firstValue(t, got)
		old := step == 1 && value == 10 && !replaced || step == 2 && value == 15 && replaced
		if isNew := step == 2 && value == 20; !isNew && (!old || done) {
			t.Errorf("%s: step %d with value %g", what, step, value)
		}
		return step
	}
	before := check()
	if n%2 == 0 {
		if _, err := Clean(dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if after := check(); after != before {
			t.Errorf("%s: step %d, and %d after Clean", what, before, after)
		}
		if list, _ := filepath.Glob(filepath.Join(dir, ".*")); len(list) > 0 {
			t.Errorf("%s: Clean leaves %v", what, list)
		}
		if list, _ := filepath.Glob(filepath.Join(dir, "*"+oldSuffix)); len(list) > 0 {
			t.Errorf("%s: Clean leaves %v", what, list)
		}
	}
	mustSave(t, dir, 2, 30)
	if got, _, _ := Newest(dir); got == nil || firstValue(t, got) != 30 {
		t.Errorf("%s: the next save is not the newest", what)
	}
	return done
}

// A failure that is no crash leaves nothing behind and says what to do.
func TestFailedSaveCleansUp(t *testing.T) {
	for n := 2; n < 12; n++ {
		dir := t.TempDir()
		c := newCrashFS(n, errCrash)
		_, err := save(&failOnce{c}, dir, Manifest{Step: 2}, contents(20))
		if err == nil {
			t.Fatalf("operation %d did not fail", n)
		}
		if list, _ := os.ReadDir(dir); len(list) > 0 {
			t.Errorf("a save that failed at operation %d leaves %v", n, list)
		}
	}
}

// failOnce is a disk that still removes files after an operation failed.
type failOnce struct{ *crashFS }

func (f *failOnce) RemoveAll(path string) error { return os.RemoveAll(path) }

// A disk that is full at any operation of a save costs no checkpoint that was committed: the error says how much is
// needed, the folder is as it was, and the same save works when there is space again.
func TestDiskFullAtEveryOperation(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		dir := filepath.Join(t.TempDir(), "checkpoints")
		mustSave(t, dir, 1, 10)
		c := newCrashFS(n, syscall.ENOSPC)
		saved, err := save(&failOnce{c}, dir, Manifest{Step: 2}, contents(20))
		done = err == nil
		want := fmt.Sprintf("; it needs %d bytes: free some space, or choose another folder with --checkpoint-dir",
			size(contents(20)))
		if !done && (!errors.Is(err, syscall.ENOSPC) || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("after %v: %v, want %q", c.ops, err, want)
		}
		got, skipped, err := Newest(dir)
		renamed := slices.Contains(c.ops, "rename") // only the sync of the folder has failed
		switch {
		case err != nil || len(skipped) > 0 || got == nil:
			t.Fatalf("after %v: %v, %v", c.ops, skipped, err)
		case done && got.Path != saved.Path, !done && !renamed && (got.Manifest.Step != 1 || firstValue(t, got) != 10):
			t.Errorf("after %v: the newest checkpoint is %s", c.ops, got.Path)
		}
		if list, _ := filepath.Glob(filepath.Join(dir, tmpPrefix+"*")); len(list) > 0 {
			t.Errorf("after %v: left over %v", c.ops, list)
		}
		mustSave(t, dir, 2, 30)
		if got, _, _ := Newest(dir); got == nil || firstValue(t, got) != 30 {
			t.Errorf("after %v: the next save is not the newest", c.ops)
		}
		if n > 100 {
			t.Fatal("a save of more than 100 operations")
		}
	}
}
