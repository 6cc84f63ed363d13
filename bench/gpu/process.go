package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// libraryFolders are the folders of CUDA's libraries on machines, in addition to Python's wheels.
var libraryFolders = []string{"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/local/cuda/lib64"}

// environment returns the environment of the checks' processes. Folders of libraries in Python's packages come first,
// so that both sides use the same libraries; emulated ones come before them.
func environment(ctx context.Context, python string, tiny bool) []string {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	// fails without the package
	out, _ := exec.CommandContext(ctx, python, "-c", "import nvidia; print('\\n'.join(nvidia.__path__))").Output()
	var folders []string
	for _, dir := range strings.Fields(string(out)) {
		found, _ := filepath.Glob(filepath.Join(dir, "*", "lib")) // the pattern is valid
		folders = append(folders, found...)
	}
	if own := os.Getenv("LD_LIBRARY_PATH"); own != "" {
		folders = slices.Insert(folders, map[bool]int{false: len(folders)}[tiny], own)
	}
	for _, dir := range libraryFolders {
		if _, err := os.Stat(dir); err == nil {
			folders = append(folders, dir)
		}
	}
	return append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(folders, ":"))
}

// process returns a command that is killed with its children when its time is over.
func (b *bench) process(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append([]string{}, b.env...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// output runs a command and returns its standard output. An error has the end of its output.
func (b *bench) output(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := b.process(ctx, env, name, args...)
	var out, printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &printed
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w\n%s", filepath.Base(name), err,
			tail(printed.String()+out.String(), 2000))
	}
	return out.Bytes(), nil
}

// tail returns the end of a text.
func tail(s string, n int) string {
	if len(s) > n {
		s = "…" + strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return strings.TrimSpace(s)
}

// program returns the path of a program that build compiled.
func (b *bench) program(name string) string { return filepath.Join(b.dir, name) }

// scratch creates a folder that is removed when the check ends.
func scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "gpu-check-")
	return dir, func() { os.RemoveAll(dir) }, err
}
