package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
)

// plancFolder is where the command is built for the tests that call it.
var plancFolder string

// Main runs a package's tests. It collects garbage as seldom as planc does, because the laws compile some 100 MB of
// programs. Go's compiler does the same, which saves a fifth of the time that the laws' programs need. No CPU is
// measured, so that pages are the same on every machine.
func Main(m *testing.M) {
	debug.SetGCPercent(400)
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
	cmd.Dir = Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// Planc builds the command, once, and returns its path.
func Planc(t *testing.T) string {
	t.Helper()
	bin, err := builtPlanc()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// ForPlatforms skips a test that compiles the standard library for another platform, which takes most of a minute,
// unless PLANC_PLATFORMS=1, which .ci/run sets.
func ForPlatforms(t *testing.T) {
	t.Helper()
	if os.Getenv("PLANC_PLATFORMS") != "1" {
		t.Skip("compiles for another platform: PLANC_PLATFORMS=1")
	}
}
