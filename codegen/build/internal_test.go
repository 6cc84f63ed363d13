package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Of many builds the most recently used stay.
func TestTrim(t *testing.T) {
	root, now := t.TempDir(), time.Now()
	for i := range keep + 5 {
		dir := filepath.Join(root, fmt.Sprintf("%02d", i))
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now, now.Add(time.Duration(-i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	touch(filepath.Join(root, fmt.Sprint(keep+4)))
	if err := os.Mkdir(filepath.Join(root, "lock"), 0o777); err != nil {
		t.Fatal(err)
	}
	trim(root, keep)
	for i := range keep + 5 {
		_, err := os.Stat(filepath.Join(root, fmt.Sprintf("%02d", i)))
		if want := i < keep-1 || i == keep+4; (err == nil) != want {
			t.Errorf("build %d, used %d minutes ago: kept %v", i, i, err == nil)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "lock")); err != nil {
		t.Error("the locks are gone")
	}
}

// A build for this machine is not the one that GOOS and GOARCH ask for; any other is.
func TestHost(t *testing.T) {
	t.Setenv("GOOS", "plan9")
	t.Setenv("GOARCH", "386")
	for host, want := range map[bool]string{false: "plan9/386", true: runtime.GOOS + "/" + runtime.GOARCH} {
		tool, err := findGo(t.Context(), t.TempDir(), host)
		if err != nil {
			t.Fatal(err)
		}
		if got := tool.env["GOOS"] + "/" + tool.env["GOARCH"]; got != want {
			t.Errorf("host %v: builds for %s, want %s", host, got, want)
		}
	}
}

// A go command that fails is quoted.
func TestGoComplains(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the go command is a shell script")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\necho go: no such toolchain >&2\nexit 3\n"),
		0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if _, err := findGo(t.Context(), dir, false); err == nil ||
		!strings.HasSuffix(err.Error(), "exit status 3\ngo: no such toolchain") {
		t.Errorf("the error is %v", err)
	}
}

// The private module asks for the Go that planc itself asks for.
func TestMinGo(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if got := regexp.MustCompile(`(?m)^go (.*)$`).FindSubmatch(mod); got == nil || string(got[1]) != minGo {
		t.Errorf("go.mod says %q, minGo is %s", got, minGo)
	}
}

// What the machine lacks is not a fault of planc's, also where the compiler then complains about the source.
func TestBlame(t *testing.T) {
	exit := exec.Command("go", "no-such-command").Run()
	tool, err := findGo(t.Context(), t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{
		"# m\ncompile: writing output: write $WORK/b009/_pkg_.a: no space left on device\nmain.go:3:2: could not " +
			"import fmt (open : no such file or directory)\n": "the program could not be built on this machine: " +
			"compile: writing output: write $WORK/b009/_pkg_.a: no space left on device; " +
			"free some disk space, or name other folders: XDG_CACHE_HOME for planc's builds, GOCACHE for Go's, " +
			"TMPDIR for temporary files",
		"planc.generated/train: /usr/lib/go/pkg/tool/linux_amd64/compile: signal: killed\n": "the program could not " +
			"be built on this machine: " +
			"planc.generated/train: /usr/lib/go/pkg/tool/linux_amd64/compile: signal: killed; free some memory, or " +
			"compile elsewhere with planc compile",
		"main.go:3:2: undefined: x\n": "the Go that planc generated does not compile. This is a fault in planc; " +
			"please report it with\n" +
			"the job file and the generated files, which are kept in\nSRC\n\nmain.go:3:2: undefined: x",
	} {
		if got := tool.blame(t.Context(), exit, "SRC", output).Error(); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", output, got, want)
		}
	}
	full := &fs.PathError{Op: "write", Path: "x", Err: errors.New("no space left on device")}
	if got := machineError(full); !errors.As(got, new(*MachineError)) {
		t.Errorf("a full disk is %v", got)
	}
}

// Names of packages that the go command prints are counted, and not part of what it complains about.
func TestBuildOutput(t *testing.T) {
	var lines []string
	o := buildOutput{count: &packages{watch: func(done, all int) { lines = append(lines, fmt.Sprint(done, "/", all)) }}}
	for _, text := range []string{"internal/goarch\nplanc.gen",
		"erated/train\n# planc.generated/train\n./main.go:3:2: undefined: x\n", "fmt\n"} {
		if n, err := o.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		o.count.add(0, 2)
	}
	o.count.end()
	o.count.add(1, 0)
	if got, want := o.text(), "# planc.generated/train\n./main.go:3:2: undefined: x\n"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	if got, want := strings.Join(lines, " "), "1/0 1/2 2/2 2/4 3/4 3/6"; got != want {
		t.Errorf("said %s, want %s", got, want)
	}
}
