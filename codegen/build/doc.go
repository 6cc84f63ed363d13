// Package build turns generated Go into a binary with the go command, in a private module in the user's cache folder,
// so that it works alike in a checkout of planc, outside any module and inside a user's own, without a network.
//
// [Build] does it, for a [Request]; begin there. The private module (module.go) is two folders:
//
//	src/    package main and its sub-packages, as generated; go.mod replaces planc by
//	planc/  the runtime's sources, standard library only, which planc carries embedded
//
// A binary is found again by the hash of all that it was made of (cache.go). What fails is one of three: [ErrNoGo] and
// [OldGoError], the machine lacks a Go that can compile; a [*CompileError], the generated Go is wrong, which is planc's
// fault; anything else is the machine's.
//
// Kernels in CUDA C++ are compiled likewise: [FindNVCC] finds the compiler (nvcc.go), its CompileKernels makes fatbins
// of them, cached by what they are made of (kernels.go). A binary for GPUs is built with a C compiler (gpu.go), since
// it calls the driver through cgo.
//
// It is the one part of codegen that touches files and runs commands. It knows nothing of models or plans.
package build
