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

	"github.com/planc-dev/planc/runtime/visible"
)

// version is planc's, in --version, --json and the binaries that it builds.
const version = "v0.1.0"

func main() {
	ballast := delayGC()
	reportStops()
	code := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// app is one call of planc: where it reads and writes, and what the flags of all commands say.
type app struct {
	args           []string
	stdin          io.Reader
	stdout, stderr *screen
	quiet, verbose bool
	json           bool   // the failure, if any, is a document
	dir            string // -C
	terminal       bool   // stderr is one
}

// run is planc but for the process: the arguments in, the exit code out. It is the boundary at which a panic
// becomes a message.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	a := &app{args: args, stdin: stdin, json: wantsJSON(args), terminal: isTerminal(stderr)}
	a.stdout, a.stderr = &screen{to: stdout, colour: wantsColour(stdout) && !a.json},
		&screen{to: stderr, colour: wantsColour(stderr)}
	defer func() {
		if fault := recover(); fault != nil {
			code = a.fail(bug(args, fault, debug.Stack()))
		}
	}()
	return a.fail(a.execute())
}

// wantsJSON looks for --json before flags are parsed, so that a wrong flag is reported as a document too.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// bugError is a fault of planc's.
type bugError struct{ fault, file string }

func (e *bugError) Error() string {
	kept := "The details could not be written to a file."
	if e.file != "" {
		kept = "The details are in " + e.file
	}
	return fmt.Sprintf("planc has a bug: %s\n%s\nPlease report it with that file and the job.", e.fault, kept)
}

// bug keeps a panic's stack in a file; people see its first line.
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

// patience is how long work may be silent; tests that compare what is on stderr have more of it.
var patience = 700 * time.Millisecond

// runWithNotice does work that may be long, and says what it is if it is.
func (a *app) runWithNotice(what string, work func() error) error {
	if a.quiet {
		return work()
	}
	said := make(chan struct{})
	say := time.AfterFunc(patience, func() { defer close(said); a.notef("%s ...", what) })
	defer func() {
		if !say.Stop() {
			<-said // what is said is said before what comes of the work
		}
	}()
	return work()
}

// notef tells the user what happens, on stderr, unless -q. What is no note is a screen, or a command to copy: it stays
// as it is.
func (a *app) notef(format string, args ...any) {
	if a.quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if strings.HasPrefix(text, "note: ") {
		text = folded(text)
	}
	fmt.Fprintln(a.stderr, text)
}

// note is a notef under a label, in the columns of a screen.
func (a *app) note(label, text string) {
	a.notef("%s", strings.TrimSuffix(prose(label, 9, text), "\n"))
}

// screen is where planc writes. What it shows of names and files is escaped ([visible.Text]), and several goroutines
// can write whole lines.
type screen struct {
	mu     sync.Mutex
	to     io.Writer
	colour bool // verdicts are coloured
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.colour {
		return visible.Writer(s.to).Write(p)
	}
	_, err := io.WriteString(s.to, coloured(visible.Text(string(p))))
	return len(p), err
}

// line replaces the last line of a terminal by a text, which may be empty.
func (s *screen) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.to, eraseLine+visible.Text(text))
}

// print writes a result to stdout. A failure to write is the world's: a full disk must not look like success.
func (a *app) print(result string) error {
	if _, err := io.Copy(a.stdout, bytes.NewBufferString(result)); err != nil {
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err // without "write /dev/stdout", a name that the user did not give
		}
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
