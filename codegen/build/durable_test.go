package build

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// watchSyncs records the base name of each file and folder that is synced, and whether at that time the file `final`
// had the content wanted.
func watchSyncs(t *testing.T, final, want string) *[]string {
	t.Helper()
	var synced []string
	syncFile = func(f *os.File) error {
		state := "before"
		if data, err := os.ReadFile(final); err == nil && string(data) == want {
			state = "after"
		}
		synced = append(synced, filepath.Base(f.Name())+" "+state)
		return f.Sync()
	}
	t.Cleanup(func() { syncFile = (*os.File).Sync })
	return &synced
}

// A file is synced before it has its name, and its folder afterwards.
func TestReplaceSyncs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "train")
	synced := watchSyncs(t, file, "new")
	if err := ReplaceBytes(file, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := *synced
	if len(got) == 0 || !strings.HasPrefix(got[0], "train.") || !strings.HasSuffix(got[0], ".partial before") {
		t.Fatalf("synced %q", got)
	}
	if _, err := os.Open("/dev/null"); err == nil && !slices.Contains(got[1:], filepath.Base(dir)+" after") {
		t.Errorf("synced %q: not the folder after the rename", got)
	}
}

// What cannot be written or synced leaves the old file and nothing else.
func TestReplaceFails(t *testing.T) {
	for name, stop := range map[string]func() func(io.Writer) error{
		"write": func() func(io.Writer) error { return func(io.Writer) error { return io.ErrShortWrite } },
		"sync": func() func(io.Writer) error {
			syncFile = func(*os.File) error { return io.ErrNoProgress }
			return func(io.Writer) error { return nil }
		},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "train")
		if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := Replace(file, 0o644, stop())
		syncFile = (*os.File).Sync
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		entries, _ := os.ReadDir(dir)
		if data, _ := os.ReadFile(file); string(data) != "old" || len(entries) != 1 {
			t.Errorf("%s: the file holds %q, %d files are in the folder", name, data, len(entries))
		}
	}
}

// Links at the path and at the name that earlier versions wrote under are not written through.
func TestReplaceFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim, file := filepath.Join(dir, "victim"), filepath.Join(dir, "train")
	if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, file); err != nil {
		t.Skip(err)
	}
	names := map[string]bool{}
	for range 2 {
		if err := Replace(file, 0o644, func(w io.Writer) error {
			names[w.(*os.File).Name()] = true
			_, err := io.WriteString(w, "new")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Lstat(file)
	if data, _ := os.ReadFile(victim); err != nil || !info.Mode().IsRegular() || string(data) != "mine" {
		t.Errorf("the link's target holds %q, the file is %v", data, info)
	}
	if len(names) != 2 {
		t.Errorf("the partial file has the same name twice: %v", names)
	}
	if _, err := CreatePartial(filepath.Join(dir, "none", "train"), 0o644); err == nil {
		t.Error("no error in a folder that is not there")
	}
}

// A cache entry is used only as it was sealed.
func TestSealed(t *testing.T) {
	damage := map[string]func(file string) error{
		"empty":        func(file string) error { return os.Truncate(file, 0) },
		"other":        func(file string) error { return os.WriteFile(file, []byte("0ther"), 0o600) },
		"gone":         os.Remove,
		"no digest":    func(file string) error { return os.Remove(file + digestSuffix) },
		"empty digest": func(file string) error { return os.Truncate(file+digestSuffix, 0) },
		"link": func(file string) error {
			if err := os.Rename(file, file+".real"); err != nil {
				return err
			}
			return os.Symlink(file+".real", file)
		},
	}
	for name, harm := range damage {
		dir := t.TempDir()
		partial, file := filepath.Join(dir, "out.partial"), filepath.Join(dir, "out")
		if err := os.WriteFile(partial, []byte("other"), 0o666); err != nil {
			t.Fatal(err)
		}
		synced := watchSyncs(t, file, "other")
		if err := saveWithDigest(partial, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if !matchesDigest(file) || (*synced)[0] != "out.partial before" {
			t.Errorf("%s: a sealed file is not sealed, or not synced first: %v", name, *synced)
		}
		if err := harm(file); err != nil {
			t.Fatal(err)
		}
		if matchesDigest(file) {
			t.Errorf("%s: taken for what was sealed", name)
		}
	}
}
