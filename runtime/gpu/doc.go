// Package gpu runs a compiled program on NVIDIA GPUs: it is the [runtime.Device] of a rank, and what code generated for
// the CUDA target calls in place of the loops of runtime/cpu.
//
// One process has a goroutine for each GPU, which is the rank's own. Package runtime's executor walks the schedule; all
// that would touch the arena's bytes is put on streams of the device instead: kernels and a block's own collectives on
// the first, in the program's order; buckets' gradients and parameters on a second; each line between stages on one of
// its own. Events join them, and nothing waits for the device before the step's end. The host's arena has the same
// layout: batches are filled in there and uploaded (feed.go), and state travels when it is initialized, saved or looked
// at.
//
// The first step runs call by call, and by the way makes what its calls need: scratch, tables, plans of products. The
// second is captured as a graph, which later steps replay, each begun before the host has heard of the one before
// (step.go): what changes from step to step is read from the device's memory (said.go, drops.go). Rounds of experts are
// the largest number that was needed so far (rounds.go).
//
// Begin with device.go. Main and Run (run.go) are what a generated program calls; Measure (measure.go) is for planc
// calibrate, which reads what measured.go describes. All files but that one and this one have the tags cuda and linux.
// It does not compile kernels; it has never run on a GPU, but on package emulated's.
package gpu
