// Package build turns generated Go into a binary with the go command. It uses a private module in the user's cache
// folder, so that it works the same way in a checkout of planc, outside any module and inside a user's module, without
// a network.
//
// [Build] builds a [Request]; start reading there. The private module (module.go) has two folders:
//
//	src/    package main and its sub-packages, as generated; go.mod replaces planc by
//	planc/  the runtime's sources, standard library only, which are embedded in planc
//
// A binary is cached by the hash of everything that it is made from (cache.go). There are three kinds of failure:
// [ErrNoGo] and [OldGoError] mean that the machine has no suitable Go; a [*CompileError] means that the generated Go is
// wrong, which is a bug of planc; anything else is a failure of the machine.
//
// Kernels in CUDA C++ are compiled in the same way. [FindNVCC] finds the compiler (nvcc.go), and its CompileKernels
// compiles them to cached fatbins (kernels.go). A binary for GPUs is built with a C compiler (gpu.go), because it calls
// the driver through cgo.
//
// This is the only part of codegen that accesses files and runs commands. It knows nothing of models or plans.
package build
