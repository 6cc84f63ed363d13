package golden_test

import (
	"path/filepath"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// The assembly of runtime/cpu/asm and runtime/vec has Go declarations. A test in tools/avo, run by .ci/run, checks that
// the generators print this assembly: it needs avo, which this module does not require.
func TestAssemblyIsDeclared(t *testing.T) {
	for _, dir := range []string{"cpu/asm", "vec"} {
		asm, err := filepath.Glob(harness.Root + "/runtime/" + dir + "/z*_amd64.s")
		if err != nil || len(asm) == 0 {
			t.Fatalf("runtime/%s has no generated assembly (%v)", dir, err)
		}
		stubs, _ := filepath.Glob(harness.Root + "/runtime/" + dir + "/z*_amd64.go")
		if len(stubs) != len(asm) {
			t.Errorf("runtime/%s: %d generated files of assembly, %d of declarations", dir, len(asm), len(stubs))
		}
	}
}
