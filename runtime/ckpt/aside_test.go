package ckpt

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// unreadable makes reading a file fail with EIO: /proc/self/mem is a regular file, and nothing is mapped at its first
// byte.
func unreadable(t *testing.T, path string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/mem")
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/proc/self/mem", path)); err != nil {
		t.Fatal(err)
	}
}

// seal writes a manifest that matches its own checksum, whatever it says.
func seal(t *testing.T, path string, change func(*Manifest)) {
	t.Helper()
	var m Manifest
	b, err := os.ReadFile(filepath.Join(path, manifestName))
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	change(&m)
	b, err = m.encode()
	if err == nil {
		err = os.WriteFile(filepath.Join(path, manifestName), b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A checkpoint that cannot be read may be whole: no older one is taken in its place, and the error is not one of the
// input.
func TestUnreadableIsNotSkipped(t *testing.T) {
	for _, name := range []string{manifestName, "model.safetensors"} {
		dir := t.TempDir()
		mustSave(t, dir, 4, 1)
		path := mustSave(t, dir, 5, 1)
		if name != manifestName {
			seal(t, path, func(m *Manifest) { m.Files[0].Size = 0 }) // what /proc/self/mem says of itself
		}
		unreadable(t, filepath.Join(path, name))
		c, skipped, err := Newest(dir)
		want := "checkpoint: read DIR/step-00000005/" + name +
			": input/output error; this checkpoint may be complete, so no older one is used in its place: " +
			"make it readable and start again, or continue an older one with --resume STEP"
		var input *InputError
		if c != nil || skipped != nil || err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != want {
			t.Errorf("%s:\ngot  %v, %v, %v\nwant %s", name, c, skipped, err, want)
		}
		if errors.As(err, &input) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: error %#v", name, err)
		}
		if _, err := Find(dir, 4); err != nil {
			t.Errorf("the older one: %v", err)
		}
	}
}

// A checkpoint of the same step is set aside, not removed.
func TestSaveSetsAside(t *testing.T) {
	dir := t.TempDir()
	for n, want := range []string{"", "step-00000005.replaced-1", "step-00000005.replaced-2"} {
		saved, err := Save(dir, Manifest{Step: 5}, contents(float32(n)))
		if err != nil || saved.Aside != "" && filepath.Base(saved.Aside) != want || saved.Aside == "" && want != "" {
			t.Fatalf("save %d: %+v, %v; want %q", n, saved, err, want)
		}
	}
	for name, value := range map[string]float32{"step-00000005": 2, "step-00000005.replaced-1": 0,
		"step-00000005.replaced-2": 1} {
		if c, err := Open(filepath.Join(dir, name)); err != nil || firstValue(t, c) != value {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An interrupted replacement is ended without removing anything that may be whole.
func TestCleanSetsAside(t *testing.T) {
	type state struct{ path, old string } // whole, damaged, unreadable or ""
	for _, tt := range []struct {
		is    state
		after []string
		fails bool
	}{
		{state{"whole", "whole"}, []string{"step-00000005", "step-00000005.replaced-1"}, false},
		{state{"damaged", "whole"}, []string{"step-00000005", "step-00000005.replaced-1"}, false},
		{state{"", "whole"}, []string{"step-00000005"}, false},
		{state{"damaged", "damaged"}, []string{"step-00000005", "step-00000005.old"}, false},
		{state{"unreadable", "whole"}, []string{"step-00000005", "step-00000005.old"}, true},
		{state{"damaged", "unreadable"}, []string{"step-00000005", "step-00000005.old"}, true},
	} {
		dir := t.TempDir()
		for name, is := range map[string]string{"step-00000005.old": tt.is.old, "step-00000005": tt.is.path} {
			if is == "" {
				continue
			}
			path := mustSave(t, t.TempDir(), 5, 1)
			switch is {
			case "damaged":
				os.Truncate(filepath.Join(path, "model.safetensors"), 3)
			case "unreadable":
				unreadable(t, filepath.Join(path, manifestName))
			}
			if err := os.Rename(path, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		aside, err := Clean(dir)
		if (err != nil) != tt.fails || (len(aside) == 1) != slices.Contains(tt.after, "step-00000005.replaced-1") {
			t.Errorf("%+v: set aside %v, %v", tt.is, aside, err)
		}
		list, _ := os.ReadDir(dir)
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		if !slices.Equal(names, tt.after) {
			t.Errorf("%+v: the folder holds %v, want %v", tt.is, names, tt.after)
		}
		if _, err := Open(filepath.Join(dir, "step-00000005")); !tt.fails && tt.is.old == "whole" && err != nil {
			t.Errorf("%+v: %v", tt.is, err)
		}
	}
}

// What stands in place of a file and is none is refused at once: a pipe would wait for a writer, and a device may have
// no end.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	for _, name := range []string{manifestName, "model.safetensors"} {
		for what, put := range map[string]func(path string) error{
			"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o666) },
			"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
			"a folder": func(path string) error { return os.Mkdir(path, 0o777) },
		} {
			path := mustSave(t, t.TempDir(), 5, 1)
			file := filepath.Join(path, name)
			if err := errors.Join(os.Remove(file), put(file)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path)
			var input *InputError
			want := "checkpoint: " + file + " is " + what + "; a checkpoint consists of regular files"
			if !errors.As(err, &input) || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if _, err := OpenFile(file); err == nil || err.Error() != want {
				t.Errorf("OpenFile: got  %v\nwant %s", err, want)
			}
		}
	}
	path := mustSave(t, t.TempDir(), 5, 1)
	if err := os.Truncate(filepath.Join(path, manifestName), maxManifest+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil ||
		!strings.HasSuffix(err.Error(),
			"manifest.json has more than 67108864 bytes; no file of this kind is that long") {
		t.Errorf("a manifest without end: %v", err)
	}
}

// Counts that no training has would make a run loop, or overflow.
func TestManifestCountsAreBounded(t *testing.T) {
	const least, limit = -1 << 63, 1<<63 - 1
	fields := map[string]func(m *Manifest) *int64{
		"step":    func(m *Manifest) *int64 { return &m.Step },
		"updates": func(m *Manifest) *int64 { return &m.Updates },
		"samples": func(m *Manifest) *int64 { return &m.Samples },
		"tokens":  func(m *Manifest) *int64 { return &m.Tokens },
	}
	for name, field := range fields {
		for _, x := range []int64{least, -1, maxCount + 1, limit} {
			m := Manifest{Step: 5}
			*field(&m) = x
			b, err := m.encode()
			if err != nil {
				t.Fatal(err)
			}
			_, err = decodeManifest(b)
			var input *InputError
			if !errors.As(err, &input) || !strings.HasPrefix(err.Error(), "manifest.json has "+name+" ") &&
				name != "step" {
				t.Errorf("%s %d: %v", name, x, err)
			}
		}
	}
	for _, tt := range []struct {
		m    Manifest
		want string
	}{
		{Manifest{Samples: -1}, "manifest.json has samples -1; it must be from 0 to 9007199254740992"},
		{Manifest{Step: 3, Updates: 4}, "manifest.json has updates 4; it must be from 0 to 3"},
		{Manifest{Files: []FileInfo{{"x", -1, ""}}},
			"manifest.json has size -1 for the file \"x\"; it must be at least 0"},
	} {
		b, err := tt.m.encode()
		if err == nil {
			_, err = decodeManifest(b)
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	b, err := Manifest{Step: maxCount, Updates: maxCount, Samples: maxCount, Tokens: maxCount}.encode()
	if err == nil {
		_, err = decodeManifest(b)
	}
	if err != nil {
		t.Errorf("the largest counts: %v", err)
	}
}
