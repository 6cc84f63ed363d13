//go:build unix

package build_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/planc-dev/planc/codegen/build"
)

// damaged builds hello, changes the cached binary and builds again.
func damaged(t *testing.T, harm func(binary string) error) (build.Request, build.Result) {
	t.Helper()
	r := request(t, map[string]string{"main.go": hello})
	if err := harm(must(t, r).Binary); err != nil {
		t.Fatal(err)
	}
	r.Dir, r.Out = t.TempDir(), "bin"
	return r, must(t, r)
}

// A binary that a power cut left empty, or that something overwrote, is not taken from the cache: it is compiled again.
func TestDamagedCache(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"power cut": func(binary string) error { return os.Truncate(binary, 0) },
		"overwritten": func(binary string) error {
			return os.WriteFile(binary, []byte("#!/bin/sh\necho another program\n"), 0o700)
		},
	} {
		r, got := damaged(t, harm)
		if got.Cached || run(t, got.Binary) != "hello" {
			t.Errorf("%s: %+v", name, got)
		}
		if second := must(t, r); !second.Cached {
			t.Errorf("%s: the next build is not cached", name)
		}
	}
}

// The cache and all in it are this user's alone, whatever the umask.
func TestCacheIsPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	r := request(t, map[string]string{"main.go": hello})
	binary := must(t, r).Binary
	seen := 0
	err := filepath.WalkDir(filepath.Join(r.Cache, "build"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o600)
		if d.IsDir() || path == binary {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), want)
		}
		seen++
		return err
	})
	if err != nil || seen < 8 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// A cache that others can write is refused, with what to do about it; one that others can only read becomes private.
func TestSharedCache(t *testing.T) {
	r := request(t, map[string]string{"main.go": hello})
	root := filepath.Join(r.Cache, "build")
	must(t, r)
	for _, mode := range []fs.FileMode{0o777, 0o775, 0o1777, 0o702} {
		if err := syscall.Chmod(root, uint32(mode)); err != nil {
			t.Fatal(err)
		}
		_, err := build.Build(t.Context(), r)
		var shared *build.SharedCacheError
		if !errors.As(err, &shared) || shared.Dir != root ||
			!strings.Contains(err.Error(), "remove it (rm -r "+root+")") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := must(t, r); !got.Cached {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(root); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// A cache that belongs to somebody else is refused.
func TestOtherUsersCache(t *testing.T) {
	r := request(t, map[string]string{"main.go": hello})
	root := filepath.Join(r.Cache, "build")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(root, 12345, 12345); err != nil {
		t.Skip("only root can give a folder away")
	}
	if _, err := build.Build(t.Context(), r); err == nil ||
		!strings.Contains(err.Error(), "belongs to user 12345, and planc runs as user 0") {
		t.Errorf("%v", err)
	}
}

// -o replaces a link; what it led to stays as it is.
func TestOutIsLink(t *testing.T) {
	r := request(t, map[string]string{"main.go": hello})
	r.Dir, r.Out = t.TempDir(), "bin"
	victim := filepath.Join(r.Dir, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(r.Dir, "bin")); err != nil {
		t.Fatal(err)
	}
	got := must(t, r)
	if data := read(t, victim); data != "mine" || run(t, got.Binary) != "hello" {
		t.Errorf("the link's target holds %d bytes", len(data))
	}
}
