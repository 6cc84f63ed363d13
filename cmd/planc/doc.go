// Command planc turns a model, a cluster and a training recipe into the best parallel plan, the reasons for it,
// and one binary that trains.
//
// One file is one subcommand: plan.go, explain.go, compile.go, run.go, ir.go. Each reads its flags and its job
// (job.go), calls the compiler, and prints; none decides anything. Begin with [run]:
//
//	root.go      the command line: unknown names, flags that come later
//	failure.go   every error becomes an exit code, a message and, with --json, a document: in one place
//	choose.go    the job as the search's question, and its answer
//	pipeline.go  passes and generated code
//	document.go  what --json prints
//	screen*.go   what people read, laid out in 80 columns from the same document
//	format.go    numbers as people read them
package main
