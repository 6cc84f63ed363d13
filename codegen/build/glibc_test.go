package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestNewestGLIBC(t *testing.T) {
	if got := newestGLIBC([]string{"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.9", "GLIBC_PRIVATE", "GCC_3.0",
		"CXXABI_1.3"}); got != "2.34" {
		t.Errorf("%q", got)
	}
	if got := newestGLIBC(nil); got != "" {
		t.Errorf("%q of nothing", got)
	}
}

// A Go program without C needs no C library; the shell of a GNU system does.
func TestGLIBC(t *testing.T) {
	src, bin := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", bin, src)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := GLIBC(bin); got != "" {
		t.Errorf("a program without C needs %q", got)
	}
	if _, err := os.Stat("/lib64/ld-linux-x86-64.so.2"); err != nil {
		t.Skip("no GNU system")
	}
	if got := GLIBC("/bin/sh"); !regexp.MustCompile(`^2\.\d+(\.\d+)?$`).MatchString(got) {
		t.Errorf("/bin/sh needs %q", got)
	}
}
