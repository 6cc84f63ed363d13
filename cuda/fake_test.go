//go:build cuda && linux

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakes lists the fake libraries: source, and file name and folder of the result.
var fakes = []struct{ folder, file, source, flag string }{
	{"new", "libcuda.so.1", "fake.c", "-DFAKE"},
	{"old", "libcuda.so.1", "fake.c", "-DFAKE_OLD"},
	{"ancient", "libcuda.so.1", "fake.c", "-DFAKE_ANCIENT"},
	{"new", "libnccl.so.2", "fakenccl.c", "-DFAKE"},
	{"old", "libnccl.so.2", "fakenccl.c", "-DFAKE_OLD"},
	{"new", "libcublasLt.so.13", "fakelt.c", "-DFAKE"},
	{"new", "libcudnn.so.9", "fakednn.c", "-DFAKE"},
	{"new", "libnvrtc.so.13", "fakenvrtc.c", "-DFAKE"},
	{"new", "libnvidia-ml.so.1", "fakenvml.c", "-DFAKE"},
}

var fakeRoot string // root of the folders above

// compiler returns the C compiler that cgo used to build this test.
func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

func TestMain(m *testing.M) {
	var err error
	fakeRoot, err = os.MkdirTemp("", "planc-fake")
	if err == nil {
		err = buildFakes()
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(fakeRoot)
	os.Exit(code)
}

func buildFakes() error {
	for _, f := range fakes {
		dir := filepath.Join(fakeRoot, f.folder)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		cmd := exec.Command(compiler(), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-shared", "-fPIC",
			f.flag, "-o", filepath.Join(dir, f.file), filepath.Join("testdata", f.source))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	}
	return nil
}

// fake opens a fake driver and starts recording. calls returns what was recorded since its last call.
func fake(t *testing.T, folder string) (d *Driver, calls func() string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("PLANC_FAKE_LOG", log)
	theDriver = nil
	d, err := Open(filepath.Join(fakeRoot, folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theDriver = nil })
	return d, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(log)
		return string(text)
	}
}

// bound returns a context of device 0, bound to the test's goroutine until the test ends.
func bound(t *testing.T, d *Driver) *Context {
	t.Helper()
	devices := must(d.Devices())(t)
	c := must(devices[0].Open())(t)
	unbind := must(c.Bind())(t)
	t.Cleanup(func() {
		unbind()
		check(t, c.Close())
	})
	return c
}

// must returns a result after checking that there is no error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// nvidiaFolders returns the folders of a kind, include or lib, of NVIDIA's wheels. The test is skipped if there
// are none.
func nvidiaFolders(t *testing.T, kind string) []string {
	t.Helper()
	dir := os.Getenv("PLANC_NVIDIA")
	if dir == "" {
		t.Skip("PLANC_NVIDIA does not name the folder with NVIDIA's wheels, which scripts/nvidia installs")
	}
	folders := must(filepath.Glob(filepath.Join(dir, "nvidia", "*", kind)))(t)
	if len(folders) == 0 {
		t.Fatalf("PLANC_NVIDIA=%s has no folder nvidia/*/%s", dir, kind)
	}
	return folders
}

// Our prototypes equal NVIDIA's, as far as the compiler can tell.
func TestPrototypes(t *testing.T) {
	args := []string{"-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-DPLANC_REAL_HEADERS"}
	for _, dir := range nvidiaFolders(t, "include") {
		args = append(args, "-I"+dir, "-I"+filepath.Join(dir, "cccl"))
	}
	run := func(file string) string {
		out, err := exec.Command(compiler(), append(args, file)...).CombinedOutput()
		if err == nil {
			return ""
		}
		return fmt.Sprintf("%v\n%s", err, out)
	}
	if output := run("testdata/prototypes.c"); output != "" {
		t.Error(output)
	}
	for _, c := range []struct{ file, right, wrong, call string }{
		{"driver.h", "cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes)", "cuMemAlloc_v2, (CUdeviceptr *p, int bytes)",
			"cuMemAlloc_v2"},
		{"driver.h", "planc_func_dynamic_shared = 8", "planc_func_dynamic_shared = 9",
			"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"},
		{"nccl.h", "(const ncclComm_t comm, int *count)", "(const ncclComm_t comm, long *count)", "ncclCommCount"},
		{"cudnn.h", "planc_dnn_device = 38", "planc_dnn_device = 39", "CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR"},
	} {
		if output := run(mutant(t, c.file, c.right, c.wrong)); !strings.Contains(output,
			`static assertion failed: "`+c.call+`"`) {
			t.Errorf("a wrong %s is not seen: %s", c.call, output)
		}
	}
}

// mutant writes prototypes.c and a copy of the headers with an error in one of them.
func mutant(t *testing.T, file, right, wrong string) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "testdata"), 0o777))
	for _, name := range []string{"driver.h", "nccl.h", "blaslt.h", "cudnn.h", "nvrtc.h", "nvml.h",
		"testdata/prototypes.c"} {
		text := string(must(os.ReadFile(name))(t))
		if name == file {
			if !strings.Contains(text, right) {
				t.Fatalf("%s has no %q", file, right)
			}
			text = strings.Replace(text, right, wrong, 1)
		}
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return filepath.Join(dir, "testdata", "prototypes.c")
}
