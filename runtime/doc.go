// Package runtime is what generated training programs link: imported as rt, it turns the tables of a
// Program and its four entries into a training run.
//
// Run executes a Program in this process and returns; Main is Run as a command. Generated code fills in
// one Program (program.go) and calls, from inside its entries, the functions of collect.go (collectives on
// the rank's own line of work), buckets.go (gradients and parameters on its communication line), clip.go
// and optimize.go. A Rank (rank.go) is the only thing passed around: coordinates, one arena, a few numbers.
//
// All ranks are goroutines of one process that the driver (drive.go) commands in lockstep: do this step,
// evaluate this batch, write these logits. A rank that fails ends the run for all, within a moment.
//
// The runtime knows nothing of the compiler and needs the standard library alone. Launch by other
// launchers, devices other than this CPU, and tokenizers beyond bytes are not here yet.
package runtime
