// Command try runs what the README begins with. It imports the standard library only, so that Go builds it at once, and
// it writes a line at least each second while Go builds planc or tests it.
//
//	go run -v ./try             builds planc, which then plans, compiles and trains the example
//	go run -v ./try COMMAND...  builds planc and runs it with these arguments
//	go run -v ./try test        builds everything and runs the tests (go test ./...); more arguments are go test's
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"run", "examples/opticks/planc.yaml"}
	}
	code, err := try(args, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "try:", err)
	}
	os.Exit(code)
}

// try runs the command of the arguments and returns its exit code.
func try(args []string, stdout, stderr io.Writer) (code int, err error) {
	if args[0] == "test" {
		if code, err := watched(stdout, stderr, "building", "go", "build", "-v", "./..."); code != 0 || err != nil {
			return code, err
		}
		return watched(stdout, stderr, "testing", "go", slices.Concat([]string{"test"}, args[1:], []string{"./..."})...)
	}
	dir, err := os.MkdirTemp("", "planc-try-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	planc := filepath.Join(dir, "planc"+executableSuffix)
	code, err = watched(stdout, stderr, "building planc", "go", "build", "-v", "-o", planc, "./cmd/planc")
	if code != 0 || err != nil {
		return code, err
	}
	return run(exec.Command(planc, args...), stdout, stderr)
}

// run runs a command with this process's input and returns its exit code. An interrupt reaches the command too, because
// a terminal sends it to all processes of the group; this process waits until the command has ended.
func run(c *exec.Cmd, stdout, stderr io.Writer) (code int, err error) {
	forward, stop := signals()
	defer stop()
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, stdout, stderr
	if err := c.Start(); err != nil {
		return 1, err
	}
	go forward(c.Process)
	var exit *exec.ExitError
	err = c.Wait()
	if errors.As(err, &exit) {
		return max(1, exit.ExitCode()), nil
	}
	return 0, err
}

// watched runs a command and, in each second in which it writes nothing, writes what is done and for how long.
func watched(stdout, stderr io.Writer, what, name string, args ...string) (code int, err error) {
	w := &watch{last: time.Now()}
	start, done := time.Now(), make(chan struct{})
	var ticker sync.WaitGroup
	ticker.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				w.remind(stderr, fmt.Sprintf("%s ... %.0f s\n", what, time.Since(start).Seconds()))
			}
		}
	})
	code, err = run(exec.Command(name, args...), w.on(stdout), w.on(stderr))
	close(done)
	ticker.Wait()
	return code, err
}

// quiet is how long a command may write nothing until a line says that it still runs.
const quiet = 800 * time.Millisecond

// watch knows when a command wrote last.
type watch struct {
	mu   sync.Mutex
	last time.Time
}

// on returns a writer to another that notes when it was written to.
func (w *watch) on(to io.Writer) io.Writer { return watchedWriter{w, to} }

// remind writes a line if nothing was written for a while.
func (w *watch) remind(to io.Writer, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.last) < quiet {
		return
	}
	w.last = time.Now()
	_, _ = io.WriteString(to, line) // the reader of these lines may be gone; the command goes on
}

type watchedWriter struct {
	watch *watch
	to    io.Writer
}

func (w watchedWriter) Write(p []byte) (int, error) {
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	w.watch.last = time.Now()
	return w.to.Write(p)
}
