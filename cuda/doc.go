// Package cuda wraps the NVIDIA libraries that training programs use in small Go types: the driver,
// cuBLASLt, cuDNN, NCCL, NVRTC and NVML. CPU programs do not link it. planc itself links only the table of
// libraries, for planc doctor.
//
// Nothing of NVIDIA's is linked or included. The package has its own prototypes (driver.h, …), which a test
// checks against NVIDIA's headers, and opens the libraries with dlopen at run time. A program therefore
// builds with Go and a C compiler alone, and starts on a machine without a driver. If it then needs a GPU,
// it reports what is missing: [MissingError], or [OldError] for a version that is too old. A failing call
// returns an [*Error]. docs/dependencies.md says why gorgonia.org/cu is not used.
//
// Files without a build tag are plain Go: the table of libraries (library.go, begin there), errors, and
// packed arguments of kernels. Files that call C have the tag cuda. driver.go opens the driver and lists
// devices, context.go binds a goroutine to one, and memory.go, stream.go, module.go and graph.go hold what
// a context owns. blaslt.go computes GEMMs, cudnn.go and cudnnattention.go attention. nccl.go connects
// ranks, and collectives.go has their collectives. nvrtc.go compiles kernels, and nvml.go reads a GPU's
// utilization.
//
// All calls except those of [Driver] and [Device] need a context, and must be made by a goroutine that
// called Context.Bind. Only functions named Synchronize wait for the device.
//
// The package makes no decisions: generated code chooses kernels, addresses and the order of streams.
//
// The tests run against testdata/fake.c: go test -tags cuda ./cuda. This driver records each call, checks
// handles and the bound context, counts resources that were not freed, and fails on request.
package cuda
