// Command planc finds the best parallel plan for a model, a cluster and a training recipe, explains it, and builds one
// binary that trains.
//
// Each subcommand is one file: plan.go, explain.go, compile.go, run.go, ir.go and so on. It parses flags, reads the job
// (job.go), calls package planner, and prints the answer. It makes no decisions. Start reading at [run]:
//
//	main.go              one invocation: app, console, panic handling
//	root.go              the command line: commands, flags, input errors
//	failure.go           converts every error to an exit code, a message and, with --json, a JSON document
//	answer.go            asks the planner for plan and explain
//	lockdecision.go      the same for a job with a lock
//	pipeline.go          runs the passes and generates code
//	internal/console     reads and prints, and shows progress
//	internal/screen      formats the planner's documents for people, in 80 columns
//	internal/layout      wraps text and aligns columns
//	internal/lock        reads and writes lock files
//	internal/machine     describes, measures and checks the machine that planc runs on
//	internal/binary      fills the tables that a training binary contains
//	internal/otherinput  recognizes flags and files of other tools
//	internal/process     starts and ends processes
package main
