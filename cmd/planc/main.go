package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
)

// version is planc's version, in --version, in --json and in the binaries that it builds.
const version = "v0.1.0"

func main() {
	ballast := process.DelayGC()
	process.ReportStops(stopPrefix())
	code := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// stopPrefix returns what precedes the message that planc was stopped: on a terminal, it erases a line of progress.
func stopPrefix() string {
	if console.IsTerminal(os.Stderr) {
		return console.EraseLine
	}
	return ""
}

// app is one invocation of planc: its console, and the flags that all commands have.
type app struct {
	*console.Console
	args []string
	json bool   // --json: also print failures as a document
	dir  string // -C
}

// run runs planc with arguments and streams and returns the exit code. It converts a panic to a message.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	a := &app{args: args, json: wantsJSON(args)}
	a.Console = console.New(stdin, stdout, stderr, a.json)
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
