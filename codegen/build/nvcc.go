package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HowNVCC says how to get a CUDA compiler that supports all architectures.
const HowNVCC = "install the CUDA toolkit 12.8 or newer, or NVIDIA's wheels (pip install nvidia-cuda-nvcc " +
	"nvidia-cuda-cccl), or set CUDA_HOME"

// NoNVCCError reports that no CUDA compiler was found, and where it was searched.
type NoNVCCError struct{ Looked []string }

func (e *NoNVCCError) Error() string {
	return fmt.Sprintf("there is no nvcc, which compiling for NVIDIA GPUs needs, in %s: %s", strings.Join(e.Looked,
		", "), HowNVCC)
}

// NVCC is NVIDIA's CUDA C++ compiler.
type NVCC struct {
	Path    string
	Place   string // which of the places it was found in: "PATH", "CUDA_HOME", …
	Version string // 13.5.37
	Archs   []int  // compute capabilities that it knows, ascending: 80 is 8.0
}

// place is a location where nvcc may be.
type place struct {
	name  string
	files func(ctx context.Context) []string // candidates, the preferred first
}

// places are tried in order.
var places = []place{
	{"PATH", func(context.Context) []string {
		path, err := exec.LookPath("nvcc")
		if err != nil {
			return nil
		}
		return []string{path}
	}},
	{"CUDA_HOME", func(context.Context) []string { return below(os.Getenv("CUDA_HOME")) }},
	{"CUDA_PATH", func(context.Context) []string { return below(os.Getenv("CUDA_PATH")) }},
	{"Python's wheels", wheels},
	{"/usr/local/cuda", func(context.Context) []string { return below("/usr/local/cuda") }},
	{"/opt/cuda", func(context.Context) []string { return below("/opt/cuda") }},
	{"/usr/lib/nvidia-cuda-toolkit", func(context.Context) []string { return below("/usr/lib/nvidia-cuda-toolkit") }},
}

// below returns the compiler in a toolkit's folder.
func below(dir string) []string {
	if dir == "" {
		return nil
	}
	return []string{filepath.Join(dir, "bin", "nvcc")}
}

// pythonPatience is how long to wait for Python to report where its packages are.
const pythonPatience = 10 * time.Second

// NVIDIAWheels returns the folders of the package nvidia of the Python on PATH, which NVIDIA's wheels share; none if
// there is no Python or no such package.
func NVIDIAWheels(ctx context.Context) (dirs []string) {
	ctx, stop := context.WithTimeout(ctx, pythonPatience)
	defer stop()
	for _, name := range []string{"python3", "python"} {
		python, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// fails without the package
		out, _ := exec.CommandContext(ctx, python, "-c", "import nvidia; print('\\n'.join(nvidia.__path__))").Output()
		return slices.Collect(strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' || r == '\r' }))
	}
	return nil
}

// wheels returns the compilers in NVIDIA's wheels since CUDA 13, the newest first.
func wheels(ctx context.Context) (files []string) {
	for _, dir := range NVIDIAWheels(ctx) {
		found, _ := filepath.Glob(filepath.Join(dir, "cu[0-9]*", "bin", "nvcc")) // a good pattern
		slices.Reverse(found)
		files = append(files, found...)
	}
	return files
}

// FindNVCC searches nvcc on PATH, in CUDA_HOME and CUDA_PATH, in the wheels of the Python on PATH, and where toolkits
// and distributions install it. It fails with a [*NoNVCCError], or with the reason why the one it found does not run.
func FindNVCC(ctx context.Context) (NVCC, error) {
	missing := &NoNVCCError{}
	for _, p := range places {
		for _, file := range p.files(ctx) {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return askNVCC(ctx, file, p.name)
			}
		}
		missing.Looked = append(missing.Looked, p.name)
	}
	return NVCC{}, missing
}

var (
	nvccVersion = regexp.MustCompile(`\bV(\d+\.\d+(?:\.\d+)?)\b`)
	nvccArch    = regexp.MustCompile(`(?m)^compute_(\d+)$`)
)

// askNVCC asks a compiler for its version and architectures.
func askNVCC(ctx context.Context, file, name string) (NVCC, error) {
	n := NVCC{Path: file, Place: name}
	out, err := exec.CommandContext(ctx, file, "--version").Output()
	if err != nil {
		return n, fmt.Errorf("ask %s for its version: %w%s", file, err, complaint(err))
	}
	v := nvccVersion.FindSubmatch(out)
	if v == nil {
		return n, fmt.Errorf("ask %s for its version: it says\n%s", file, bytes.TrimSpace(out))
	}
	n.Version = string(v[1])
	out, err = exec.CommandContext(ctx, file, "--list-gpu-arch").Output()
	if err != nil {
		return n, fmt.Errorf("ask %s %s for the architectures that it knows: %w%s", file, n.Version, err,
			complaint(err))
	}
	for _, a := range nvccArch.FindAllSubmatch(out, -1) {
		number, _ := strconv.Atoi(string(a[1])) // digits, by the pattern
		n.Archs = append(n.Archs, number)
	}
	slices.Sort(n.Archs)
	return n, nil
}

// Architectures are the GPU architectures for which kernels are compiled by default: A100, H100 and H200, B200.
var Architectures = []string{"80", "90a", "100a"}

// ArchError reports architectures that a compiler does not support.
type ArchError struct {
	NVCC    NVCC
	Unknown []string
}

func (e *ArchError) Error() string {
	known := make([]string, len(e.NVCC.Archs))
	for i, a := range e.NVCC.Archs {
		known[i] = strconv.Itoa(a)
	}
	return fmt.Sprintf("nvcc %s at %s does not know sm_%s, but %s: %s", e.NVCC.Version, e.NVCC.Path,
		strings.Join(e.Unknown, ", sm_"), strings.Join(known, ", "), HowNVCC)
}

// Unknown returns those of the architectures that the compiler does not support.
func (n NVCC) Unknown(archs []string) (unknown []string) {
	for _, a := range archs {
		if !n.knows(a) {
			unknown = append(unknown, a)
		}
	}
	return unknown
}

// knows reports whether the compiler supports an architecture such as 80 or 90a. It does not list those with a letter,
// which came with version 12.
func (n NVCC) knows(arch string) bool {
	base := strings.TrimRight(arch, "af")
	number, err := strconv.Atoi(base)
	major, _, _ := strings.Cut(n.Version, ".")
	v, _ := strconv.Atoi(major) // digits, by the pattern
	return err == nil && slices.Contains(n.Archs, number) && (base == arch || v >= 12)
}

// gencode returns the flags for code of each architecture, and for PTX for newer GPUs. The PTX has no letter in its
// architecture, because code for a letter runs only on that architecture.
func (n NVCC) gencode(archs []string) (flags []string, err error) {
	if unknown := n.Unknown(archs); unknown != nil {
		return nil, &ArchError{NVCC: n, Unknown: unknown}
	}
	newest := 0
	for _, a := range archs {
		number, _ := strconv.Atoi(strings.TrimRight(a, "af")) // digits: it is known
		newest = max(newest, number)
		flags = append(flags, fmt.Sprintf("-gencode=arch=compute_%s,code=sm_%[1]s", a))
	}
	return append(flags, fmt.Sprintf("-gencode=arch=compute_%d,code=compute_%[1]d", newest)), nil
}
