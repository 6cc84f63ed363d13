package machine

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/cuda"
)

// A machine with GPUs has a driver whose two halves agree, and a library that programs can open; each gap has its fix.
func TestGPUFinding(t *testing.T) {
	link := func(to string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink} }
	const dir = "usr/lib/x86_64-linux-gnu/"
	gpus := []string{"dev/nvidia0", "dev/nvidia1"}
	for _, c := range []struct {
		name string
		m    Machine
		root fstest.MapFS
		want string
	}{
		{"nothing", Machine{}, fstest.MapFS{}, "missing no GPU and no driver: programs for GPUs do not run here"},
		{"all", Machine{GPUs: gpus, Driver: "580.65.06"},
			fstest.MapFS{dir + "libcuda.so.1": link("libcuda.so.580.65.06"), dir + "libcuda.so.580.65.06": {}},
			"ok 2 GPUs, driver 580.65.06; programs for GPUs have been tested only on emulated GPUs: "},
		{"no library", Machine{GPUs: gpus[:1], Driver: "580.65.06"}, fstest.MapFS{},
			"missing 1 GPU, driver 580.65.06, but no libcuda.so.1: programs cannot reach the GPUs: install the " +
				"NVIDIA driver; "},
		{"half upgraded", Machine{GPUs: gpus, Driver: "575.1.2"},
			fstest.MapFS{dir + "libcuda.so.1": link("libcuda.so.580.65.06"), dir + "libcuda.so.580.65.06": {}},
			"missing 2 GPUs, driver 575.1.2, but its library /" + dir +
				"libcuda.so.1 is version 580.65.06: programs cannot reach the GPUs: reboot to complete"},
		{"hidden", Machine{Driver: "580.65.06"}, fstest.MapFS{},
			"missing a driver, but no GPU that this process can use: programs for GPUs do not run here; "},
	} {
		got := gpuFinding(libraryFolders{root: c.root, searched: librarySearch("")}, c.m)
		if text := got.State + " " + got.Value + ": " + got.Fix; got.Name != "NVIDIA" ||
			!strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %s\nwant %s", c.name, text, c.want)
		}
	}
}

// A library is where programs look, with its version; in a wheel it is found too, and what keeps programs from it is
// said.
func TestLibraryFinding(t *testing.T) {
	nccl := cuda.LibraryNamed("NCCL")
	link := func(to string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink} }
	const site = "venv/lib/python3.12/site-packages/"
	for _, c := range []struct {
		name, path string
		root       fstest.MapFS
		want       string
	}{
		{"nowhere", "", fstest.MapFS{}, "missing not found: no training on several GPUs: " + nccl.Install},
		{"system", "", fstest.MapFS{"usr/lib64/libnccl.so.2": link("libnccl.so.2.27.3"),
			"usr/lib64/libnccl.so.2.27.3": {}}, "ok 2.27.3, /usr/lib64/libnccl.so.2: "},
		{"no version", "/opt/nccl", fstest.MapFS{"opt/nccl/libnccl.so.2": {}}, "ok /opt/nccl/libnccl.so.2: "},
		{"old", "", fstest.MapFS{"usr/lib64/libnccl.so.2": link("libnccl.so.2.9.9"), "usr/lib64/libnccl.so.2.9.9": {}},
			"missing 2.9.9, /usr/lib64/libnccl.so.2: no training on several GPUs, which needs 2.18 or newer: " +
				"install NCCL"},
		{"wheel", "", fstest.MapFS{site + "nvidia/nccl/lib/libnccl.so.2": {},
			site + "nvidia_nccl_cu13-2.32.3.dist-info/METADATA": {}},
			"missing 2.32.3, /" + site + "nvidia/nccl/lib/libnccl.so.2: no training on several GPUs: programs do not " +
				"search that folder: add /" + site + "nvidia/nccl/lib to LD_LIBRARY_PATH"},
		{"wheel in the path", "/" + site + "nvidia/nccl/lib", fstest.MapFS{site + "nvidia/nccl/lib/libnccl.so.2": {},
			site + "nvidia_nccl_cu13-2.32.3.dist-info/METADATA": {}},
			"ok 2.32.3, /" + site + "nvidia/nccl/lib/libnccl.so.2: "},
		{"toolkit", "", fstest.MapFS{"opt/cu13/lib/libnccl.so.2": {}},
			"missing /opt/cu13/lib/libnccl.so.2: no training on several GPUs: programs do not search that " +
				"folder: add " +
				"/opt/cu13/lib to LD_LIBRARY_PATH"},
	} {
		got := libraryFolders{root: c.root, searched: librarySearch(c.path), wheels: []string{"/" + site + "nvidia"},
			toolkits: []string{"/opt/cu13"}}.finding(nccl)
		if text := got.State + " " + got.Value + ": " + got.Fix; got.Name != "NCCL" ||
			!strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %s\nwant %s", c.name, text, c.want)
		}
	}
}

// nvcc knows the architectures that planc compiles for, and makes what the driver runs; else it is said what that
// costs.
func TestNVCCFinding(t *testing.T) {
	full := build.NVCC{Path: "/opt/cuda/bin/nvcc", Place: "PATH", Version: "13.5.37",
		Archs: []int{75, 80, 90, 100, 120}}
	old := full
	old.Version, old.Archs = "11.8.89", []int{52, 80, 90}
	for _, c := range []struct {
		name   string
		n      build.NVCC
		err    error
		driver string
		want   string
	}{
		{"none", build.NVCC{}, &build.NoNVCCError{}, "",
			"missing not found: programs for GPUs compile their kernels with NVRTC at each start; to compile them " +
				"once, " + build.HowNVCC},
		{"broken", full, errors.New("ask it: exit status 1"), "",
			"missing ask it: exit status 1: programs for GPUs cannot be compiled"},
		{"all", full, nil, "580.65.06", "ok 13.5.37, /opt/cuda/bin/nvcc (PATH): "},
		{"no driver here", full, nil, "", "ok 13.5.37"},
		{"old", old, nil, "", "missing 11.8.89, /opt/cuda/bin/nvcc (PATH): no kernels for sm_90a, sm_100a: "},
		{"old driver", full, nil, "575.57.08",
			"missing 13.5.37, /opt/cuda/bin/nvcc (PATH): driver 575.57.08 cannot run its kernels: update the " +
				"driver to 580 or newer, or "},
	} {
		got := nvccFinding(c.n, c.err, c.driver)
		if text := got.State + " " + got.Value + ": " + got.Fix; got.Name != "nvcc" ||
			!strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %s\nwant %s", c.name, text, c.want)
		}
	}
}
