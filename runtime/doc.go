// Package runtime is the library that generated training programs link; they import it as rt. It executes the tables
// and functions of a [Program] as a training run.
//
// [Run] executes a Program in this process and returns; [Main] is Run as a command. Generated code fills in one Program
// (program.go). Its functions call the collectives in collectives.go, the bucket jobs in buckets.go (reduction of
// gradients and gathering of parameters on the rank's communication goroutine), clip.go and optimize.go. They receive
// a [Rank] (rank.go), which holds coordinates, one arena and the numbers of the step.
//
// The ranks of a process are goroutines that the driver (driver.go) commands in lockstep: run this step, evaluate this
// batch, compute these logits. If a rank fails, the run ends for all ranks.
//
// The package knows nothing of the compiler and imports only the standard library. Other devices than this CPU come
// through [Devices]. Start reading at Program, then driver.go.
package runtime
