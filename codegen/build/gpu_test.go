package build_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/planc-dev/planc/codegen/build"
)

const helloGPU = `//go:build cuda && linux

package main

import "github.com/planc-dev/planc/cuda"

func main() { println(cuda.Hello()) }
`

// gpuRequest builds a program for GPUs, with a package cuda of one file in C.
func gpuRequest(t *testing.T) build.Request {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no C compiler, or no linux")
	}
	r := request(t, map[string]string{"main.go": helloGPU})
	r.CUDA = fstest.MapFS{
		"hello.go": {Data: []byte("//go:build cuda && linux\n\npackage cuda\n\n// int answer(void);\nimport " +
			"\"C\"\n\nfunc Hello() int { return int(C.answer()) }\n")},
		"answer.c":          {Data: []byte("//go:build cuda && linux\n\nint answer(void) { return 42; }\n")},
		"embed.go":          {Data: []byte("package cuda\n\nfunc init() { this is planc's alone }\n")},
		"kernels/kernel.cu": {Data: []byte("// carried along\n")},
	}
	return r
}

// A program for GPUs is built with the C compiler, the tag cuda and the package cuda, and found again by the compiler's
// version too.
func TestBuildForGPUs(t *testing.T) {
	r := gpuRequest(t)
	first, err := build.Build(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if out := run(t, first.Binary); strings.TrimSpace(out) != "42" {
		t.Errorf("it says %q", out)
	}
	second, err := build.Build(context.Background(), r)
	if err != nil || !second.Cached {
		t.Errorf("a second build: %+v, %v", second, err)
	}
	cc := filepath.Join(t.TempDir(), "cc")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo another compiler; exit; }\nexec gcc \"$@\"\n"
	if err := os.WriteFile(cc, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", cc)
	other, err := build.Build(context.Background(), r)
	if err != nil || other.Cached || other.Binary == first.Binary {
		t.Errorf("with another compiler: %+v, %v", other, err)
	}
}

// What a machine lacks for it is said.
func TestBuildForGPUsWithout(t *testing.T) {
	r := gpuRequest(t)
	t.Setenv("CC", "no-such-compiler")
	if _, err := build.Build(context.Background(), r); !errors.Is(err, build.NoCError("no-such-compiler")) {
		t.Errorf("no C compiler: %v", err)
	}
	t.Setenv("CC", "gcc")
	t.Setenv("GOOS", "windows")
	if _, err := build.Build(context.Background(), r); !errors.Is(err, build.SystemError("windows")) {
		t.Errorf("for another system: %v", err)
	}
}
