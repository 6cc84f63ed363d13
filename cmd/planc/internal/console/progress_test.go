package console

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/passes/search"
)

// watched is a search that says where it is until its line was shown.
func watched(t *testing.T, c *Console, stderr *bytes.Buffer) string {
	t.Helper()
	p := &search.Problem{}
	if err := c.RunSearch(p, func() error {
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
	defer func(was time.Duration) { Patience = was }(Patience)
	Patience = time.Millisecond
	for _, x := range []struct{ quiet, terminal bool }{{false, true}, {true, true}, {true, false}, {false, false}} {
		var stderr bytes.Buffer
		got := watched(t, &Console{Quiet: x.quiet, terminal: x.terminal, Stderr: &Stream{To: &stderr}}, &stderr)
		if x.quiet || !x.terminal {
			if want := map[bool]string{false: "searching ...\n"}[x.quiet]; got != want {
				t.Errorf("%+v: %q", x, got)
			}
			continue
		}
		if !strings.HasPrefix(got, EraseLine+"searching: 1,234 of 5,678 groups of plans, best so far 2.5 s") ||
			!strings.HasSuffix(got, EraseLine) {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

// Searches without a line of progress say that they search.
func TestSearches(t *testing.T) {
	defer func(was time.Duration) { Patience = was }(Patience)
	Patience = time.Millisecond
	for _, terminal := range []bool{true, false} {
		var stderr bytes.Buffer
		c := &Console{terminal: terminal, Stderr: &Stream{To: &stderr}}
		if err := c.RunSearches(func() error { time.Sleep(50 * time.Millisecond); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := stderr.String(); got != "searching ...\n" {
			t.Errorf("terminal %v: %q", terminal, got)
		}
	}
}

// How many kernels are compiled is said on a terminal, and taken away again; elsewhere nobody watches.
func TestWatchKernels(t *testing.T) {
	defer func(was time.Duration) { Patience = was }(Patience)
	Patience = 4 * time.Millisecond
	for _, x := range []struct {
		quiet, terminal, shown bool
	}{{false, true, true}, {true, true, false}, {false, false, false}} {
		var stderr bytes.Buffer
		var r build.KernelRequest
		end := (&Console{Quiet: x.quiet, terminal: x.terminal, Stderr: &Stream{To: &stderr}}).WatchKernels(&r)
		if (r.Watch != nil) != x.shown {
			t.Fatalf("%+v: watched is %v", x, r.Watch != nil)
		}
		if x.shown {
			r.Watch(12, 31)
			time.Sleep(50 * time.Millisecond)
		}
		end()
		line := EraseLine + "kernels  12 of 31"
		if got := stderr.String(); x.shown != strings.HasPrefix(got, line) ||
			strings.ReplaceAll(got, line, "") != map[bool]string{true: EraseLine}[x.shown] {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

// A note under a label fits a screen.
func TestNoteFitsTheScreen(t *testing.T) {
	var stderr bytes.Buffer
	(&Console{Stderr: &Stream{To: &stderr}}).Note("target", strings.Repeat("all ranks run on one CPU, ", 9))
	for i, line := range strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n") {
		if want := map[bool]string{true: "target   all",
			false: "         "}[i == 0]; layout.Width(line) > layout.ScreenWidth ||
			!strings.HasPrefix(line, want) {
			t.Errorf("%q", line)
		}
	}
}

// A build says at once that it builds, and how many packages are compiled, of how many: on a line of a terminal,
// elsewhere on lines.
func TestWatchBuild(t *testing.T) {
	defer func(was time.Duration) { Patience = was }(Patience)
	Patience = 5 * time.Millisecond
	for _, x := range []struct {
		quiet, terminal bool
		want            []string
	}{
		{want: []string{"building ...\n", "building: 3 packages\n", "building: 57 of 131 packages\n"}},
		{terminal: true, want: []string{"building ...", "building: 3 packages", "building: 57 of 131 packages",
			EraseLine}},
		{quiet: true}, {quiet: true, terminal: true},
	} {
		var stderr sharedText
		var r build.Request
		end := (&Console{Quiet: x.quiet, terminal: x.terminal, Stderr: &Stream{To: &stderr}}).WatchBuild(&r)
		for i, at := range [][2]int{{0, 0}, {3, 0}, {57, 131}} {
			if r.Watch != nil && at[0] > 0 {
				r.Watch(at[0], at[1])
			}
			if i < len(x.want) {
				stderr.await(x.want[i])
			} else {
				time.Sleep(10 * time.Millisecond)
			}
		}
		end()
		for _, want := range x.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("quiet %v, terminal %v: %q lacks %q", x.quiet, x.terminal, stderr.String(), want)
			}
		}
		if text := stderr.String(); len(x.want) == 0 && text != "" {
			t.Errorf("with -q: %q", text)
		}
	}
}

// A function is called again and again until the end.
func TestRepeatEvery(t *testing.T) {
	calls := make(chan bool, 1000)
	end := repeatEvery(time.Millisecond, func() { calls <- true })
	<-calls
	<-calls
	end()
}

// sharedText is a text that one goroutine writes while another one reads it.
type sharedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sharedText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *sharedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the text contains a part, for ten seconds at most.
func (s *sharedText) await(part string) {
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
		if strings.Contains(s.String(), part) {
			return
		}
	}
}
