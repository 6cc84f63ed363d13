package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/runtime/visible"
)

// version is planc's version, in --version, in --json and in the binaries that it builds.
const version = "v0.1.0"

func main() {
	ballast := delayGC()
	reportStops()
	code := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// app is one invocation of planc: its streams and the flags that all commands have.
type app struct {
	args           []string
	stdin          io.Reader
	stdout, stderr *stream
	quiet, verbose bool
	json           bool   // --json: also print failures as a document
	dir            string // -C
	terminal       bool   // stderr is a terminal
}

// run runs planc with arguments and streams and returns the exit code. It converts a panic to a message.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	a := &app{args: args, stdin: stdin, json: wantsJSON(args), terminal: isTerminal(stderr)}
	a.stdout, a.stderr = &stream{to: stdout, colour: wantsColour(stdout) && !a.json},
		&stream{to: stderr, colour: wantsColour(stderr)}
	defer func() {
		if fault := recover(); fault != nil {
			code = a.fail(bug(args, fault, debug.Stack()))
		}
	}()
	return a.fail(a.execute())
}

// wantsJSON reports whether the arguments contain --json. It runs before flag parsing, so that an invalid flag is
// reported as a document too.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// bugError reports a bug in planc.
type bugError struct{ fault, file string }

func (e *bugError) Error() string {
	details := "The details could not be written to a file."
	if e.file != "" {
		details = "The details are in " + e.file
	}
	return fmt.Sprintf("bug in planc: %s\n%s\nPlease report it with that file and the job.", e.fault, details)
}

// bug returns the error for a panic. It writes the stack to a file; the message has only its first line.
func bug(args []string, fault any, stack []byte) error {
	first, _, _ := strings.Cut(fmt.Sprint(fault), "\n")
	e := &bugError{fault: first}
	f, err := os.CreateTemp("", "planc-bug-*.txt")
	if err != nil {
		return e
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "planc %s %q\n%v\n\n%s", version, args, fault, stack); err == nil {
		e.file = f.Name()
	}
	return e
}

// patience is the time after which long work is reported. Tests that compare stderr increase it.
var patience = 700 * time.Millisecond

// runWithNotice runs work, and prints a notice if it takes long.
func (a *app) runWithNotice(what string, work func() error) error {
	if a.quiet {
		return work()
	}
	printed := make(chan struct{})
	notice := time.AfterFunc(patience, func() { defer close(printed); a.notef("%s ...", what) })
	defer func() {
		if !notice.Stop() {
			<-printed // so that the notice precedes the output of the work
		}
	}()
	return work()
}

// notef prints a line on stderr, unless -q. It wraps only text that begins with "note: ": other text is a screen, or a
// command to copy.
func (a *app) notef(format string, args ...any) {
	if a.quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, "note: ") {
		text = layout.Fold(text)
	}
	fmt.Fprintln(a.stderr, text)
}

// note prints a text with a label, in the columns of a screen, with notef.
func (a *app) note(label, text string) {
	a.notef("%s", strings.TrimSuffix(layout.Prose(label, 9, text), "\n"))
}

// stream is an output stream. It escapes control characters ([visible.Text]), and several goroutines can write to it.
type stream struct {
	mu     sync.Mutex
	to     io.Writer
	colour bool // verdicts are coloured
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.colour {
		return visible.Writer(s.to).Write(p)
	}
	_, err := io.WriteString(s.to, layout.Colour(visible.Text(string(p))))
	return len(p), err
}

// line replaces the current line of a terminal by a text, which may be empty.
func (s *stream) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.to, eraseLine+visible.Text(text))
}

// print writes a result to stdout. It returns write errors, so that a full disk does not look like success.
func (a *app) print(result string) error {
	if _, err := io.Copy(a.stdout, bytes.NewBufferString(result)); err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err // without "write /dev/stdout"
		}
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
