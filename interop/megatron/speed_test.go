//go:build unix

package megatron

import (
	"fmt"
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
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	im := importText(t, b.String(), interop.Options{Define: define})
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	took := time.Duration(after.Utime.Nano() - before.Utime.Nano())
	const limit = 2 * time.Second
	if took > limit || len(im.Keys) < 2*many {
		t.Errorf("%v for %d keys", took, len(im.Keys))
	}
	t.Log(took)
}
