// Package codegen prints a program as Go source, using jennifer.
//
// [Go] is the entry point. A function of the program becomes a Go function, and an op becomes a kernel call, with the
// op's text form as a comment above it. One row of [emitters] defines the call of an op. Element-wise chains become
// loops. All difficult code is hand-written in the runtime; this package makes no decisions. Code for GPUs ([Target])
// is the same text with calls of package runtime/gpu, and [CUDA] prints the kernels of its element-wise chains. Package
// build turns the source into a binary.
//
// A file is made in three steps. [functions] writes the functions and collects the [declarations] that these refer to:
// a [fusion] says which ops a matmul's call also computes, and an [emitter] writes the ops. A [lowering] converts the
// program to the tables of the runtime. A [fileWriter] prints all of it.
package codegen
