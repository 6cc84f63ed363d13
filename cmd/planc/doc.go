// Command planc turns a model, a cluster and a training recipe into the best parallel plan, the reasons for it,
// and one binary that trains.
//
// One file is one subcommand: plan.go, explain.go, compile.go, run.go, ir.go. Each reads its flags and its job
// (job.go), asks package planner, and prints the answer; none decides anything. Begin with [run]:
//
//	root.go      the command line: unknown names, flags that come later
//	failure.go   every error becomes an exit code, a message and, with --json, a document: in one place
//	answer.go    a question to the planner, and its answer: plan and explain
//	lockplan.go  the same with a lock next to the job
//	pipeline.go  passes and generated code
//	screen*.go   what people read, laid out in 80 columns from the planner's document
//	format.go    layout of texts and numbers
package main
