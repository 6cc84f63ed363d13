package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
)

// gpuFindings are NVIDIA's parts, in the order in which a program needs them, and what cannot be done without each.
func gpuFindings(root fs.FS, m machine) []finding {
	ctx, stop := context.WithTimeout(context.Background(), goPatience)
	defer stop()
	s := libraryFolders{root: root, searched: librarySearch(os.Getenv("LD_LIBRARY_PATH"))}
	for _, dir := range build.NVIDIAWheels(ctx) {
		s.wheels = append(s.wheels, filepath.ToSlash(dir))
	}
	for _, name := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if home := os.Getenv(name); home != "" {
			s.toolkits = append(s.toolkits, filepath.ToSlash(home))
		}
	}
	found := []finding{gpuFinding(s, m)}
	for _, l := range cuda.Libraries {
		if l.Name != driverLibrary {
			found = append(found, s.finding(l))
		}
	}
	n, err := build.FindNVCC(ctx)
	found = append(found, nvccFinding(n, err, m.Driver))
	return append(found, linkFindings(root, m, runSystem)...)
}

const driverLibrary = "NVIDIA driver" // its row of cuda.Libraries, which doctor shows with the GPUs

// gpuFinding is the GPUs and their driver: the module of the system, and the library that programs call.
func gpuFinding(s libraryFolders, m machine) finding {
	const untried = "programs for GPUs have been tried on emulated ones alone"
	l := cuda.LibraryNamed(driverLibrary)
	file := s.find(l, s.searched)
	switch {
	case len(m.GPUs) == 0 && m.Driver == "" && file == "":
		return finding{"NVIDIA", stateMissing, "no GPU and no driver", "programs for GPUs do not run here"}
	case len(m.GPUs) == 0:
		return finding{"NVIDIA", stateMissing, "a driver, and no GPU that this process may use",
			"in a container, start it with the GPUs; without them programs for GPUs do not run here"}
	}
	gpus := fmt.Sprintf("%d %s", len(m.GPUs), plural(len(m.GPUs), "GPU"))
	if m.Driver != "" {
		gpus += ", driver " + m.Driver
	}
	library := s.version(file, "")
	switch {
	case file == "":
		return finding{"NVIDIA", stateMissing, gpus + ", and no " + l.Files[0],
			"programs cannot reach the GPUs: " + l.Install}
	case library != "" && m.Driver != "" && m.Driver != "unknown" && library != m.Driver:
		return finding{"NVIDIA", stateMissing, fmt.Sprintf("%s, and its library %s is of version %s", gpus, file,
			library), "programs cannot reach the GPUs: restart the machine after the driver's upgrade"}
	}
	return okFinding("NVIDIA", gpus+"; "+untried)
}

// libraryFolders is where the libraries of a machine may be.
type libraryFolders struct {
	root     fs.FS
	searched []string // folders in which programs look
	wheels   []string // folders of Python's packages nvidia, in which they do not
	toolkits []string // folders of CUDA toolkits that the environment names, nor in these
}

// librarySearch are the folders that the system's loader looks in.
func librarySearch(path string) []string {
	return append(filepath.SplitList(path), "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
		"/usr/lib", "/usr/local/lib", "/usr/local/cuda/lib64")
}

// find is a library's file in the folders, whose names may be patterns; "" if there is none.
func (s libraryFolders) find(l cuda.Library, folders []string) string {
	for _, dir := range folders {
		for _, name := range l.Files {
			found, err := fs.Glob(s.root, path.Join(strings.TrimPrefix(filepath.ToSlash(dir), "/"), name))
			if err == nil && len(found) > 0 {
				return "/" + found[len(found)-1]
			}
		}
	}
	return ""
}

var libraryVersion = regexp.MustCompile(`\.so\.(\d+\.\d+(?:\.\d+)*)$`)

