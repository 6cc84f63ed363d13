// Package emulate runs CUDA C++ without a GPU, in tests: it compiles kernels with the machine's C++ compiler and a
// small header (emulate.h), in which a block's threads are fibers, and launches them in a process of its own.
//
// Begin with [Build]. A [Machine] takes launches as the driver does, by the kernel's name, with geometry and arguments;
// it runs each with three orders of the threads, and refuses one whose result depends on the order, that writes outside
// of its buffers, reads 16 bytes that are not aligned, indexes an array beyond its end, or waits for threads that do
// not come. Shared memory is NaN before it is written, and so is what lies around buffers.
//
// It says nothing of speed. Blocks run one after the other, in one order and in the opposite one: it sees that a result
// depends on which comes first, but not what only happens where two run at once.
package emulate
