package build_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/planc-dev/planc/codegen/build"
)

// fakeNVCC is a compiler that knows two architectures and copies the source, with what it includes, to the fatbin. Each
// compilation is a line of the file log in the same folder; a source that says so makes it fail as the real one does.
const fakeNVCC = `#!/bin/sh
here=$(dirname "$0")
case $1 in
--version) echo "Cuda compilation tools, release %[1]s, V%[1]s.89"; exit ;;
--list-gpu-arch) printf 'compute_80\ncompute_90\ncompute_100\n'; exit ;;
esac
echo "$@" >>"$here/log"
flags=$*
while [ $# -gt 1 ]; do
	[ "$1" = -o ] && out=$2
	shift
done
if grep -q wrong "$1"; then echo "$1(1): error: identifier \"y\" is undefined" >&2; exit 1; fi
if grep -q hostless "$1"; then echo "gcc: fatal error: cannot execute 'cc1plus': posix_spawnp: No such file or directory" >&2; exit 1; fi
if grep -q oldhost "$1"; then echo "error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!" >&2; exit 1; fi
if grep -q system "$1"; then echo "/usr/include/bits/math.h(79): error: exception specification is incompatible" >&2; exit 2; fi
if grep -q lost "$1"; then echo "$1(1): catastrophic error: cannot open source file \"z.cuh\"" >&2; exit 1; fi
[ -n "$NVCC_PREPEND_FLAGS$NVCC_APPEND_FLAGS" ] && exit 4
if grep -q broken "$1"; then echo "Segmentation fault" >&2; exit 139; fi
{ echo "$flags"; cat "$1"; cat *.cuh 2>/dev/null; } >"$out"
`

// nvcc puts a fake compiler into the folder bin of a new folder, which it returns.
func nvcc(t *testing.T, version string) (root string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the compiler is a shell script")
	}
	root = t.TempDir()
	script(t, filepath.Join(root, "bin", "nvcc"), fmt.Sprintf(fakeNVCC, version))
	return root
}

func script(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
}

// nowhere leaves no compiler to be found but where a system has it, and the shell's own commands.
func nowhere(t *testing.T) {
	t.Helper()
	tools := t.TempDir()
	for _, name := range []string{"sh", "dirname", "grep", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip("no ", name)
		}
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", tools)
	t.Setenv("CUDA_HOME", "")
	t.Setenv("CUDA_PATH", "")
}

