package laws_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda/kernels"
)

// buildChains compiles the fused groups that gpu-check build wrote to folder chains, each program's NAME.cu, with
// planc's options.
func buildChains(t *testing.T, dir, arch string) {
	t.Helper()
	dir = filepath.Join(dir, "chains")
	sources, err := filepath.Glob(filepath.Join(dir, "*.cu"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d programs' fused groups in %s, %v; gpu-check build leaves them there", len(sources), dir, err)
	}
	nvcc, err := build.FindNVCC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := build.KernelRequest{Files: map[string][]byte{}, Archs: []string{arch}}
	headers, err := fs.Glob(kernels.Sources, "*.cuh")
	for _, name := range headers {
		if err == nil {
			r.Files[name], err = fs.ReadFile(kernels.Sources, name)
		}
	}
	for _, source := range sources {
		if err == nil {
			r.Files[filepath.Base(source)], err = os.ReadFile(source)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	k, err := nvcc.CompileKernels(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for name, fatbin := range k.Fatbins {
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, ".cu")+".fatbin"), fatbin,
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("fused groups of %d programs", len(k.Fatbins))
}
