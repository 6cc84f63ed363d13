//go:build unix

package megatron

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/planc-dev/planc/interop"
)

// A script with 10^5 options, known and unknown ones, is imported within about a second of processor time.
func TestLargeScript(t *testing.T) {
	var b strings.Builder
	b.WriteString(small)
	const many = 50_000
	for i := range many {
		fmt.Fprintf(&b, "\\\n  --unknown-option-%d %d --tensor-model-parallel-size $T%d ", i, i, i)
	}
	define := map[string]string{}
	for i := range many {
		define[fmt.Sprint("T", i)] = "2"
	}
	im, took := timedImport(t, b.String(), interop.Options{Define: define})
	const limit = 2 * time.Second
	if took > limit || len(im.Keys) < 2*many {
		t.Errorf("%v for %d keys", took, len(im.Keys))
	}
	t.Log(took)
}

// A script of 10 MB is imported within a second of processor time, by the least disturbed of three imports.
func TestScriptOf10MB(t *testing.T) {
	const lines = "# a comment that is long enough to be read\nrun --one 1 \\\n  --two \"$TWO\" 'three' # end\n"
	text := strings.Repeat(lines, 10<<20/len(lines)+1) + small
	least := time.Hour
	for range 3 { // other programs on the same cores and caches only add to the time
		runtime.GC() // no garbage of other tests is collected in it
		im, took := timedImport(t, text, interop.Options{})
		least = min(least, took)
		if !im.Has("plan.tp") {
			t.Error("the script is not imported")
		}
	}
	if least > time.Second {
		t.Error(least)
	}
	t.Log(least)
}

// timedImport imports a script and returns the processor time that it takes in user mode.
func timedImport(t *testing.T, text string, o interop.Options) (im *interop.Import, took time.Duration) {
	t.Helper()
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	im = importText(t, text, o)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	return im, time.Duration(after.Utime.Nano() - before.Utime.Nano())
}