// nvcc is found on PATH, else in CUDA_HOME, else among the wheels of Python; where there is none, it is said where it
// was looked for and how to get one.
func TestFindNVCC(t *testing.T) {
	onPath, home, wheels := nvcc(t, "13.1"), nvcc(t, "13.2"), nvcc(t, "13.3")
	nowhere(t)
	tools := os.Getenv("PATH")
	site := filepath.Join(t.TempDir(), "nvidia")
	if err := os.MkdirAll(site, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(wheels, filepath.Join(site, "cu13")); err != nil {
		t.Fatal(err)
	}
	script(t, filepath.Join(tools, "python3"), "#!/bin/sh\necho "+site+"\n")
	t.Setenv("CUDA_HOME", home)
	t.Setenv("PATH", tools+string(filepath.ListSeparator)+filepath.Join(onPath, "bin"))
	find(t, "PATH", "13.1.89")
	t.Setenv("PATH", tools)
	find(t, "CUDA_HOME", "13.2.89")
	t.Setenv("CUDA_HOME", t.TempDir())
	find(t, "Python's wheels", "13.3.89")
	if err := os.Remove(filepath.Join(tools, "python3")); err != nil {
		t.Fatal(err)
	}
	n, err := build.FindNVCC(t.Context())
	if err == nil {
		t.Skipf("this machine has one in %s", n.Place)
	}
	var missing *build.NoNVCCError
	if !errors.As(err, &missing) || !strings.HasPrefix(err.Error(),
		"there is no nvcc, which compiling for NVIDIA GPUs needs, in PATH, CUDA_HOME, CUDA_PATH, Python's wheels, "+
			"/usr/local/cuda,") || !strings.HasSuffix(err.Error(), build.HowNVCC) {
		t.Errorf("%v", err)
	}
}

func find(t *testing.T, place, version string) {
	t.Helper()
	n, err := build.FindNVCC(t.Context())
	if err != nil || n.Place != place || n.Version != version || !slices.Equal(n.Archs, []int{80, 90, 100}) {
		t.Errorf("found %+v, %v; want %s in %s", n, err, version, place)
	}
}

// One that does not run, or says no version, is an error that quotes it.
func TestBrokenNVCC(t *testing.T) {
	for text, want := range map[string]string{
		"echo no license >&2; exit 3": "exit status 3\nno license",
		"echo something else":         "it says\nsomething else",
		"[ $1 = --version ] && echo V12.0.1 || { echo no >&2; exit 1; }": "the architectures that it knows: exit " +
			"status 1\nno",
	} {
		root := nvcc(t, "13.1")
		nowhere(t)
		script(t, filepath.Join(root, "bin", "nvcc"), "#!/bin/sh\n"+text+"\n")
		t.Setenv("CUDA_HOME", root)
		if n, err := build.FindNVCC(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: found %+v, %v", text, n, err)
		}
	}
}

// compiler is a fake nvcc and the lines of what it has been run with since the last time.
func compiler(t *testing.T, version string) (n build.NVCC, runs func() []string) {
	t.Helper()
	root := nvcc(t, version)
	nowhere(t)
	t.Setenv("CUDA_HOME", root)
	n, err := build.FindNVCC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n, func() []string {
		log := filepath.Join(root, "bin", "log")
		text, err := os.ReadFile(log)
		if err != nil {
			return nil
		}
		_ = os.Remove(log)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		slices.Sort(lines)
		return lines
	}
}

func kernels(t *testing.T, n build.NVCC, r build.KernelRequest) build.Kernels {
	t.Helper()
	k, err := n.CompileKernels(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Each source is compiled once for all architectures and the PTX of the newest, whoever asks; again when it, or what it
// may include, has changed.
func TestCompileKernels(t *testing.T) {
	n, runs := compiler(t, "13.1")
	r := build.KernelRequest{Cache: t.TempDir(), Files: map[string][]byte{"a.cu": []byte("A\n"), "b.cu": []byte("B\n"),
		"all.cuh": []byte("H\n")}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := n.CompileKernels(context.Background(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	flags := "-std=c++17 -O3 -fatbin -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90a,code=sm_90a " +
		"-gencode=arch=compute_100a,code=sm_100a -gencode=arch=compute_100,code=compute_100 -o out.partial "
	if got, want := runs(), []string{flags + "a.cu", flags + "b.cu"}; !reflect.DeepEqual(got, want) {
		t.Errorf("compiled\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	k := kernels(t, n, r)
	if got := string(k.Fatbins["a.cu"]); k.Cached != 2 || len(k.Fatbins) != 2 || got != flags+"a.cu\nA\nH\n" {
		t.Errorf("%d cached, of a.cu\n%s", k.Cached, got)
	}
	r.Files["a.cu"] = []byte("A2\n")
	if k := kernels(t, n, r); k.Cached != 1 || len(runs()) != 1 {
		t.Errorf("a source has changed: %d cached", k.Cached)
	}
	r.Files["all.cuh"] = []byte("H2\n")
	if k := kernels(t, n, r); k.Cached != 0 || len(runs()) != 2 {
		t.Errorf("a header has changed: %d cached", k.Cached)
	}
	r.Archs = []string{"80"}
	if k := kernels(t, n, r); k.Cached != 0 || !strings.Contains(string(k.Fatbins["b.cu"]),
		" -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80 -o") {
		t.Errorf("another architecture: %d cached\n%s", k.Cached, k.Fatbins["b.cu"])
	}
}

// Watch is called for each kernel that is compiled or cached, with a count that grows by one; not for one that fails.
func TestWatchKernels(t *testing.T) {
	n, _ := compiler(t, "13.1")
	var seen []string
	r := build.KernelRequest{Cache: t.TempDir(), Files: map[string][]byte{"all.cuh": nil},
		Watch: func(done, all int) { seen = append(seen, fmt.Sprintf("%d of %d", done, all)) }}
	for _, name := range []string{"a.cu", "b.cu", "c.cu"} {
		r.Files[name] = []byte(name)
	}
	for _, how := range []string{"compiled", "cached"} {
		seen = nil
		kernels(t, n, r)
		if want := []string{"1 of 3", "2 of 3", "3 of 3"}; !slices.Equal(seen, want) {
			t.Errorf("%s: seen %q, want %q", how, seen, want)
		}
	}
	r.Files, seen = map[string][]byte{"a.cu": []byte("wrong")}, nil
	if _, err := n.CompileKernels(t.Context(), r); err == nil || len(seen) != 0 {
		t.Errorf("of a kernel that fails: %v, seen %q", err, seen)
	}
}

// What nvcc refuses is planc's fault or the machine's, and each says what to do.
func TestKernelErrors(t *testing.T) {
	n, _ := compiler(t, "13.1")
	for text, want := range map[string]string{
		"hostless": "nvcc 13.1.89 needs a C++ compiler: install g++: exit status 1\ngcc: fatal error",
		"oldhost": "nvcc 13.1.89 does not support this machine's C++ compiler: install a supported one, and set " +
			"NVCC_CCBIN to it: exit status 1\nerror: #error",
		"broken": n.Path + " in ",
		"system": n.Path + " in ",
		"lost":   "the CUDA C++ that planc generated does not compile",
	} {
		_, err := n.CompileKernels(t.Context(), build.KernelRequest{Cache: t.TempDir(),
			Files: map[string][]byte{"k.cu": []byte(text)}})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	t.Setenv("NVCC_PREPEND_FLAGS", "-G") // which compilations do not see
	t.Setenv("NVCC_APPEND_FLAGS", "-G")
	r := build.KernelRequest{Cache: t.TempDir(), Files: map[string][]byte{"good.cu": nil, "a.cuh": nil}}
	kernels(t, n, r)
	r.Files["k.cu"] = []byte("wrong")
	_, err := n.CompileKernels(t.Context(), r)
	var fault *build.KernelError
	if !errors.As(err, &fault) || fault.Output != `k.cu(1): error: identifier "y" is undefined` ||
		!strings.Contains(err.Error(), "This is a fault in planc") {
		t.Fatalf("%v", err)
	}
	if saved, err := os.ReadFile(filepath.Join(fault.Dir, "k.cu")); err != nil || string(saved) != "wrong" {
		t.Errorf("the source is not kept: %q, %v", saved, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := n.CompileKernels(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// An architecture that the compiler does not know is refused before anything is compiled, with those that it knows.
func TestUnknownArch(t *testing.T) {
	n, runs := compiler(t, "11.8")
	_, err := n.CompileKernels(t.Context(), build.KernelRequest{Cache: t.TempDir(),
		Files: map[string][]byte{"k.cu": nil}, Archs: []string{"80", "90a", "120"}})
	want := "nvcc 11.8.89 at " + n.Path + " does not know sm_90a, sm_120, but 80, 90, 100: " + build.HowNVCC
	if err == nil || err.Error() != want || len(runs()) != 0 {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// The real compiler takes what CompileKernels gives it: code for each architecture, the same bytes again, and errors
// are reported.
func TestRealNVCC(t *testing.T) {
	if os.Getenv("PLANC_NVCC") == "" {
		t.Skip("PLANC_NVCC is not set, so no real nvcc is looked for")
	}
	n, err := build.FindNVCC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", n)
	source := "#include <cuda_bf16.h>\n#include \"scale.cuh\"\nextern \"C\" __global__ void axpy(const " +
		"__nv_bfloat16* x, float* y, int n) {\n" +
		"\tint i = blockIdx.x * blockDim.x + threadIdx.x;\n\tif (i < n) y[i] += SCALE * __bfloat162float(x[i]);\n}\n"
	r := build.KernelRequest{Cache: t.TempDir(), Files: map[string][]byte{"axpy.cu": []byte(source),
		"scale.cuh": []byte("#define SCALE 2.0f\n")}}
	first := kernels(t, n, r)
	r.Cache = t.TempDir()
	if second := kernels(t, n, r); !reflect.DeepEqual(second, first) || second.Cached != 0 ||
		len(first.Fatbins["axpy.cu"]) == 0 {
		t.Errorf("two builds differ, of %d and %d bytes", len(first.Fatbins["axpy.cu"]), len(second.Fatbins["axpy.cu"]))
	}
	r.Files["axpy.cu"] = []byte(strings.Replace(source, "SCALE", "UNDEFINED", 1))
	var fault *build.KernelError
	if _, err := n.CompileKernels(t.Context(), r); !errors.As(err, &fault) ||
		!strings.Contains(fault.Output, `axpy.cu(5): error: identifier "UNDEFINED" is undefined`) {
		t.Errorf("%v", err)
	}
}
