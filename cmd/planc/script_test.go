package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
)

// The scripts of golden/script call planc as a command, which is this test's own process again.
func TestMain(m *testing.M) {
	plainBuilds = true                                        // golden/cases has optimized programs, as users do
	layout.MessageWidth = 1 << 20                             // messages are compared word for word, each on its line
	if err := os.Setenv(noMeasureVariable, "1"); err != nil { // what is recorded is the same on every machine
		panic(err)
	}
	console.Patience = time.Hour // on a busy machine too, what planc prints is the same
	testscript.Main(m, map[string]func(){"planc": main})
}

// One file is one behaviour of the command line. PLANC_UPDATE=1 rewrites what the scripts compare with.
func TestScripts(t *testing.T) {
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "golden", "script"),
		UpdateScripts:       os.Getenv("PLANC_UPDATE") == "1",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exit": exit, "bytes": writeBytes},
		Condition: func(name string) (bool, error) { // long: the script takes more time than every run of the tests has
			if name != "long" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return isLong() || os.Getenv("PLANC_UPDATE") == "1", nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PLANC", filepath.SplitList(e.Getenv("PATH"))[0]) // the folder of the command itself
			e.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
			e.Setenv("GOGC", "400") // Go's compiler has memory here, and is a fifth faster
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv(noMeasureVariable, "1")
			return nil
		},
	})
}

// isLong reports whether tests take minutes: PLANC_LAWS=long, as in the step scripts of .ci/run.
func isLong() bool { return os.Getenv("PLANC_LAWS") == "long" }

// The step scripts of .ci/run runs each script that leaves out commands unless isLong.
func TestLongScriptsRunInCI(t *testing.T) {
	root := filepath.Join("..", "..")
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\tstep scripts env PLANC_LAWS=long go test \./cmd/planc -run 'TestScripts/(\S+?\$)`)
	step := line.FindSubmatch(ci)
	if step == nil {
		t.Fatal(".ci/run has no step scripts")
	}
	files, err := filepath.Glob(filepath.Join(root, "golden", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	long := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if !regexp.MustCompile(`(?m)^\[!?long\] `).Match(text) {
			continue
		}
		long++
		if !regexp.MustCompile("^" + string(step[1])).MatchString(name) {
			t.Errorf("the step scripts of .ci/run does not run %s", name)
		}
	}
	if long == 0 {
		t.Error("no script has commands that are only for PLANC_LAWS=long")
	}
}

// writeBytes is `bytes FILE TEXT...`: the file holds the texts, in which \xff and the like are as in Go.
func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: bytes FILE TEXT...")
	}
	var all strings.Builder
	for _, text := range args[1:] {
		s, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
		ts.Check(err)
		all.WriteString(s)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all.String()), 0o666))
}

// exit is `exit CODE command args...`: the command ends with that status.
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var status *exec.ExitError
	if errors.As(err, &status) {
		got = status.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
