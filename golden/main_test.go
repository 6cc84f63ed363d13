package golden_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
)

// plancFolder is where the command is built for all tests that call it.
var plancFolder string

// TestMain collects garbage as seldom as planc does: what the laws compile is some 100 MB. So does Go's compiler here,
// which takes a fifth off the time that the laws' programs need.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	// pages are the same on every machine
	for name, value := range map[string]string{"GOGC": "400", "PLANC_NO_MEASURE": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	var err error
	plancFolder, err = os.MkdirTemp("", "golden")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(plancFolder)
	os.Exit(code)
}

var builtPlanc = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(plancFolder, "planc")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/planc")
	cmd.Dir = repoRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// buildPlanc builds the command, once.
func buildPlanc(t *testing.T) string {
	t.Helper()
	bin, err := builtPlanc()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}
