package cuda

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Library is a shared library of NVIDIA that is opened at run time.
type Library struct {
	Name    string   // for messages
	Files   []string // file names, the preferred one first
	For     string   // what needs it
	Install string   // how to get it
	Oldest  string   // oldest version with all functions that are called; "" if any will do
	Wheel   string   // name pattern of its Python wheel
}

// Libraries lists all libraries that programs open.
var Libraries = []Library{
	{Name: "NVIDIA driver", Files: []string{"libcuda.so.1"}, For: "training on a GPU",
		Install: "install the NVIDIA driver; start a container with access to the GPUs (docker run --gpus all)"},
	{Name: "cuBLASLt", Files: []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
		For: "matrix multiplication on a GPU",
		Install: "install the CUDA toolkit's cuBLAS, or its wheel with pip install nvidia-cublas, and put its folder " +
			"in LD_LIBRARY_PATH", Wheel: "nvidia_cublas*"},
	{Name: "NCCL", Files: []string{"libnccl.so.2"}, For: "training on several GPUs",
		Install: "install NCCL 2.18 or newer, or its wheel with pip install nvidia-nccl-cu13, and put its folder in " +
			"LD_LIBRARY_PATH", Oldest: "2.18", Wheel: "nvidia_nccl*"},
	{Name: "cuDNN", Files: []string{"libcudnn.so.9"},
		For: "attention with NVIDIA's fused kernels in bf16 and fp16 instead of planc's own",
		Install: "install cuDNN 9.11 or newer, or its wheel with pip install nvidia-cudnn-cu13, and put its folder " +
			"in LD_LIBRARY_PATH", Oldest: "9.11", Wheel: "nvidia_cudnn*"},
	{Name: "NVRTC", Files: []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
		For: "compiling the kernels of programs that were built without nvcc",
		Install: "install the CUDA toolkit's NVRTC, or its wheel with pip install nvidia-cuda-nvrtc, and put its " +
			"folder in LD_LIBRARY_PATH", Wheel: "nvidia_cuda_nvrtc*"},
	{Name: "NVML", Files: []string{"libnvidia-ml.so.1"}, For: "GPU utilization, power and clock in a run's metrics",
		Install: "it comes with the NVIDIA driver; start a container with " +
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
}

// LibraryNamed returns a row of [Libraries].
func LibraryNamed(name string) Library {
	for _, l := range Libraries {
		if l.Name == name {
			return l
		}
	}
	panic(fmt.Sprintf("cuda: unknown library %q", name))
}

// candidates returns the paths to try in order: each of the folders, then the system's path.
func (l Library) candidates(folders []string) (names []string) {
	for _, dir := range folders {
		for _, file := range l.Files {
			names = append(names, filepath.Join(dir, file))
		}
	}
	return append(names, l.Files...)
}

// open tries the candidates, and returns the first that opens. try returns why it cannot open one.
func open[T any](l Library, folders []string, try func(name string) (T, string)) (library T, name string, err error) {
	missing := &MissingError{Library: l}
	for _, name := range l.candidates(folders) {
		library, why := try(name)
		if why == "" {
			return library, name, nil
		}
		if !isAbsent(name, why) {
			missing.Broken = append(missing.Broken, why)
		}
	}
	return library, "", missing
}

// isAbsent reports whether the loader's error only says that the file does not exist. If a library exists
// but one that it depends on does not, the error names the other.
func isAbsent(name, why string) bool {
	return strings.HasPrefix(why, name+":") && strings.Contains(why, "No such file")
}
