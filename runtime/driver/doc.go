// Package driver runs a compiled program: it drives the ranks of a process through training.
//
// A run (driver.go) consists of parts that share one job: the member of the team, which takes the next batches and
// exchanges results with other processes; the stepper, which begins and finishes steps; the recorder of finished steps;
// the evaluator; and the checkpoints. A crew holds the ranks, goroutines that the driver commands in lockstep: run this
// step, evaluate this batch, compute these logits. If a rank fails, the run ends for all ranks.
package driver
