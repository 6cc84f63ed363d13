package machine

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

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
)

// gpuFindings checks the GPUs, NVIDIA's libraries and nvcc, in the order in which a program needs them.
func gpuFindings(root fs.FS, m Machine) []Finding {
	ctx, stop := context.WithTimeout(context.Background(), goTimeout)
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
	found := []Finding{gpuFinding(s, m)}
	for _, l := range cuda.Libraries {
		if l.Name != driverLibrary {
			found = append(found, s.finding(l))
		}
	}
	n, err := build.FindNVCC(ctx)
	found = append(found, nvccFinding(n, err, m.Driver))
	return append(found, linkFindings(root, m, RunSystem)...)
}

// driverLibrary is the name of the driver in cuda.Libraries. doctor shows it with the GPUs.
const driverLibrary = "NVIDIA driver"

// gpuFinding checks the GPUs and their driver: the kernel module, and the library that programs call.
func gpuFinding(s libraryFolders, m Machine) Finding {
	const untested = "programs for GPUs have been tested only on emulated GPUs"
	l := cuda.LibraryNamed(driverLibrary)
	file := s.find(l, s.searched)
	switch {
	case len(m.GPUs) == 0 && m.Driver == "" && file == "":
		return Finding{"NVIDIA", stateMissing, "no GPU and no driver", "programs for GPUs do not run here"}
	case len(m.GPUs) == 0:
		return Finding{"NVIDIA", stateMissing, "a driver, but no GPU that this process can use",
			"programs for GPUs do not run here; start a container with access to the GPUs (docker run --gpus all)"}
	}
	gpus := fmt.Sprintf("%d %s", len(m.GPUs), layout.Plural(len(m.GPUs), "GPU"))
	if m.Driver != "" {
		gpus += ", driver " + m.Driver
	}
	library := s.version(file, "")
	switch {
	case file == "":
		return Finding{"NVIDIA", stateMissing, gpus + ", but no " + l.Files[0],
			"programs cannot reach the GPUs: " + l.Install}
	case library != "" && m.Driver != "" && m.Driver != "unknown" && library != m.Driver:
		return Finding{"NVIDIA", stateMissing, fmt.Sprintf("%s, but its library %s is version %s", gpus, file,
			library), "programs cannot reach the GPUs: reboot to complete the driver upgrade"}
	}
	return okFinding("NVIDIA", gpus+"; "+untested)
}

// libraryFolders lists folders that may contain a machine's libraries.
type libraryFolders struct {
	root     fs.FS
	searched []string // folders that programs search
	wheels   []string // folders of Python's nvidia packages, which programs do not search
	toolkits []string // CUDA toolkits named by environment variables, which programs do not search
}

// librarySearch returns the folders that the system's dynamic loader searches. path is LD_LIBRARY_PATH.
func librarySearch(path string) []string {
	return append(filepath.SplitList(path), "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
		"/usr/lib", "/usr/local/lib", "/usr/local/cuda/lib64")
}

// find returns a library's file in the folders, whose names may be glob patterns; "" if there is none.
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

// version returns the version of a library: from the target of a symbolic link, or from the Python wheel that contains
// the file; "" if it is unknown.
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
		// the pattern is valid
		infos, _ := fs.Glob(s.root, path.Join(strings.TrimPrefix(path.Dir(dir), "/"), wheel+".dist-info"))
		for _, info := range infos {
			_, v, _ := strings.Cut(strings.TrimSuffix(path.Base(info), ".dist-info"), "-")
			return v
		}
	}
	return ""
}

// finding checks a library: its path and its version.
func (s libraryFolders) finding(l cuda.Library) Finding {
	consequence := "no " + l.For + ": "
	file := s.find(l, s.searched)
	if file != "" {
		return s.judge(l, file, "")
	}
	var unsearched []string
	for _, home := range s.toolkits {
		unsearched = append(unsearched, path.Join(home, "lib"), path.Join(home, "lib64"))
	}
	for _, dir := range s.wheels {
		unsearched = append(unsearched, path.Join(dir, "*", "lib"))
	}
	file = s.find(l, unsearched)
	if file != "" {
		return s.judge(l, file, "programs do not search that folder: add "+path.Dir(file)+" to LD_LIBRARY_PATH")
	}
	return Finding{l.Name, stateMissing, "not found", consequence + l.Install}
}

// judge checks a library that was found. fix is how to make programs find it; "" if they do already.
func (s libraryFolders) judge(l cuda.Library, file, fix string) Finding {
	value, v := file, s.version(file, l.Wheel)
	if v != "" {
		value = v + ", " + file
	}
	switch {
	case v != "" && l.Oldest != "" && older(v, l.Oldest):
		return Finding{l.Name, stateMissing, value, fmt.Sprintf("no %s, which needs %s or newer: %s", l.For,
			l.Oldest, l.Install)}
	case fix != "":
		return Finding{l.Name, stateMissing, value, fmt.Sprintf("no %s: %s", l.For, fix)}
	}
	return okFinding(l.Name, value)
}

// older reports whether version a is older than version b.
func older(a, b string) bool {
	numbers := func(v string) (n []int) {
		for part := range strings.SplitSeq(v, ".") {
			k, _ := strconv.Atoi(part) // anything else counts as 0
			n = append(n, k)
		}
		return n
	}
	return slices.Compare(numbers(a), numbers(b)) < 0
}

// oldestDrivers maps the major version of nvcc to the oldest driver that runs its kernels. Source: NVIDIA, CUDA
// Compatibility, Minor Version Compatibility, table 1 (2026-11).
var oldestDrivers = map[string]string{"11": "450", "12": "525", "13": "580"}

// nvccFinding checks nvcc: its version, the architectures that it supports, and whether the driver can run its kernels.
func nvccFinding(n build.NVCC, err error, driver string) Finding {
	if missing := (*build.NoNVCCError)(nil); errors.As(err, &missing) {
		return Finding{"nvcc", stateMissing, "not found",
			"programs for GPUs compile their kernels with NVRTC at each start; to compile them once, " +
				build.HowNVCC}
	}
	if err != nil {
		return Finding{"nvcc", stateMissing, err.Error(), "programs for GPUs cannot be compiled: " + build.HowNVCC}
	}
	value := fmt.Sprintf("%s, %s (%s)", n.Version, n.Path, n.Place)
	major, _, _ := strings.Cut(n.Version, ".")
	switch unknown, oldest := n.Unknown(build.Architectures), oldestDrivers[major]; {
	case len(unknown) > 0:
		return Finding{"nvcc", stateMissing, value, fmt.Sprintf("no kernels for sm_%s: %s", strings.Join(unknown,
			", sm_"), build.HowNVCC)}
	case oldest != "" && driver != "" && driver != "unknown" && older(driver, oldest):
		return Finding{"nvcc", stateMissing, value,
			fmt.Sprintf("driver %s cannot run its kernels: update the driver to %s or newer, or install an older nvcc",
				driver, oldest)}
	}
	return okFinding("nvcc", value)
}
