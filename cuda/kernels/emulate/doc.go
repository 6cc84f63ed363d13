// Package emulate runs CUDA C++ without a GPU, in tests. It compiles kernels with the machine's C++
// compiler and a small header (emulate.h) in which the threads of a block are fibers, and launches them in
// a separate process.
//
// Begin with [Build]. A [Machine] takes launches as the driver does: the kernel's name, its geometry and
// its arguments. It runs each with three orders of the threads. It refuses a kernel whose result depends on
// the order, that writes outside its buffers, reads misaligned 16-byte packs, indexes beyond an array, or
// waits for threads that do not arrive. Shared memory is NaN until it is written, and so is the memory
// around buffers. A shadow of shared memory (shadow.h) records who accessed each byte since the last barrier,
// and reports races.
//
// The emulation says nothing about speed. Blocks run one after the other, in one order and in the reverse.
// It detects that a result depends on the order of blocks, but not what happens only if two run
// concurrently.
package emulate
