package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
)

// call runs planc in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// full is standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// What cannot be written is said once, and is no success.
func TestFullDisk(t *testing.T) {
	var errs bytes.Buffer
	code := run([]string{"models"}, strings.NewReader(""), full{}, &errs)
	if want := "planc: write the result: no space left on device\n"; code != exitFailed || errs.String() != want {
		t.Errorf("exit code %d, %q; want %d, %q", code, errs.String(), exitFailed, want)
	}
}

// A cache that cannot be made names the way out.
func TestNoCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", file)
	code, _, errs := call("compile", "../../examples/opticks/planc.yaml", "-o", filepath.Join(t.TempDir(), "train"))
	want := "planc: make the build cache: mkdir " + file +
		": not a directory; XDG_CACHE_HOME names another folder for it\n"
	if runtime.GOOS == "linux" && (code != exitFailed || !strings.HasSuffix(errs, want)) {
		t.Errorf("exit code %d, %q; want %d, %q", code, errs, exitFailed, want)
	}
}

// A panic ends at the boundary, in a file and a message.
func TestBug(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	a := &app{Console: console.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, true)}
	err := bug([]string{"plan"}, "passes: grad broke the program\nlong dump", []byte("goroutine 1\n"))
	if code := a.fail(err); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	text := a.Stderr.To.(*bytes.Buffer).String()
	if !strings.HasPrefix(text, "bug in planc: passes: grad broke the program\n") {
		t.Errorf("message %q", text)
	}
	var b *bugError
	if !errors.As(err, &b) {
		t.Fatalf("%T", err)
	}
	data, readErr := os.ReadFile(b.file)
	if readErr != nil || !strings.Contains(string(data), "long dump") ||
		!strings.Contains(string(data), "goroutine 1") {
		t.Errorf("the file holds %q, %v", data, readErr)
	}
}

// Every command takes -h, prints to stdout, and has no short flag but the five.
func TestHelpAndShortFlags(t *testing.T) {
	commands := (&app{Console: &console.Console{}}).root().Commands()
	for _, c := range commands {
		code, out, errs := call(c.Name(), "-h")
		if code != 0 || errs != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("planc %s -h: %d %q %q", c.Name(), code, out, errs)
		}
		if c.Name() != "help" && c.Name() != "completion" &&
			(c.Long == "" || !strings.HasPrefix(c.Example, "  planc "+c.Name())) {
			t.Errorf("planc %s has the help %q and the example %q", c.Name(), c.Long, c.Example)
		}
		checkShort(t, c)
	}
}

func checkShort(t *testing.T, c *cobra.Command) {
	t.Helper()
	for _, letter := range "abcdefgijklmnprstuwxyzABDEFGHIJKLMNOPQRSTUVWXYZ" {
		if c.Flags().ShorthandLookup(string(letter)) != nil ||
			c.InheritedFlags().ShorthandLookup(string(letter)) != nil {
			t.Errorf("planc %s has flag -%c", c.Name(), letter)
		}
	}
}

// A failure with --json is one document on stdout, whatever failed.
func TestFailuresAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"plna", "--json"}, {"plan", "--json", "--nosuch"}, {"plan", "--json"},
		{"plan", "nosuch.yaml", "--json"},
		{"explain", "--json", "--model", "gpt2-124", "--cluster", "dgx-h10", "--global-batch", "0", "--seq-len", "x"}} {
		code, out, errs := call(args...)
		var doc struct{ Error failureDoc }
		dec := json.NewDecoder(strings.NewReader(out))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&doc); err != nil || dec.More() {
			t.Errorf("%q prints %q: %v", args, out, err)
			continue
		}
		if code != exitInput || doc.Error.Code == "" || doc.Error.Message == "" || len(doc.Error.Diagnostics) == 0 ||
			errs == "" {
			t.Errorf("%q: exit %d, %+v, stderr %q", args, code, doc.Error, errs)
		}
	}
}
