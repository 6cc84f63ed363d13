package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every source compiles for the oldest and the newest GPUs, without warnings.
func TestNvcc(t *testing.T) {
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		t.Skip("no nvcc: kernels are not compiled for GPUs; put it on PATH")
	}
	list, err := exec.Command(nvcc, "--list-gpu-arch").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(list))
	newest := known[len(known)-1]
	dir := t.TempDir()
	files := sourceFiles(t)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name := range files {
		if filepath.Ext(name) != ".cu" {
			continue
		}
		cmd := exec.Command(nvcc, "-std=c++17", "--Werror", "all-warnings", "-fatbin", "-o", name+".fatbin",
			"-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90a,code=sm_90a",
			"-gencode", "arch="+newest+",code="+newest, name)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
