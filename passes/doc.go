// Package passes turns a logical model and a plan into a program: sharded, scheduled, laid out in memory.
//
// The pipeline is [All], in passes.go; read it first. A pass is one file and one function that rewrites an
// [ir.Program]; the driver ([Compile]) does what is common: check, dump, time, blame. To add a pass, add a
// row, a file and a golden case. Passes never print and never read files; package search, below this one,
// decides the plan that they carry out.
package passes
