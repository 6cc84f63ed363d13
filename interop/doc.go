// Package interop reads and writes the files of other trainers: Megatron-LM's scripts, DeepSpeed's ds_config.json, and
// so on. Each format is a sub-package with a [Format]; package interop/formats lists them all.
//
// Import reads a file into an [Import]: the job that it describes, with its plan pinned, and an account of every key
// of the file. Nothing in a file is dropped silently: each key is taken, left to the planner, without effect on the
// plan, ignored by the tool itself, or not supported by planc.
//
// Export goes the other way. [Format].Values turns a [Target] (a plan with its job and hardware) into the keys and
// values of the other trainer, and either [Format].Write prints a whole file, or [Import].Edit changes only these keys
// in the user's own file and keeps its comments, its order and everything else.
//
// The package does no I/O: it takes and returns the contents of files. Input errors are ir.Diags with a position in the
// user's file. The rules for which plans an engine can run are not here: see package costmodel.
package interop
