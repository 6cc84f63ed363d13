// Package cu prints the kernels of a program's fused ops as CUDA C++.
//
// Start reading at [Print]. A [Chain] is a group of fused ops, as codegen also describes it for the CPU: links, each of
// which computes one operand from others, element by element or row by row. Its kernel processes rows × cols elements
// in packs of 16 bytes, and keeps temporaries in registers. The sums of a norm over a row come first, in separate loops
// that recompute the summands: memory is read again, mostly from a cache, and written once.
//
// The functions that a kernel calls are in cuda/kernels (base.cuh, element.cuh), and so is the launch geometry:
// kernels.Rowwise for a chain that Reduces, else kernels.Wide. The package makes no decisions, and its only I/O is to
// the writer that it receives.
package cu
