package ckpt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What exports left behind that were killed is removed by the next one; what another export writes to, and folders of
// people, stay.
func TestExportRemovesLeftovers(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "a[b]*c")
	killed, running := filepath.Join(parent, ".tmp-out-AAAAAAA2"), filepath.Join(parent, ".tmp-out-AAAAAAA3")
	mine, other := filepath.Join(parent, ".tmp-out-mine"), filepath.Join(parent, ".tmp-another-AAAAAAA2")
	for _, dir := range []string{killed, running, mine, other} {
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, "model.safetensors"),
			[]byte("half"), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(running)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if held, err := tryLock(f); !held || err != nil {
		t.Skip("no locks here")
	}
	out := filepath.Join(parent, "out")
	if err := Export(out, contents(1)[0], 1<<30, nil); err != nil {
		t.Fatal(err)
	}
	for dir, stays := range map[string]bool{killed: false, running: true, mine: true, other: true, out: true} {
		if exists(dir) != stays {
			t.Errorf("%s: there %t, want %t", dir, exists(dir), stays)
		}
	}
	if list, _ := os.ReadDir(parent); len(list) != 4 {
		t.Errorf("the parent has %v", list)
	}
}

func TestVacant(t *testing.T) {
	file := tempFile(t, nil)
	for path, want := range map[string]string{
		file: "checkpoint: " + file +
			" is not a folder, or lies below a file; nothing is overwritten: name another folder",
		filepath.Join(file, "x"): "checkpoint: " + filepath.Join(file, "x") +
			" is not a folder, or lies below a file; nothing is overwritten: name another folder",
		filepath.Dir(file): "checkpoint: " + filepath.Dir(file) + " is not empty (it has " +
			filepath.Base(file) + "); nothing is overwritten: name another folder",
		filepath.Join(t.TempDir()):  "",
		filepath.Join("no", "such"): "",
		strings.Repeat("x", 300):    "checkpoint: open " + strings.Repeat("x", 300) + ": file name too long",
	} {
		err := Vacant(path)
		if got := ""; err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		var input *InputError
		if err != nil && errors.As(err, &input) == strings.Contains(want, "too long") {
			t.Errorf("%v: of the input %t", err, errors.As(err, &input))
		}
	}
}
