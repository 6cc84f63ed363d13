package build

import (
	"context"
	"os"
	"regexp"
	"strings"
)

// fromMachine matches errors of the operating system in what a compiler printed.
var fromMachine = regexp.MustCompile(`no space left on device|[Dd]isk quota exceeded|[Nn]o space left|read-only ` +
	`file system|` +
	`input/output error|cannot allocate memory|too many open files|signal: killed`)

// firstMatch returns the first line that matches.
func firstMatch(pattern *regexp.Regexp, output string) string {
	for line := range strings.Lines(output) {
		if pattern.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// MachineError reports that a compiler failed because this machine ran out of something: disk, memory or open files.
type MachineError struct{ Line string } // the compiler's line

func (e *MachineError) Error() string {
	return "the program could not be built on this machine: " + e.Line + e.fix()
}

// fix says how to solve it.
func (e *MachineError) fix() string {
	switch {
	case strings.Contains(e.Line, "memory"), strings.Contains(e.Line, "killed"):
		return "; free some memory, or compile elsewhere with planc compile"
	case strings.Contains(e.Line, "open files"):
		return "; raise the limit: ulimit -n 4096"
	}
	return "; free some disk space, or name other folders: XDG_CACHE_HOME for planc's builds, GOCACHE for Go's, " +
		"TMPDIR for temporary files"
}

// machineError returns a [*MachineError] for an error of a full disk, else the error itself.
func machineError(err error) error {
	if err != nil && fromMachine.MatchString(err.Error()) {
		return &MachineError{Line: err.Error()}
	}
	return err
}

// noSpace returns which of the folders needed for compiling cannot take another file, with the system's error; "" if
// all can.
func (t toolchain) noSpace(ctx context.Context, src string) string {
	out, err := t.command(ctx, src, "env", "GOCACHE").Output()
	if err != nil {
		return ""
	}
	for _, dir := range []string{strings.TrimSpace(string(out)), src, os.TempDir()} {
		if err := tryWrite(dir); err != nil && fromMachine.MatchString(err.Error()) {
			return err.Error()
		}
	}
	return ""
}

// tryWrite writes a file as large as a small package, and removes it.
func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, "planc-*.partial")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, 1<<18)); err != nil {
		return err
	}
	return f.Sync()
}
