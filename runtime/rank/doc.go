// Package rank executes a compiled program on one rank: the schedule of its pipeline stage, the forward and backward
// passes of its layers, the reduction and gathering of its buckets, gradient clipping and the optimizer.
//
// A Rank holds coordinates, one arena and the numbers of the step. Its communication goroutine (Serve) runs the bucket
// jobs (buckets.go). A Device does the same work in device memory. Start reading at BeginStep (step.go), then
// execute.go and forwardbackward.go.
package rank
