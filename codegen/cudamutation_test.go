package codegen

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

// chainMutations are faults put into what is printed, or into what that calls. TestChainsOnEmulatedGPU must see each.
var chainMutations = []struct{ file, right, wrong string }{
	{"element.cuh", "return s + x * (s * (1 - s));", "return s + x * (s * (1 + s));"},
	{"element.cuh", "erfcOf(-x *", "erfcOf(x *"},
	{"element.cuh", "return x > 0 ? (A)1 : (A)0;", "return x < 0 ? (A)1 : (A)0;"},
	{"element.cuh", "return 1 - t * t;", "return 1 - t;"},
	{"chains.cu", "rounded<bf16>", ""},
	{"chains.cu", "j + k < valid", "k < valid"},
	{"chains.cu", "== none ? 0 : limit", "== none ? cols : limit"},
	{"chains.cu", "aligned<bf16>(cols, ", "aligned<bf16>(8, "},
	{"chains.cu", "overRow(mean1, Plus())", "mean1"},
	{"chains.cu", "i * cols + j", "i * (cols + 1) + j"},
	{"chains.cu", "i * 2 * cols + j", "i * cols + j"},
}

// mutateChains puts the fault of PLANC_MUTATION into sources.
func mutateChains(t *testing.T, files map[string][]byte) {
	i, err := strconv.Atoi(os.Getenv("PLANC_MUTATION"))
	if err != nil {
		return
	}
	m := chainMutations[i]
	if !bytes.Contains(files[m.file], []byte(m.right)) {
		t.Fatalf("mutation %d: %s has no %q", i, m.file, m.right)
	}
	files[m.file] = bytes.ReplaceAll(files[m.file], []byte(m.right), []byte(m.wrong))
}

// Each mutation fails the test of chains, run again with the fault in the source.
func TestChainMutations(t *testing.T) {
	if os.Getenv("PLANC_EMULATE") != "must" || os.Getenv("PLANC_MUTATION") != "" {
		t.Skip("takes minutes; PLANC_EMULATE=must runs it")
	}
	for i, m := range chainMutations {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			// this process has one for each core
			cmd := exec.Command(os.Args[0], "-test.run=TestChainsOnEmulatedGPU", "-test.timeout=5m", "-test.parallel=1")
			cmd.Env = append(os.Environ(), "PLANC_MUTATION="+strconv.Itoa(i))
			out, err := cmd.CombinedOutput()
			if err == nil || emulate.Unjudged(out) {
				t.Errorf("%s: with %q for %q the test does not fail as it should: %v\n%s", m.file, m.wrong,
					m.right, err, out)
			}
		})
	}
}
