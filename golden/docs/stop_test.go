package docs_test

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// output collects the output of a command while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *output) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *output) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// A command that Ctrl-C or a signal stops prints a line, and ends by that signal.
func TestStop(t *testing.T) {
	bin := harness.Planc(t)
	w := newWorld(t, bin, "stop")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, command := range []string{"plan", "explain", "compile"} {
			const reads = "reading standard input ...\n"
			var errs output
			cmd := exec.Command(bin, command, "-")
			if command == "compile" {
				cmd.Args = append(cmd.Args, "-o", "train")
			}
			cmd.Dir, cmd.Env, cmd.Stderr = w.dir, w.env, &errs
			stdin, err := cmd.StdinPipe() // without input
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for begin := time.Now(); errs.String() != reads && time.Since(begin) < time.Minute; {
				time.Sleep(10 * time.Millisecond)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it fails because of the signal
			_ = stdin.Close()
			want := reads + "planc: stopped (" + sig.String() + ")\n"
			if got := cmd.ProcessState.String(); errs.String() != want ||
				!strings.HasPrefix(got, "signal: "+sig.String()) {
				t.Errorf("planc %s and %v: %q, %s; want %q", command, sig, errs.String(), got, want)
			}
		}
	}
}
