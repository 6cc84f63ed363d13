// Package gpu runs a compiled program on NVIDIA GPUs. It implements the [runtime.Device] of a rank, and the
// functions that code generated for the CUDA target calls in place of those of runtime/cpu.
//
// A process has one goroutine for each GPU, which is also the goroutine of the rank. The executor of
// package runtime walks the schedule. Work on the arena's bytes is enqueued on streams of the device:
// kernels and the collectives of a block on the first, in the program's order; gradients and parameters of
// buckets on a second; and each line between stages on a stream of its own. Events order the streams, and
// the host does not wait for the device before the end of a step. The host's arena has the same layout:
// batches are filled in there and uploaded (feed.go), and state is copied when it is initialized, saved or
// inspected.
//
// The first step runs call by call. It also allocates what its calls need: scratch memory, tables, GEMM
// plans. The second step is captured as a CUDA graph, and later steps replay it. Each step is launched
// before the host has received the results of the previous one (step.go). Values that change from step to
// step are read from device memory (stepwords.go, drops.go). The number of rounds of experts is the largest
// one needed so far (expertrounds.go).
//
// Begin with device.go. Its type device orders the parts into steps: memoryPool (memory.go), watchdog (grace.go),
// executor (executor.go), communication (communication.go, streams.go, buckets.go, pipes.go), gemmRunner (gemm.go) and
// inputFeeds (feed.go). A generated program calls Main and Run (run.go). All files except this one have the build
// tags cuda and linux.
//
// Its sub-packages: module loads the kernels of a program and passes arguments to them; comm is the communicator of
// a line's ranks, NCCL's or that of ranks that share a GPU; measure is what the program that planc calibrate builds
// calls. None of them has run on a GPU yet, only on the emulated one of package emulated.
package gpu
