// Package passes turns a logical model and a plan into a program: sharded, scheduled, laid out in memory.
//
// The pipeline is [All], in passes.go; start reading there. A pass is one file and one function that rewrites an
// [ir.Program]. The driver ([Compile]) does what is common to passes: checking, dumping, timing, and naming the pass
// that failed. To add a pass, add a row, a file and a golden case.
//
// What this package does not do: passes never print and never read files. Package passes/search decides the plan that
// they carry out.
package passes
