package golden_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The assembly of runtime/cpu and runtime/vec is what the generators in tools/avo print. They need avo, which is not among this module's
// requirements: without it here, only .ci/run makes the files again, and this test compares names alone.
func TestAssemblyIsCurrent(t *testing.T) {
	for _, dir := range []string{"cpu", "vec"} {
		asm, err := filepath.Glob(repoRoot + "/runtime/" + dir + "/z*_amd64.s")
		if err != nil || len(asm) == 0 {
			t.Fatalf("runtime/%s has no generated assembly (%v)", dir, err)
		}
		stubs, _ := filepath.Glob(repoRoot + "/runtime/" + dir + "/z*_amd64.go")
		if len(stubs) != len(asm) {
			t.Errorf("runtime/%s: %d generated files of assembly, %d of declarations", dir, len(asm), len(stubs))
		}
	}
	list := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/mmcloughlin/avo/build")
	list.Dir = repoRoot + "/tools"
	list.Env = append(list.Environ(), "GOPROXY=off")
	if out, err := list.Output(); err != nil || len(out) == 0 {
		t.Skip("avo is not here; .ci/run fetches it and makes the files again")
	}
	cmd := exec.Command("go", "test", "./avo/...")
	cmd.Dir = list.Dir
	cmd.Env = list.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go test ./avo/..., in tools: %v\n%s", err, strings.TrimSpace(string(out)))
	}
}
