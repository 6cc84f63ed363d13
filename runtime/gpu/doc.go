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
// executor (executor.go), communication (comm.go, streams.go, buckets.go, pipes.go), gemmRunner (gemm.go) and
// inputFeeds (feed.go). A generated program calls Main and Run (run.go). The program that planc calibrate builds
// calls Measure (measure.go), and measured.go defines its output. All files except that one and this one have
// the build tags cuda and linux. The package does not compile kernels. It has never run on a GPU, only on the
// emulated one of package emulated.
package gpu
