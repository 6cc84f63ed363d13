// Package cuda is the NVIDIA layer of training programs: the driver, cuBLASLt, cuDNN and NCCL behind small Go types.
// Programs for a CPU link none of it, and planc no more than the table of libraries, for planc doctor.
//
// Nothing is linked or included: prototypes of our own (driver.h), held against NVIDIA's headers by a test, and dlopen
// at run time. So a program builds with Go and a C compiler alone, starts on a machine without a driver, and says
// there, when it is asked to use a GPU, what is missing: [MissingError], or [OldError] for one that is too old. What a
// call refuses is an [*Error]. docs/dependencies.md says why it is not gorgonia.org/cu.
//
// The files without a build tag are plain Go: the libraries and what they are for (library.go, begin there), errors,
// and packed arguments of kernels. Those that call C have the tag cuda: driver.go opens the driver and lists devices,
// context.go binds a goroutine to one, memory.go, stream.go, module.go and graph.go are what a context owns. blaslt.go
// makes products of matrices, cudnn.go and cudnnattention.go attention, nccl.go joins ranks, collectives.go is what
// they do together, nvrtc.go compiles, and nvml.go tells how busy a GPU is.
//
// A call that needs a context, and all but those of [Driver] and [Device] do, is made by a goroutine that Context.Bind
// has bound. Nothing here waits for the device but what is named Synchronize.
//
// It decides nothing: which kernels there are, where values lie and which stream waits for which is generated code's.
//
// The tests run against testdata/fake.c, a driver that records each call, checks handles and the bound context, counts
// what is left over, and fails where it is told to: go test -tags cuda ./cuda.
package cuda
