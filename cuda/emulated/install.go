package emulated

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

//go:embed libraries
var libraries embed.FS

// Machine is a folder with the emulated libraries and nvcc.
type Machine struct{ Dir string }

// Lib returns the folder of the shared libraries.
func (m Machine) Lib() string { return filepath.Join(m.Dir, "lib") }

// Bin returns the folder of nvcc.
func (m Machine) Bin() string { return filepath.Join(m.Dir, "bin") }

// Env returns the variables to append to a process's environment so that it finds the libraries and nvcc.
// It appends more, such as PLANC_EMULATED_ORDER=late, PLANC_EMULATED_LOG=FILE or PLANC_EMULATED_GPUS=4.
func (m Machine) Env(more ...string) []string {
	path := m.Bin() + string(os.PathListSeparator) + os.Getenv("PATH")
	return append([]string{"PATH=" + path, "LD_LIBRARY_PATH=" + m.Lib(), "PLANC_EMULATED_STEP=" + firstKernel}, more...)
}

// firstKernel is the kernel with which runtime/gpu begins a training step.
const firstKernel = "choose_i32"

// units are the libraries' sources. They form one library with several names, because they share the
// streams.
var units = []string{"schedule.cpp", "driver.cpp", "stream.cpp", "nccl.cpp", "register.cpp", "far.cpp", "blaslt.cpp",
	"cudnn.cpp", "nvrtc.cpp", "nvml.cpp"}

var libraryFlags = []string{"-std=c++17", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
	"-Wno-unknown-warning-option"}

// Install creates a machine in a folder. It needs [emulate.Compiler], and takes about ten seconds on an idle machine.
func Install(ctx context.Context, dir string) (Machine, error) {
	m := Machine{Dir: dir}
	src := filepath.Join(dir, "src")
	for _, d := range []string{src, m.Lib(), m.Bin()} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			return m, err
		}
	}
	if err := m.write(src); err != nil {
		return m, err
	}
	lib := filepath.Join(m.Lib(), "libcuda.so.1")
	ctx, stop := context.WithTimeout(ctx, 30*time.Minute) // a busy machine has taken more than 5
	defer stop()
	cmd := exec.CommandContext(ctx, emulate.Compiler(), slices.Concat(libraryFlags, []string{"-o", lib}, units,
		[]string{"-lpthread", "-ldl"})...)
	cmd.Dir = src
	if out, err := cmd.CombinedOutput(); err != nil {
		return m, fmt.Errorf("compiling the emulated libraries: %w\n%s", err, out)
	}
	for _, name := range []string{"libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2", "libnvrtc.so.13",
		"libnvidia-ml.so.1"} {
		if err := os.Symlink(filepath.Base(lib), filepath.Join(m.Lib(), name)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// write writes the libraries' sources, and nvcc with the files that its modules include.
func (m Machine) write(src string) error {
	own, err := fs.Sub(libraries, "libraries")
	if err != nil {
		return err
	}
	for _, from := range []fs.FS{own, cuda.Sources} {
		if err := copyAll(src, from); err != nil {
			return err
		}
	}
	module, err := fs.ReadFile(own, "module.h")
	if err != nil {
		return err
	}
	script, err := fs.ReadFile(own, "nvcc.sh")
	if err != nil {
		return err
	}
	smi, err := fs.ReadFile(own, "nvidia-smi.sh")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"module.h": module, "emulate.h": emulate.Header(),
		"nvcc": m.nvcc(script, module), "nvidia-smi": smi} {
		if err := os.WriteFile(filepath.Join(m.Bin(), name), text, 0o777); err != nil {
			return err
		}
	}
	return nil
}

// copyAll writes the C and C++ sources of a folder into another.
func copyAll(dir string, files fs.FS) error {
	names, err := fs.Glob(files, "*.*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains([]string{".h", ".cpp"}, filepath.Ext(name)) {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// CompileKernels compiles sources of a folder, whose headers are there too, and writes NAME.fatbin for each NAME.cu to
// another.
func (m Machine) CompileKernels(dir, to string, names []string) error {
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	for _, name := range names {
		cmd := exec.Command(filepath.Join(m.Bin(), "nvcc"), "-o",
			filepath.Join(to, strings.TrimSuffix(name, ".cu")+".fatbin"), name)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// nvcc returns the nvcc command. The last part of its version identifies everything that it compiles with,
// so that planc's cache of kernels does not mix versions.
func (m Machine) nvcc(script, module []byte) []byte {
	flags := strings.Join(append(emulate.Flags(), "-O2"), " ")
	sum := sha256.Sum256(slices.Concat(script, module, emulate.Header(), []byte(flags+emulate.Compiler())))
	return []byte(strings.NewReplacer("@VERSION@", fmt.Sprint(binary.LittleEndian.Uint32(sum[:])), "@CXX@",
		emulate.Compiler(), "@FLAGS@", flags).Replace(string(script)))
}