// version is what a library's file says of its version: by the name that it is a link to, or by the wheel that it is
// from; "" if neither does.
func (s libraryFolders) version(file, wheel string) string {
	if file == "" {
		return ""
	}
	if target, err := fs.ReadLink(s.root, strings.TrimPrefix(file, "/")); err == nil {
		if v := libraryVersion.FindStringSubmatch(target); v != nil {
			return v[1]
		}
	}
	for _, dir := range s.wheels {
		if !strings.HasPrefix(file, dir+"/") {
			continue
		}
		// a good pattern
		infos, _ := fs.Glob(s.root, path.Join(strings.TrimPrefix(path.Dir(dir), "/"), wheel+".dist-info"))
		for _, info := range infos {
			_, v, _ := strings.Cut(strings.TrimSuffix(path.Base(info), ".dist-info"), "-")
			return v
		}
	}
	return ""
}

// finding is a library: where it is and which.
func (s libraryFolders) finding(l cuda.Library) finding {
	costs := "no " + l.For + ": "
	file := s.find(l, s.searched)
	if file != "" {
		return s.judge(l, file, "")
	}
	var unseen []string
	for _, home := range s.toolkits {
		unseen = append(unseen, path.Join(home, "lib"), path.Join(home, "lib64"))
	}
	for _, dir := range s.wheels {
		unseen = append(unseen, path.Join(dir, "*", "lib"))
	}
	file = s.find(l, unseen)
	if file != "" {
		return s.judge(l, file, "programs do not look there: put "+path.Dir(file)+" in LD_LIBRARY_PATH")
	}
	return finding{l.Name, stateMissing, "not found", costs + l.Install}
}

// judge is a library that is there: fix is what keeps programs from finding it, if anything does.
func (s libraryFolders) judge(l cuda.Library, file, fix string) finding {
	value, v := file, s.version(file, l.Wheel)
	if v != "" {
		value = v + ", " + file
	}
	switch {
	case v != "" && l.Oldest != "" && older(v, l.Oldest):
		return finding{l.Name, stateMissing, value, fmt.Sprintf("no %s: %s or newer is needed: %s", l.For,
			l.Oldest, l.Install)}
	case fix != "":
		return finding{l.Name, stateMissing, value, fmt.Sprintf("no %s: %s", l.For, fix)}
	}
	return okFinding(l.Name, value)
}

// older compares versions number by number.
func older(a, b string) bool {
	numbers := func(v string) (n []int) {
		for part := range strings.SplitSeq(v, ".") {
			k, _ := strconv.Atoi(part) // what is not a number is 0, and so old
			n = append(n, k)
		}
		return n
	}
	return slices.Compare(numbers(a), numbers(b)) < 0
}

// oldestDrivers are what the kernels of a version of nvcc need: NVIDIA's page CUDA Compatibility, Minor Version
// Compatibility, table 1 (2026-11).
var oldestDrivers = map[string]string{"11": "450", "12": "525", "13": "580"}

// nvccFinding is the compiler of kernels: which, what it lacks, and whether the driver runs what it makes.
func nvccFinding(n build.NVCC, err error, driver string) finding {
	if missing := (*build.NoNVCCError)(nil); errors.As(err, &missing) {
		return finding{"nvcc", stateMissing, "not found",
			"programs for GPUs are built all the same, and compile their kernels at each start, with NVRTC; else " +
				build.HowNVCC}
	}
	if err != nil {
		return finding{"nvcc", stateMissing, err.Error(), "programs for GPUs cannot be compiled: " + build.HowNVCC}
	}
	value := fmt.Sprintf("%s, %s (%s)", n.Version, n.Path, n.Place)
	major, _, _ := strings.Cut(n.Version, ".")
	switch unknown, oldest := n.Unknown(build.Architectures), oldestDrivers[major]; {
	case len(unknown) > 0:
		return finding{"nvcc", stateMissing, value, fmt.Sprintf("no kernels for sm_%s: %s", strings.Join(unknown,
			", sm_"), build.HowNVCC)}
	case oldest != "" && driver != "" && driver != "unknown" && older(driver, oldest):
		return finding{"nvcc", stateMissing, value,
			fmt.Sprintf("driver %s does not run what it makes: update the driver to %s, or install an older nvcc",
				driver, oldest)}
	}
	return okFinding("nvcc", value)
}
