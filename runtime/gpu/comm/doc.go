// Package comm is the communicator of the ranks of a line on GPUs. [Comm] is NCCL's or, if the ranks are of one process
// and share a GPU, which NCCL does not support, one within this process (hub.go, shared.go). Its methods enqueue work
// on a stream.
//
// [FixCollectives] makes NCCL add in the same order in each run (deterministic.go). All files except this one have the
// build tags cuda and linux.
package comm
