package labtest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/emulated"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

// laboratory builds cudalab, the kernels' tests and the kernels of some files, for an emulated GPU. It returns a
// function that runs cudalab.
func laboratory(t *testing.T, files ...string) func(args ...string) (string, error) {
	t.Helper()
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	if os.Getenv("PLANC_CUDA12_INCLUDE") == "" {
		t.Skip("PLANC_CUDA12_INCLUDE names no folder with cuda.h of CUDA 12")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := emulated.Install(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, sources := t.TempDir(), t.TempDir()
	names, err := fs.Glob(kernels.Sources, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := kernels.Sources.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(sources, name), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := machine.CompileKernels(sources, filepath.Join(dir, "kernels"), files); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "cudalab")
	build := exec.Command(filepath.Join(root, "scripts", "cudalab"), program)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("scripts/cudalab: %v\n%s", err, out)
	}
	tests := exec.Command("go", "test", "-c", "-o", filepath.Join(dir, "kernels.test"), "./cuda/kernels")
	tests.Dir = root
	if out, err := tests.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return func(args ...string) (string, error) {
		cmd := exec.Command(program, append([]string{args[0], dir}, args[1:]...)...)
		cmd.Env = append(os.Environ(), machine.Env()...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// Each kernel's test runs on the GPU through cu, also kernels with structs by value and with tables of addresses.
func TestOnEmulatedGPU(t *testing.T) {
	lab := laboratory(t, "norm.cu", "attention.cu", "move.cu")
	for _, test := range []string{"TestNorms$", "TestAttention$", "TestAllReduce"} {
		out, err := lab("check", test)
		if err != nil || !strings.Contains(out, "largest error / bound") {
			t.Errorf("check %s: %v\n%s", test, err, out)
		}
		t.Logf("%s", out)
	}
	out, err := lab("time", "layer_norm")
	if err != nil || !strings.Contains(out, "layer_norm") {
		t.Errorf("time: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	for args, want := range map[string]string{
		"check TestNothing": "no test compared a kernel: TEST must match a test of cuda/kernels, such as TestNorms",
		"time nothing":      `no trial of kernel "nothing": use a name of the table in bench/gpu/trial`,
		"serve":             `usage: cudalab check DIR`,
		"time rope":         "rope.fatbin: no such file or directory",
	} {
		out, err := lab(strings.Fields(args)...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s; want %s", args, err, out, want)
		}
	}
}
