package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/passes/search"
)

// watched is a search that says where it is until its line was shown.
func watched(t *testing.T, a *app, stderr *bytes.Buffer) string {
	t.Helper()
	p := &search.Problem{}
	if err := a.runSearch(p, func() error {
		for range 40 {
			if p.Watch != nil {
				p.Watch(search.Progress{Done: 1234, Families: 5678, Best: 2.5})
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return stderr.String()
}

// A line of progress is shown on a terminal, and erased at the end; elsewhere a search that takes long says so once.
func TestProgress(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Millisecond
	for _, x := range []struct{ quiet, terminal bool }{{false, true}, {true, true}, {true, false}, {false, false}} {
		var stderr bytes.Buffer
		got := watched(t, &app{quiet: x.quiet, terminal: x.terminal, stderr: &stream{to: &stderr}}, &stderr)
		if x.quiet || !x.terminal {
			if want := map[bool]string{false: "searching ...\n"}[x.quiet]; got != want {
				t.Errorf("%+v: %q", x, got)
			}
			continue
		}
		if !strings.HasPrefix(got, eraseLine+"searching: 1,234 of 5,678 groups of plans, best so far 2.5 s") ||
			!strings.HasSuffix(got, eraseLine) {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

// Searches without a line of progress say that they search.
func TestSearches(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Millisecond
	for _, terminal := range []bool{true, false} {
		var stderr bytes.Buffer
		a := &app{terminal: terminal, stderr: &stream{to: &stderr}}
		if err := a.runSearches(func() error { time.Sleep(50 * time.Millisecond); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := stderr.String(); got != "searching ...\n" {
			t.Errorf("terminal %v: %q", terminal, got)
		}
	}
}

// How many kernels are compiled is said on a terminal, and taken away again; elsewhere nobody watches.
func TestWatchKernels(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = 4 * time.Millisecond
	for _, x := range []struct {
		quiet, terminal, shown bool
	}{{false, true, true}, {true, true, false}, {false, false, false}} {
		var stderr bytes.Buffer
		var r build.KernelRequest
		end := (&app{quiet: x.quiet, terminal: x.terminal, stderr: &stream{to: &stderr}}).watchKernels(&r)
		if (r.Watch != nil) != x.shown {
			t.Fatalf("%+v: watched is %v", x, r.Watch != nil)
		}
		if x.shown {
			r.Watch(12, 31)
			time.Sleep(50 * time.Millisecond)
		}
		end()
		line := eraseLine + "kernels  12 of 31"
		if got := stderr.String(); x.shown != strings.HasPrefix(got, line) ||
			strings.ReplaceAll(got, line, "") != map[bool]string{true: eraseLine}[x.shown] {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

// A note under a label fits a screen.
func TestNoteFitsTheScreen(t *testing.T) {
	var stderr bytes.Buffer
	(&app{stderr: &stream{to: &stderr}}).note("target", strings.Repeat("all ranks run on one CPU, ", 9))
	for i, line := range strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n") {
		if want := map[bool]string{true: "target   all",
			false: "         "}[i == 0]; layout.Width(line) > layout.ScreenWidth ||
			!strings.HasPrefix(line, want) {
			t.Errorf("%q", line)
		}
	}
}

// A file is no terminal, nor is a buffer; and so a search writes no line to them that it takes away again.
func TestNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) || isTerminal(&bytes.Buffer{}) {
		t.Error("a file or a buffer is taken for a terminal")
	}
	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Nanosecond
	var stdout bytes.Buffer
	if code := run([]string{"plan", "--model", "llama3-8b", "--cluster", "dgx-h100", "--global-batch", "128",
		"--seq-len", "8192"}, nil, &stdout, f); code != 0 || stdout.Len() == 0 {
		t.Errorf("code %d, %q", code, stdout.String())
	}
	if text, err := os.ReadFile(f.Name()); err != nil || strings.ReplaceAll(string(text), "searching ...\n", "") != "" {
		t.Errorf("stderr has %q, %v", text, err)
	}
}

// A build says at once that it builds, and how many packages are compiled, of how many: on a line of a terminal,
// elsewhere on lines.
func TestWatchBuild(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = 5 * time.Millisecond
	for _, x := range []struct {
		quiet, terminal bool
		want            []string
	}{
		{want: []string{"building ...\n", "building: 3 packages\n", "building: 57 of 131 packages\n"}},
		{terminal: true, want: []string{"building ...", "building: 3 packages", "building: 57 of 131 packages",
			eraseLine}},
		{quiet: true}, {quiet: true, terminal: true},
	} {
		var stderr bytes.Buffer
		var r build.Request
		end := (&app{quiet: x.quiet, terminal: x.terminal, stderr: &stream{to: &stderr}}).watchBuild(&r)
		for _, at := range [][2]int{{0, 0}, {3, 0}, {57, 131}} {
			if r.Watch != nil && at[0] > 0 {
				r.Watch(at[0], at[1])
			}
			time.Sleep(30 * time.Millisecond)
		}
		end()
		for _, want := range x.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("quiet %v, terminal %v: %q lacks %q", x.quiet, x.terminal, stderr.String(), want)
			}
		}
		if len(x.want) == 0 && stderr.Len() > 0 {
			t.Errorf("with -q: %q", stderr.String())
		}
	}
	calls := 0
	end := repeatEvery(time.Millisecond, func() { calls++ })
	time.Sleep(50 * time.Millisecond)
	end()
	if calls < 2 {
		t.Errorf("%d calls", calls)
	}
}
