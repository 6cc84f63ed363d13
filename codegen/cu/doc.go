// Package cu prints CUDA C++: the kernels of a program's fused groups.
//
// Begin with [Print]. A [Chain] is a group as codegen describes it for the CPU too: links, each of which sets one
// operand, element by element or row by row, from others. Its kernel goes over rows × cols elements in packs of 16
// bytes and keeps what only the chain knows in registers. A norm's sums over a row come first, in loops of their own
// that compute what they sum anew: memory is read again, mostly from a cache, and written once.
//
// What a kernel calls is in cuda/kernels (base.cuh, element.cuh), where the geometry is too: kernels.Rowwise of a chain
// that Reduces, else kernels.Wide. The package decides nothing, and does no I/O but to the writer that it is given.
package cu
