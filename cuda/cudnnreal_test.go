//go:build cuda && linux

package cuda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// NVIDIA's libraries open without a GPU and have every function that we need.
func TestRealLibraries(t *testing.T) {
	folders := nvidiaFolders(t, "lib")
	blas, nccl := must(loadBLAS(folders))(t), must(loadNCCL(folders))(t)
	t.Logf("cuBLASLt %s of %s, NCCL %s of %s", blas.Version, blas.Path, nccl.Version, nccl.Path)
}

// NVIDIA's own cuDNN accepts the graphs of attention and its gradient for three kinds of GPUs, none of
// which is present. The driver is replaced by one that loads modules and runs nothing.
func TestRealCuDNN(t *testing.T) {
	folders := nvidiaFolders(t, "lib")
	dnn := realDNN(t, folders)
	var devices map[string]json.RawMessage
	check(t, json.Unmarshal(must(os.ReadFile("testdata/devices.json"))(t), &devices))
	for _, arch := range []string{"80", "90", "100"} {
		a, g, err := dnn.described(string(devices[arch]))
		check(t, err)
		for _, x := range realShapes {
			for _, grad := range []bool{false, true} {
				p, err := a.Prepare(x, grad, 1<<30)
				if err != nil {
					t.Errorf("sm_%s: %v", arch, err)
					continue
				}
				limit := int64(1 << 20)
				if grad { // the gradient of the scores, in 16 bits
					limit += 2 * int64(x.Batch*x.KHeads*x.Group*ceil128(x.Seq)*ceil128(x.KSeq)) * 5 / 4
				}
				if p.Workspace > limit {
					t.Errorf("sm_%s: %+v, gradient %v: %d bytes of workspace", arch, x, grad, p.Workspace)
				}
				t.Logf("sm_%s: %+v, gradient %v: %d bytes of workspace", arch, x, grad, p.Workspace)
				check(t, p.Close())
			}
		}
		check(t, g.close())
	}
}

func ceil128(n int) int { return (n + 127) / 128 * 128 }

// realShapes are the shapes of GPT-2 and Llama, one with a window, and one with an odd sequence length.
var realShapes = []Attention{
	{Batch: 8, Seq: 1024, KSeq: 1024, KHeads: 12, Group: 1, Dim: 64, Scale: 0.125, Causal: true, Type: ValueBFloat16},
	{Batch: 2, Seq: 1024, KSeq: 1024, KHeads: 8, Group: 4, Dim: 128, Scale: 0.1, Causal: true, Type: ValueBFloat16},
	{Batch: 2, Seq: 1024, KSeq: 1024, KHeads: 8, Group: 4, Dim: 128, Scale: 0.1, Causal: true, Window: 256,
		Type: ValueFloat16},
	{Batch: 3, Seq: 1001, KSeq: 1001, KHeads: 12, Group: 1, Dim: 80, Scale: 0.1, Causal: true, Type: ValueBFloat16},
	{Batch: 8, Seq: 512, KSeq: 1024, KHeads: 12, Group: 1, Dim: 96, Scale: 0.125, Type: ValueFloat16},
}

// realDNN opens cuDNN from the folders.
func realDNN(t *testing.T, folders []string) *DNN {
	t.Helper()
	openAll(t, folders, "libnvrtc-builtins.so.*", "libnvrtc.so.*", "libcublasLt.so.*")
	dir := ""
	for _, d := range folders {
		if _, err := os.Stat(filepath.Join(d, "libcudnn.so.9")); err == nil {
			dir = d
		}
	}
	if _, why := try(standIn(t, dir)); why != "" {
		t.Fatal(why)
	}
	return must(loadDNN([]string{dir}))(t)
}

// openAll opens libraries that others open by name: the loader then finds them, wherever they are.
func openAll(t *testing.T, folders []string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		for _, dir := range folders {
			for _, file := range must(filepath.Glob(filepath.Join(dir, pattern)))(t) {
				if _, why := try(file); why != "" {
					t.Fatal(why)
				}
			}
		}
	}
}

// standIn builds a driver with every function that cuDNN's engines look up; most return that it is a stub.
// Its soname makes the loader take it for the real one.
func standIn(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	for _, file := range []string{"libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9"} {
		for _, m := range regexp.MustCompile(`\x00(cu[A-Z][A-Za-z0-9_]+)(?:\x00)`).FindAllSubmatch(
			bytes.ReplaceAll(must(os.ReadFile(filepath.Join(dir, file)))(t), []byte{0}, []byte{0, 0}), -1) {
			names = append(names, string(m[1]))
		}
	}
	slices.Sort(names)
	var c bytes.Buffer
	loads := []string{"cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuModuleGetFunction",
		"cuModuleLoadData", "cuModuleLoadDataEx", "cuLibraryGetModule"}
	does := []string{"cuKernelSetAttribute", "cuFuncSetAttribute", "cuLibraryUnload", "cuModuleUnload", "cuFuncLoad"}
	for _, name := range slices.Compact(names) {
		switch {
		case slices.Contains(loads, name):
			fmt.Fprintf(&c, "int %s(void **p) { *p = (void *)p; return 0; }\n", name)
		case slices.Contains(does, name):
			fmt.Fprintf(&c, "int %s(void) { return 0; }\n", name)
		default:
			fmt.Fprintf(&c, "int %s(void) { return 34; }\n", name)
		}
	}
	out := filepath.Join(t.TempDir(), "driver.so")
	check(t, os.WriteFile(out+".c", c.Bytes(), 0o666))
	if text, err := exec.Command(compiler(), "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", out,
		out+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}
